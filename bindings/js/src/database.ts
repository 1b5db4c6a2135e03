/** An open database. */

/// <reference lib="esnext.disposable" preserve="true" />

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { TableReport } from '../../../worker/shared/inspect.js';
import { MAIN_SESSION } from '../../../worker/shared/protocol.js';
import type { StorageReport } from '../../../worker/shared/wire.js';
import type { Client } from './client.js';
import { Queries } from './queries.js';
import { Transaction } from './transaction.js';

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
export class Database extends Queries {
  #nextSession = MAIN_SESSION + 1;
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(client: Client) {
    super(client, MAIN_SESSION);
  }

  /**
   * Runs a function in a transaction: commits when the function returns, rolls back when it throws.
   * Inside, use `tx` instead of `db`, and await every call.
   *
   * An error with `retryable` (a conflict, a deadlock, a lock timeout) means that the same
   * transaction may succeed when it is run again.
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
  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.mustBeOpen();
    return Transaction.run(this.client, this.#nextSession++, work);
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
