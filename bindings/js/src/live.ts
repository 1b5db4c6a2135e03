/** Live queries: the rows of a query, or the changes of a table, again after each commit. */

/// <reference lib="esnext.disposable" preserve="true" />

import { nacreError } from '../../../worker/shared/errors.js';
import type { WireField, WireParameters, WireResult } from '../../../worker/shared/wire.js';
import { Aborting } from './aborting.js';
import { LiveChanges, mustBeTable } from './changes.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';
import { copyParameters } from './parameters.js';
import { QueryResult } from './result.js';
import type { AnySchema, RowIn, RowOf, TableName } from './schema.js';
import { isSqlQuery, mustBeText, type SqlQuery } from './sql.js';
import type { Parameters, Row } from './types.js';

/** Options of `db.live.query`. */
export interface LiveOptions extends CallOptions {
  /**
   * Called with an error of the callback, after which the live query goes on, and with an error of
   * the query, such as one of a table that was dropped, which ends it. Without it, such an error is
   * thrown where nothing catches it.
   */
  onError?: (error: unknown) => void;
}

/** Receives a result of a live query. A promise is waited for before the next result. */
export type LiveCallback<R> = (result: QueryResult<R>) => unknown;

/** Number of the newest live query of this thread. */
let lastLive = 0;

/** What a live query runs, and for which function. */
interface Watched<R> {
  text: string;
  parameters: WireParameters;
  callback: LiveCallback<R>;
  options: LiveOptions;
  /** Whether its database was closed. */
  isClosed: () => boolean;
}

/** A live query that goes on until it is ended. */
export class LiveSubscription<R = Row> {
  readonly #client: Client;
  readonly #watched: Watched<R>;
  readonly #aborting: Aborting;
  readonly #live = ++lastLive;
  readonly #forget: () => void;
  #fields: readonly WireField[] = [];
  #ended = false;

  /** @internal */
  constructor(client: Client, watched: Watched<R>) {
    this.#client = client;
    this.#watched = watched;
    this.#aborting = new Aborting(watched.options.signal, 'the live query was cancelled');
    this.#forget = this.#aborting.on(() => void this.unsubscribe());
  }

  /**
   * Ends the live query: its function is not called again. Ending it twice, or after its database,
   * does nothing.
   *
   * @example
   * ```ts
   * const count = await db.live.query('select count(*) as n from visit', [], ({ rows }) => {
   *   console.log(rows); // [ { n: 3n } ]
   * });
   * await count.unsubscribe();
   * ```
   */
  async unsubscribe(): Promise<void> {
    this.#forget();
    if (!this.#ended) {
      this.#ended = true;
      // If the database is closed, the live query has ended.
      await this.#client.transport.call('endLive', this.#live).catch(() => {});
    }
  }

  /**
   * Ends the live query at the end of an `await using` block.
   *
   * @example
   * ```ts
   * await using count = await db.live.query('select count(*) as n from visit', [], ({ rows }) => {
   *   console.log(rows); // [ { n: 3n } ]
   * });
   * ```
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.unsubscribe();
  }

  /** @internal Runs the query for the first time. */
  async begin(): Promise<this> {
    try {
      this.#aborting.check('the call was cancelled before it started');
      const { text, parameters } = this.#watched;
      const begun = this.#client.transport.call('live', this.#live, text, parameters);
      const { result, fields } = await this.#aborting.or(begun);
      this.#fields = fields;
      await this.#deliver(result);
    } catch (error) {
      await this.unsubscribe();
      throw error;
    }
    void this.#follow();
    return this;
  }

  /** Asks for one result after the other, until the live query is ended or fails. */
  async #follow(): Promise<void> {
    try {
      while (!this.#ended) {
        const next = await this.#client.transport.call('nextLive', this.#live);
        if (!this.#ended) {
          await this.#deliver(next);
        }
      }
    } catch (error) {
      if (!this.#ended && !this.#watched.isClosed()) {
        this.#report(error);
      }
      await this.unsubscribe();
    }
  }

  async #deliver(wire: WireResult): Promise<void> {
    const result = new QueryResult<R>(wire, this.#client.types, this.#fields);
    try {
      await this.#watched.callback(result);
    } catch (error) {
      this.#report(error);
    }
  }

  /** Reports an error that no caller can catch. */
  #report(error: unknown): void {
    const { onError } = this.#watched.options;
    const uncaught = (thrown: unknown): void =>
      // As that of an event's listener: in a task of its own, so that it stops nothing here.
      void setTimeout(() => {
        throw thrown;
      });
    if (onError === undefined) {
      uncaught(error);
      return;
    }
    try {
      onError(error);
    } catch (thrown) {
      uncaught(thrown);
    }
  }
}

/** The live queries of a database: `db.live`. */
export class Live<S extends object = AnySchema> {
  readonly #client: Client;
  readonly #isClosed: () => boolean;

  /** @internal */
  constructor(client: Client, isClosed: () => boolean) {
    this.#client = client;
    this.#isClosed = isClosed;
  }

  /**
   * Runs a query, and again after each commit that changed a table it reads, and calls a function
   * with each result. Several commits before the function is done are covered by one run. The query
   * sees what is committed, also by other transactions of this connection. Answers after the first
   * call of the function.
   *
   * @example
   * ```ts
   * const counts: bigint[] = [];
   * const sql = 'select count(*) as n from visit where page = ?';
   * const home = await db.live.query<{ n: bigint }>(sql, ['home'], ({ rows }) => {
   *   counts.push(rows[0]!.n);
   * });
   * await db.query('insert into visit values (?, ?, ?)', [4, 'home', 60]); // runs it again
   * await home.unsubscribe();
   * console.log(counts[0]); // 2n
   * ```
   */
  query<R = Row>(
    sql: SqlQuery,
    callback: LiveCallback<R>,
    options?: LiveOptions,
  ): Promise<LiveSubscription<R>>;
  query<Text extends string>(
    sql: Text,
    parameters: Parameters | undefined,
    callback: LiveCallback<RowOf<S, Text>>,
    options?: LiveOptions,
  ): Promise<LiveSubscription<RowOf<S, Text>>>;
  query<R>(
    sql: string,
    parameters: Parameters | undefined,
    callback: LiveCallback<R>,
    options?: LiveOptions,
  ): Promise<LiveSubscription<R>>;
  async query<R>(sql: string | SqlQuery, ...rest: unknown[]): Promise<LiveSubscription<R>> {
    if (this.#isClosed()) {
      throw nacreError('closed', 'the database is closed');
    }
    const isTagged = isSqlQuery(sql);
    const [parameters, callback, options = {}] = (isTagged ? [sql.parameters, ...rest] : rest) as [
      Parameters | undefined,
      LiveCallback<R>,
      LiveOptions?,
    ];
    const text = isTagged ? sql.text : sql;
    mustBeText(text);
    if (typeof callback !== 'function') {
      throw nacreError('type', 'a live query needs a function that takes its results');
    }
    const watched = {
      text,
      parameters: copyParameters(parameters),
      callback,
      options,
      isClosed: this.#isClosed,
    };
    return new LiveSubscription<R>(this.#client, watched).begin();
  }

  /**
   * Follows the rows of a table with a primary key, which commits from now on insert, update and
   * delete, of any session and any tab. Several commits before the next batch is read are covered by
   * one; a row that is as it was is not in it. Until a batch is read, memory keeps the old versions of
   * what has changed, as for an open transaction: read them soon, or end them.
   *
   * They end with `unavailable` when the tab that has the database open goes, with `conflict` when the
   * table's columns are changed or it is truncated, with `limit` when a million rows have changed:
   * read the table, and call this again.
   *
   * @example
   * ```ts
   * const changes = await db.live.changes<{ id: bigint; page: string }>('visit');
   * await db.exec("insert into visit values (4, 'docs', 70); delete from visit where id = 2");
   * for await (const { inserted, deleted } of changes) {
   *   console.log(inserted, deleted.map(({ id }) => id)); // [ { id: 4n, page: 'docs', ms: 70 } ] [ 2n ]
   *   break;
   * }
   * ```
   */
  changes<T extends TableName<S>>(
    table: T,
    options?: CallOptions,
  ): Promise<LiveChanges<RowIn<S, T>>>;
  changes<R>(table: TableName<S>, options?: CallOptions): Promise<LiveChanges<R>>;
  async changes(table: string, options: CallOptions = {}): Promise<LiveChanges> {
    if (this.#isClosed()) {
      throw nacreError('closed', 'the database is closed');
    }
    mustBeTable(table);
    return LiveChanges.begin(this.#client, ++lastLive, table, options);
  }
}
