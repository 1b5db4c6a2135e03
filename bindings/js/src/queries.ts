/** What a database and a transaction have in common: running SQL in a session. */

import { nacreError } from '../../../worker/shared/errors.js';
import { copyParameters } from './parameters.js';
import { QueryResult } from './result.js';
import { isSqlQuery, type SqlQuery } from './sql.js';
import { PreparedStatement } from './statement.js';
import { ResultStream } from './stream.js';
import type { Transport, WireParameters } from './transport.js';
import type { Parameters, Row, TypeOptions } from './types.js';

/** Options of one call. */
export interface CallOptions {
  /** Aborted before the call is made, it cancels the call; a stream between its parts. */
  signal?: AbortSignal;
}

/** What every session of a connection shares. */
export interface Shared {
  transport: Transport;
  types: TypeOptions;
}

/** Runs SQL in one session. */
export abstract class Queries {
  /** @internal */
  protected readonly shared: Shared;
  /** @internal */
  protected readonly session: number;

  /** @internal */
  constructor(shared: Shared, session: number) {
    this.shared = shared;
    this.session = session;
  }

  /** Throws unless calls may be made. */
  protected abstract mustBeOpen(): void;

  /** Runs a statement (or several; the last one's result is answered). */
  query<R = Row>(sql: SqlQuery, options?: CallOptions): Promise<QueryResult<R>>;
  query<R = Row>(
    sql: string,
    parameters?: Parameters,
    options?: CallOptions,
  ): Promise<QueryResult<R>>;
  async query<R>(
    sql: string | SqlQuery,
    second?: unknown,
    third?: CallOptions,
  ): Promise<QueryResult<R>> {
    const { text, parameters, options } = split(sql, second, third);
    this.#check(options);
    const wire = await this.shared.transport.call('execute', this.session, text, parameters);
    return new QueryResult<R>(wire, this.shared.types);
  }

  /** Runs one or more statements that need no parameters; the last one's result is answered. */
  exec(sql: string, options?: CallOptions): Promise<QueryResult> {
    return this.query(sql, undefined, options);
  }

  /** Runs a query and answers an Arrow IPC stream. */
  queryArrow(sql: SqlQuery, options?: CallOptions): Promise<Uint8Array>;
  queryArrow(sql: string, parameters?: Parameters, options?: CallOptions): Promise<Uint8Array>;
  async queryArrow(
    sql: string | SqlQuery,
    second?: unknown,
    third?: CallOptions,
  ): Promise<Uint8Array> {
    const { text, parameters, options } = split(sql, second, third);
    this.#check(options);
    return this.shared.transport.call('arrow', this.session, text, parameters);
  }

  /**
   * Runs a query whose rows are taken while it runs: as Arrow IPC, or by `rows()` or `batches()`. Nothing happens
   * before the first are asked for. `signal` ends it between two parts.
   */
  stream<R = Row>(sql: SqlQuery, options?: CallOptions): ResultStream<R>;
  stream<R = Row>(sql: string, parameters?: Parameters, options?: CallOptions): ResultStream<R>;
  stream<R>(sql: string | SqlQuery, second?: unknown, third?: CallOptions): ResultStream<R> {
    const { text, parameters, options } = split(sql, second, third);
    return new ResultStream<R>(this.shared, options, async (stream, form) => {
      this.#check(options);
      return this.shared.transport.call('stream', this.session, stream, form, text, parameters);
    });
  }

  /** Parses and binds a statement once, to run it many times. */
  async prepare<R = Row>(sql: string, options?: CallOptions): Promise<PreparedStatement<R>> {
    mustBeText(sql);
    this.#check(options);
    const wire = await this.shared.transport.call('prepare', this.session, sql);
    return new PreparedStatement<R>(this.shared, this.session, wire);
  }

  #check(options: CallOptions | undefined): void {
    this.mustBeOpen();
    if (options?.signal?.aborted) {
      throw nacreError(
        'cancelled',
        'the call was cancelled before it started',
        options.signal.reason,
      );
    }
  }
}

interface Request {
  text: string;
  parameters: WireParameters;
  options: CallOptions | undefined;
}

function split(sql: string | SqlQuery, second: unknown, third: CallOptions | undefined): Request {
  if (isSqlQuery(sql)) {
    mustBeText(sql.text);
    const parameters = copyParameters(sql.parameters as Parameters);
    return { text: sql.text, parameters, options: second as CallOptions | undefined };
  }
  mustBeText(sql);
  return {
    text: sql,
    parameters: copyParameters(second as Parameters | undefined),
    options: third,
  };
}

function mustBeText(sql: unknown): void {
  if (typeof sql !== 'string') {
    throw nacreError('type', 'SQL is a string or made with the sql tag');
  }
  // The engine would see U+FFFD in its place.
  if (/\p{Surrogate}/u.test(sql)) {
    throw nacreError('syntax', 'the SQL text has half of a surrogate pair, which is no character');
  }
}
