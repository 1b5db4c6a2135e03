/** An open database. */

/// <reference lib="esnext.disposable" preserve="true" />

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { TableReport } from '../../../worker/shared/inspect.js';
import { MAIN_SESSION } from '../../../worker/shared/protocol.js';
import type { LagReport, StorageReport } from '../../../worker/shared/wire.js';
import type { Client } from './client.js';
import {
  createFunction,
  type AggregateFunction,
  type AggregateOptions,
  type FunctionOptions,
  type ModuleExport,
} from './functions.js';
import { insertArrow, type ArrowSource } from './insert-arrow.js';
import { insertRows, type Columns, type Rows } from './insert-rows.js';
import { Live } from './live.js';
import type { InsertOptions } from './load.js';
import type { CallOptions } from './options.js';
import { Queries } from './queries.js';
import type { AnySchema, NewRow, TableName } from './schema.js';
import { Transaction } from './transaction.js';
import { waitForPosition, type WaitOptions } from './wait-for-position.js';

/**
 * An open database, made by `connect`. Calls run one after another, in the order they were made.
 *
 * The examples of this package use a database `db` with three rows in one table:
 *
 * | visit.id (BIGINT, primary key) | visit.page (TEXT) | visit.ms (INT) |
 * | --- | --- | --- |
 * | 1 | home | 120 |
 * | 2 | docs | 80 |
 * | 3 | home | 95 |
 */
export class Database<S extends object = AnySchema> extends Queries<S> {
  /** Live queries: results that are computed again when their tables have changed. */
  readonly live: Live<S>;
  #nextSession = MAIN_SESSION + 1;
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(client: Client) {
    super(client, MAIN_SESSION);
    this.live = new Live<S>(client, () => this.#closing !== null);
  }

  /**
   * Runs a function in a transaction: commits when the function returns, rolls back when it throws.
   * Inside, use `tx` instead of `db`, and await every call.
   *
   * An error with `retryable` (a conflict, a deadlock, a lock timeout) means that the same
   * transaction may succeed when it is run again.
   *
   * When `signal` aborts, what runs in the transaction is cancelled, every change undone, and the call
   * fails with `cancelled`, though the function may still be waiting for something else. Once the
   * commit has begun, it has no effect.
   *
   * @example
   * ```ts
   * const slowest = await db.transaction(async (tx) => {
   *   await tx.query('insert into visit values (?, ?, ?)', [4, 'docs', 300]);
   *   return tx.query('select max(ms) as ms from visit');
   * });
   * console.log(slowest.rows); // [ { ms: 300 } ]
   * ```
   *
   * @returns What the function returns.
   */
  async transaction<T>(
    work: (tx: Transaction<S>) => Promise<T>,
    options?: CallOptions,
  ): Promise<T> {
    this.check(options);
    return Transaction.run(this.client, this.#nextSession++, work, options);
  }

  /**
   * Inserts Arrow data: an IPC stream as bytes, or in pieces of any size, as `fetch` and
   * `db.stream` yield them. The fastest way to insert many rows. All rows become visible together,
   * as a transaction of their own, or none if anything fails. Columns are matched by name; a column
   * that the data lacks has its default.
   *
   * @example
   * ```ts
   * import { tableFromArrays, tableToIPC } from 'apache-arrow';
   *
   * const arrow = tableFromArrays({ id: BigInt64Array.of(3n, 4n), page: ['start', 'docs'] });
   * const count = await db.insertArrow('visit', tableToIPC(arrow), { onDuplicate: 'skip' });
   * console.log(count); // 1
   *
   * await db.exec('create table copy (id bigint primary key, page text, ms int)');
   * await db.insertArrow('copy', db.stream('select * from visit'));
   * console.log((await db.query('select * from copy')).rowCount); // 4
   * ```
   *
   * @returns Number of rows inserted or replaced.
   */
  async insertArrow(
    table: TableName<S>,
    source: ArrowSource,
    options?: InsertOptions,
  ): Promise<number> {
    this.mustBeOpen();
    return insertArrow(this.client, table, source, options);
  }

  /**
   * Inserts many rows: objects by column name, one after another, or arrays by the names of columns.
   * All rows become visible together, as a transaction of their own, or none if anything fails. A
   * column that the first row lacks has its default.
   *
   * @example
   * ```ts
   * const rows = [
   *   { id: 3, page: 'start', ms: 40 },
   *   { id: 4, page: 'docs', ms: 70 },
   * ];
   * console.log(await db.insertRows('visit', rows, { onDuplicate: 'replace' })); // 2
   *
   * const columns = { id: [5, 6], page: ['home', 'docs'], ms: Int32Array.of(90, 110) };
   * console.log(await db.insertRows('visit', columns)); // 2
   * ```
   *
   * @returns Number of rows inserted or replaced.
   */
  async insertRows<T extends TableName<S>>(
    table: T,
    rows: Rows<NewRow<S, T>> | Columns<keyof NewRow<S, T> & string>,
    options?: InsertOptions,
  ): Promise<number> {
    this.mustBeOpen();
    return insertRows(this.client, table, rows, options);
  }

  /**
   * Creates a scalar function for SQL, or replaces one created before. It is called once for each
   * combination of arguments that is needed, in any order, and must not use the database. It is not
   * stored: create it again after `connect`. Rules of tables (`default`, `check`, `generated`)
   * cannot call it.
   *
   * The function itself can be passed where the engine works in the caller's thread: in Node, and
   * with `connectInThread`. A page passes the module that exports it.
   *
   * @example
   * ```ts
   * const options = { parameters: ['text'], returns: 'text' };
   * await db.createFunction('shout', options, (text: string) => `${text.toUpperCase()}!`);
   * const { rows } = await db.query('select distinct shout(page) as p from visit order by p');
   * console.log(rows); // [ { p: 'DOCS!' }, { p: 'HOME!' } ]
   * ```
   */
  async createFunction(
    name: string,
    options: FunctionOptions,
    source: ((...values: never[]) => unknown) | ModuleExport,
  ): Promise<void> {
    this.mustBeOpen();
    return createFunction(this.client, 'scalar', name, options, source);
  }

  /**
   * Creates an aggregate for SQL, which also works over windows, or replaces one created before. What
   * is said of `createFunction` holds for it.
   *
   * @example
   * ```ts
   * const options = { parameters: ['double'], returns: 'double' };
   * await db.createAggregate('range_of', options, {
   *   start: () => ({ least: Infinity, most: -Infinity }),
   *   step: ({ least, most }, x: number) => ({
   *     least: Math.min(least, x),
   *     most: Math.max(most, x),
   *   }),
   *   finish: ({ least, most }) => most - least,
   * });
   * const { rows } = await db.query('select page, range_of(ms) as r from visit group by page order by page');
   * console.log(rows); // [ { page: 'docs', r: 0 }, { page: 'home', r: 25 } ]
   * ```
   */
  async createAggregate<State, Values extends unknown[]>(
    name: string,
    options: AggregateOptions,
    source: AggregateFunction<State, Values> | ModuleExport,
  ): Promise<void> {
    this.mustBeOpen();
    return createFunction(
      this.client,
      'aggregate',
      name,
      options,
      source as AggregateFunction | ModuleExport,
    );
  }

  /**
   * Removes a function that was created.
   *
   * @example
   * ```ts
   * await db.createFunction('one', { parameters: [], returns: 'int' }, () => 1);
   * console.log(await db.dropFunction('one'), await db.dropFunction('one')); // true false
   * ```
   *
   * @returns Whether there was one.
   */
  async dropFunction(name: string): Promise<boolean> {
    this.mustBeOpen();
    return this.client.transport.call('dropFunction', name);
  }

  /**
   * Answers the whole database as one file, as it is between two calls: everything committed, and
   * nothing of open transactions. It is a tar archive of the database's files: unpacked, it is a
   * folder that Node and the command `nacre` open. The option `import` of `connect` reads it.
   *
   * @example
   * ```ts
   * const file = await db.export();
   * const copy = await connect('memory://', { import: file });
   * console.log((await copy.query('select count(*) as n from visit')).rows); // [ { n: 3n } ]
   * await copy.close();
   * ```
   */
  async export(): Promise<Blob> {
    this.mustBeOpen();
    return this.client.transport.call('export');
  }

  /**
   * Whether the database is open in this tab. Of the tabs that share a database one has it open, and
   * runs the calls of all; when it goes, another takes over. Always true where the database is not
   * shared: in Node, in memory, and in the engine's own thread.
   *
   * @example
   * ```ts
   * console.log(db.isLeader); // true
   * ```
   */
  get isLeader(): boolean {
    return this.client.transport.leadership?.isLeader ?? true;
  }

  /**
   * Calls a function whenever another tab has taken over, or the database was opened again, with
   * whether it is open in this tab now. Open transactions and streams have ended then; prepared
   * statements and live queries go on. Returns a function that stops this.
   *
   * @example
   * ```ts
   * const stop = db.onLeaderChange((isLeader) => {
   *   console.log(isLeader ? 'this tab has the database open' : 'another tab has it open');
   * });
   * stop();
   * ```
   */
  onLeaderChange(listener: (isLeader: boolean) => void): () => void {
    if (typeof listener !== 'function') {
      throw nacreError('type', 'onLeaderChange needs a function');
    }
    this.mustBeOpen();
    return this.client.transport.leadership?.onChange(listener) ?? (() => {});
  }

  /**
   * Describes how each table is stored: rows in memory, segments, encodings, sizes.
   *
   * @example
   * ```ts
   * await db.exec('optimize table visit flush');
   * const [visit] = await db.inspect();
   * console.log(visit?.rowstoreRows, visit?.segments.length); // 0 1
   * ```
   */
  async inspect(): Promise<TableReport[]> {
    this.mustBeOpen();
    return this.client.transport.call('inspect');
  }

  /**
   * Reports how much storage the database uses, the platform's quota, and whether the platform may
   * evict the files.
   *
   * @example
   * ```ts
   * const { bytes, quota } = await db.storage();
   * console.log(bytes, quota); // 0 null
   * ```
   */
  async storage(): Promise<StorageReport> {
    this.mustBeOpen();
    return this.client.transport.call('storage');
  }

  /**
   * Makes every committed change durable. With `strict` durability, commits are durable already.
   *
   * @example
   * ```ts
   * const db = await connect('memory://', { durability: 'relaxed' });
   * await db.exec('create table draft (id int primary key, body text)');
   * await db.exec("insert into draft values (1, 'pearl')");
   * await db.flush(); // now the row survives a power failure
   * await db.close();
   * ```
   */
  async flush(): Promise<void> {
    this.mustBeOpen();
    await this.client.transport.call('flush');
  }

  /**
   * Of a database whose URL is a blob store: makes visible what its writer has uploaded since, all of it
   * together. Transactions keep what they see. Answers whether anything was new; `false` for any other
   * database.
   *
   * @example
   * ```ts
   * console.log(await db.refresh()); // false
   * ```
   */
  async refresh(): Promise<boolean> {
    this.mustBeOpen();
    return this.client.transport.call('refresh');
  }

  /**
   * Waits until the database shows a position, which its writer has answered by `lag()` after a commit, and
   * refreshes it meanwhile: what was committed before is then read here, too. Of the writer itself it returns
   * at once. `unavailable` if that takes too long; the writer uploads by itself, or at once by `upload()`.
   *
   * @example
   * ```ts
   * const lag = await db.lag(); // of the writer, whose answer takes `lag.position` along
   * if (lag !== null) {
   *   await db.waitForPosition(lag.position, { timeoutMs: 5_000 }); // of a reader
   * }
   * ```
   */
  async waitForPosition(position: number, options: WaitOptions = {}): Promise<void> {
    this.check(options);
    await waitForPosition(this.client, position, options);
  }

  /**
   * What is known of the newest upload of a database with blobs; `null` without any.
   *
   * @example
   * ```ts
   * const lag = await db.lag();
   * console.log(lag?.uploadedAt); // undefined
   * ```
   */
  async lag(): Promise<LagReport | null> {
    this.mustBeOpen();
    return this.client.transport.call('lag');
  }

  /**
   * Uploads everything that is committed to the blobs, without waiting for `blobLag`: then the loss of
   * the local files loses nothing. Without the option `blobs` it does nothing. Closing uploads, too.
   *
   * @example
   * ```ts
   * await db.exec('delete from visit where ms > 1000');
   * await db.upload(); // with blobs, another machine would find the rows gone
   * ```
   */
  async upload(): Promise<void> {
    this.mustBeOpen();
    await this.client.transport.call('upload');
  }

  /**
   * Waits for running statements, rolls back open transactions, and closes the database. Closing
   * twice does nothing.
   *
   * @example
   * ```ts
   * const db = await connect('memory://');
   * await db.close();
   * ```
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.client.transport.call('close');
    } catch (error) {
      // A worker that failed earlier has nothing left to close.
      if (!(error instanceof NacreError && error.kind === 'closed')) {
        throw error;
      }
    } finally {
      this.client.transport.end();
    }
  }

  /**
   * Closes the database at the end of an `await using` block.
   *
   * @example
   * ```ts
   * await using db = await connect('memory://');
   * console.log((await db.query('select 1 as one')).rows); // [ { one: 1 } ]
   * ```
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  protected mustBeOpen(): void {
    if (this.#closing !== null) {
      throw nacreError('closed', 'the database is closed');
    }
  }
}
