/**
 * A transaction: a session of its own, begun before its first statement and ended by
 * `db.transaction`. Calls on the database run in another session and do not see the transaction's
 * uncommitted changes.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import type { Client } from './client.js';
import { Queries } from './queries.js';
import type { AnySchema } from './schema.js';

/** A running transaction: what `db.transaction` passes to its function. */
export class Transaction<S extends object = AnySchema> extends Queries<S> {
  #state: 'open' | 'rolled back' | 'ended' = 'open';

  /**
   * Undoes every change of the transaction. The function may return normally afterwards, but can
   * run no more SQL.
   *
   * @example
   * ```ts
   * await db.transaction(async (tx) => {
   *   await tx.exec('delete from visit');
   *   await tx.rollback();
   * });
   * console.log((await db.query('select * from visit')).rowCount); // 3
   * ```
   */
  async rollback(): Promise<void> {
    this.mustBeOpen();
    this.#state = 'rolled back';
    await this.client.transport.call('end', this.session, 'rollback');
  }

  protected mustBeOpen(): void {
    if (this.#state !== 'open') {
      throw nacreError('closed', 'the transaction has ended');
    }
  }

  /** @internal */
  static async run<T, S extends object>(
    client: Client,
    session: number,
    work: (tx: Transaction<S>) => Promise<T>,
  ): Promise<T> {
    const tx = new Transaction<S>(client, session);
    // Not awaited, so that statements can follow in the same message. If `begin` fails, the session
    // does not exist and every one of them fails too.
    const begun = client.transport.call('begin', session);
    begun.catch(() => {});
    try {
      const result = await work(tx);
      await begun;
      if (tx.#state === 'open') {
        tx.#state = 'ended';
        await client.transport.call('end', session, 'commit');
      }
      return result;
    } catch (error) {
      await begun;
      if (tx.#state === 'open') {
        tx.#state = 'ended';
        // The error that caused the rollback is the one to report.
        await client.transport.call('end', session, 'rollback').catch(() => {});
      }
      throw error;
    }
  }
}
