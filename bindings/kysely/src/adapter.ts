/** What the dialect can do, and the lock that keeps two migrators apart. */

import { DialectAdapterBase, type Kysely, type MigrationLockOptions } from 'kysely';
import { NacreError, type Database } from 'nacredb';
import { OpenTransaction } from './open-transaction.js';

/** Kysely's adapter for Nacre. */
export class NacreAdapter extends DialectAdapterBase {
  readonly #open: () => Promise<Database>;
  /** By the connection of its migrator: the transaction that holds the lock. */
  readonly #locks = new WeakMap<Kysely<any>, OpenTransaction>();

  constructor(open: () => Promise<Database>) {
    super();
    this.#open = open;
  }

  override get supportsCreateIfNotExists(): boolean {
    return true;
  }

  /** All migrations of a call are one transaction: if one fails, nothing stays of any of them. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  override get supportsReturning(): boolean {
    return true;
  }

  /**
   * Locks the row of the lock table in a transaction beside the migrations, so that the lock ends
   * with the process that holds it.
   */
  async acquireMigrationLock(db: Kysely<any>, options: MigrationLockOptions): Promise<void> {
    const transaction = await OpenTransaction.begin(await this.#open());
    const lock = db
      .selectFrom(options.lockTable)
      .select('id')
      .where('id', '=', options.lockRowId)
      .forUpdate()
      .compile();
    try {
      await untilLocked(() => transaction.queries.query(lock.sql, lock.parameters));
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    this.#locks.set(db, transaction);
  }

  async releaseMigrationLock(db: Kysely<any>): Promise<void> {
    const transaction = this.#locks.get(db);
    this.#locks.delete(db);
    await transaction?.rollback();
  }
}

/** Migrations of another migrator may take longer than a statement waits for a lock. */
async function untilLocked(lock: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await lock();
      return;
    } catch (error) {
      if (!(error instanceof NacreError && error.kind === 'lock_timeout')) {
        throw error;
      }
    }
  }
}
