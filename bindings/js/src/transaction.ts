/**
 * A transaction: a session of its own, begun before its first statement and ended by
 * `db.transaction`. Calls on the database run in another session and do not see the transaction's
 * uncommitted changes.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import { Aborting } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';
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
    options: CallOptions | undefined,
  ): Promise<T> {
    const aborting = new Aborting(options?.signal, 'the transaction was cancelled');
    const tx = new Transaction<S>(client, session);
    const end = async (how: 'commit' | 'rollback' | 'cancel'): Promise<void> => {
      if (tx.#state === 'open') {
        tx.#state = 'ended';
        await client.transport.call('end', session, how);
      }
    };
    // The error that caused it is the one to report.
    const undo = (how: 'rollback' | 'cancel'): Promise<void> => end(how).catch(() => {});
    let undone: Promise<void> | undefined;
    const forget = aborting.on(() => (undone = undo('cancel')));
    // Not awaited, so that statements can follow in the same message. If `begin` fails, the session
    // does not exist and every one of them fails too.
    const begun = client.transport.call('begin', session);
    begun.catch(() => {});
    try {
      const result = await aborting.or(Promise.resolve(work(tx)));
      await begun;
      aborting.check();
      await end('commit');
      return result;
    } catch (error) {
      await begun;
      await (undone ?? undo('rollback'));
      throw error;
    } finally {
      forget();
    }
  }
}
