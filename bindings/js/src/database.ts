/** An open database. */

/// <reference lib="esnext.disposable" preserve="true" />

import { NacreError, nacreError } from '../../../worker/shared/errors.js';
import type { StorageReport } from '../../../worker/shared/protocol.js';
import type { TableReport } from './inspect.js';
import { Queries, type Shared } from './queries.js';
import { Transaction } from './transaction.js';

const MAIN_SESSION = 0;

export class Database extends Queries {
  #nextSession = MAIN_SESSION + 1;
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(shared: Shared) {
    super(shared, MAIN_SESSION);
  }

  /**
   * Runs a function in a transaction: commits when it returns, rolls back when it throws.
   * An error with `retryable` says that running the same transaction again may succeed.
   */
  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.mustBeOpen();
    return Transaction.run(this.shared, this.#nextSession++, work);
  }

  /** Where the rows of each table are: memory, segments, encodings, bytes. */
  async inspect(): Promise<TableReport[]> {
    this.mustBeOpen();
    return this.shared.transport.call('inspect');
  }

  /** Bytes used, the platform's quota, and whether it promised to keep them. */
  async storage(): Promise<StorageReport> {
    this.mustBeOpen();
    return this.shared.transport.call('storage');
  }

  /** Makes everything committed so far durable. With `strict` durability it is already. */
  async flush(): Promise<void> {
    this.mustBeOpen();
    await this.shared.transport.call('flush');
  }

  /** Waits for running statements and closes. Closing twice does nothing. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.shared.transport.call('close');
    } catch (error) {
      // Where the worker failed before, there is nothing left to be closed.
      if (!(error instanceof NacreError && error.kind === 'closed')) {
        throw error;
      }
    } finally {
      this.shared.transport.end();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  protected mustBeOpen(): void {
    if (this.#closing !== null) {
      throw nacreError('closed', 'the database is closed');
    }
  }
}
