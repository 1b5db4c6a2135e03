/** A prepared statement: parsed and bound once, run many times with other parameters. */

/// <reference lib="esnext.disposable" preserve="true" />

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { WireField, WirePrepared } from '../../../worker/shared/wire.js';
import { mustNotBeAborted } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions, StatementOptions } from './options.js';
import { copyParameters } from './parameters.js';
import { QueryResult } from './result.js';
import { Shape, type ResultColumn } from './shape.js';
import { ResultStream } from './stream.js';
import { needsTicket, withTicket } from './ticket.js';
import type { Parameters, Row } from './types.js';

/** Number of the newest prepared statement of this thread. */
let lastStatement = 0;

/** Chooses the number of a prepared statement. */
export function nextStatement(): number {
  return ++lastStatement;
}

/**
 * A prepared statement, made by `db.prepare` or `tx.prepare`. One made by a transaction ends with
 * it.
 */
export class PreparedStatement<R = Row> {
  /** Columns of the statement's result. */
  readonly columns: readonly ResultColumn[];
  /** SQL types of the statement's parameters. */
  readonly parameters: readonly string[];
  readonly #client: Client;
  readonly #session: number;
  readonly #statement: number;
  readonly #fields: readonly WireField[];
  #closed = false;

  /** @internal */
  constructor(client: Client, session: number, statement: number, wire: WirePrepared) {
    this.columns = Shape.of(wire.fields, client.types).columns;
    this.parameters = wire.parameters;
    this.#client = client;
    this.#session = session;
    this.#statement = statement;
    this.#fields = wire.fields;
  }

  /**
   * Runs the statement and answers its whole result: columns, rows, rows affected, statistics.
   *
   * @example
   * ```ts
   * const rename = await db.prepare('update visit set page = ? where page = ?');
   * const { rowsAffected } = await rename.run(['start', 'home']);
   * console.log(rowsAffected); // 2
   * ```
   */
  async run(parameters?: Parameters, options?: StatementOptions): Promise<QueryResult<R>> {
    this.mustBeOpen();
    mustNotBeAborted(options);
    const { transport, types } = this.#client;
    const copy = copyParameters(parameters);
    const wire = await (needsTicket(options)
      ? withTicket(transport, options, (ticket) =>
          transport.call('run', this.#session, this.#statement, copy, ticket),
        )
      : transport.call('run', this.#session, this.#statement, copy));
    return new QueryResult<R>(wire, types, this.#fields);
  }

  /**
   * Runs the statement and answers the first row, or `undefined` if there is none.
   *
   * @example
   * ```ts
   * const byId = await db.prepare<{ page: string }>('select page from visit where id = ?');
   * console.log((await byId.get([2]))?.page); // docs
   * console.log(await byId.get([9])); // undefined
   * ```
   */
  async get(parameters?: Parameters, options?: StatementOptions): Promise<R | undefined> {
    const result = await this.run(parameters, options);
    return result.rowCount === 0 ? undefined : result.row(0);
  }

  /**
   * Runs the statement and answers every row.
   *
   * @example
   * ```ts
   * const slower = await db.prepare('select id from visit where ms > ? order by id');
   * console.log(await slower.all([90])); // [ { id: 1n }, { id: 3n } ]
   * ```
   */
  async all(parameters?: Parameters, options?: StatementOptions): Promise<R[]> {
    return (await this.run(parameters, options)).rows;
  }

  /**
   * Runs the statement and yields its rows while it runs.
   *
   * @example
   * ```ts
   * const byPage = await db.prepare<{ ms: number }>('select ms from visit where page = ?');
   * let total = 0;
   * for await (const { ms } of byPage.iterate(['home'])) {
   *   total += ms;
   * }
   * console.log(total); // 215
   * ```
   */
  iterate(parameters?: Parameters, options?: CallOptions): AsyncIterableIterator<R> {
    return this.stream(parameters, options).rows();
  }

  /**
   * Runs the statement and streams its rows, as `db.stream` does.
   *
   * @example
   * ```ts
   * const all = await db.prepare('select * from visit');
   * for await (const batch of all.stream().batches()) {
   *   console.log(batch.rowCount); // 3
   * }
   * ```
   */
  stream(parameters?: Parameters, options?: CallOptions): ResultStream<R> {
    const copy = copyParameters(parameters);
    return new ResultStream<R>(this.#client, options, async (stream, form) => {
      this.mustBeOpen();
      const { transport } = this.#client;
      return transport.call('runStream', this.#session, stream, form, this.#statement, copy);
    });
  }

  /**
   * Frees the statement. Closing it twice, or after its database, does nothing.
   *
   * @example
   * ```ts
   * const count = await db.prepare('select count(*) as n from visit');
   * console.log(await count.get()); // { n: 3n }
   * await count.close();
   * ```
   */
  async close(): Promise<void> {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    try {
      await this.#client.transport.call('finalize', this.#statement);
    } catch (error) {
      if (!(error instanceof NacreError && error.kind === 'closed')) {
        throw error;
      }
    }
  }

  /**
   * Closes the statement at the end of an `await using` block.
   *
   * @example
   * ```ts
   * await using count = await db.prepare('select count(*) as n from visit');
   * console.log(await count.get()); // { n: 3n }
   * ```
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  protected mustBeOpen(): void {
    if (this.#closed) {
      throw nacreError('closed', 'the prepared statement is closed');
    }
  }
}
