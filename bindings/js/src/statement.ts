/** A prepared statement: parsed and bound once, run many times with other parameters. */

/// <reference lib="esnext.disposable" preserve="true" />

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { WireField, WirePrepared } from '../../../worker/shared/protocol.js';
import type { CallOptions, Shared } from './queries.js';
import { copyParameters } from './parameters.js';
import { describe, QueryResult, type ResultColumn } from './result.js';
import { ResultStream } from './stream.js';
import type { Parameters, Row } from './types.js';

export class PreparedStatement<R = Row> {
  /** Columns of its result. */
  readonly columns: readonly ResultColumn[];
  /** Types of its parameters, as SQL writes them. */
  readonly parameters: readonly string[];
  readonly #shared: Shared;
  readonly #session: number;
  readonly #statement: number;
  readonly #fields: readonly WireField[];
  #closed = false;

  /** @internal */
  constructor(shared: Shared, session: number, wire: WirePrepared) {
    this.columns = describe(wire.fields);
    this.parameters = wire.parameters;
    this.#shared = shared;
    this.#session = session;
    this.#statement = wire.statement;
    this.#fields = wire.fields;
  }

  /** Runs it and answers everything: columns, rows, rows affected, statistics. */
  async run(parameters?: Parameters): Promise<QueryResult<R>> {
    this.#mustBeOpen();
    const { transport, types } = this.#shared;
    const wire = await transport.call(
      'run',
      this.#session,
      this.#statement,
      copyParameters(parameters),
    );
    return new QueryResult<R>(wire, types, this.#fields);
  }

  /** The first row, or undefined. */
  async get(parameters?: Parameters): Promise<R | undefined> {
    const result = await this.run(parameters);
    return result.rowCount === 0 ? undefined : result.row(0);
  }

  /** Every row. */
  async all(parameters?: Parameters): Promise<R[]> {
    return (await this.run(parameters)).rows;
  }

  /** Rows one by one, taken while it runs. */
  iterate(parameters?: Parameters, options?: CallOptions): AsyncIterableIterator<R> {
    return this.stream(parameters, options).rows();
  }

  /** Runs it with its rows as a stream, as `db.stream` does. */
  stream(parameters?: Parameters, options?: CallOptions): ResultStream<R> {
    const copy = copyParameters(parameters);
    return new ResultStream<R>(this.#shared, options, async (stream, form) => {
      this.#mustBeOpen();
      const { transport } = this.#shared;
      return transport.call('runStream', this.#session, stream, form, this.#statement, copy);
    });
  }

  /** Gives it back. Closing twice, or after its database, does nothing. */
  async close(): Promise<void> {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    try {
      await this.#shared.transport.call('finalize', this.#statement);
    } catch (error) {
      if (!(error instanceof NacreError && error.kind === 'closed')) {
        throw error;
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #mustBeOpen(): void {
    if (this.#closed) {
      throw nacreError('closed', 'the prepared statement is closed');
    }
  }
}
