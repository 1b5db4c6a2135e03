/**
 * A transaction: a session of its own, begun before the first statement and ended by `db.transaction`.
 * Calls on the database meanwhile run in another session and do not see what is not committed.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import { Queries, type Shared } from './queries.js';

export class Transaction extends Queries {
  #state: 'open' | 'rolled back' | 'ended' = 'open';

  /** Undoes everything so far; the function may return normally afterwards. */
  async rollback(): Promise<void> {
    this.mustBeOpen();
    this.#state = 'rolled back';
    await this.shared.transport.call('end', this.session, 'rollback');
  }

  protected mustBeOpen(): void {
    if (this.#state !== 'open') {
      throw nacreError('closed', 'the transaction has ended');
    }
  }

  /** @internal */
  static async run<T>(
    shared: Shared,
    session: number,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    const tx = new Transaction(shared, session);
    // Not awaited: statements may follow in the same message. If it fails the session does not exist,
    // and so every one of them fails too.
    const begun = shared.transport.call('begin', session);
    begun.catch(() => {});
    try {
      const result = await work(tx);
      await begun;
      if (tx.#state === 'open') {
        tx.#state = 'ended';
        await shared.transport.call('end', session, 'commit');
      }
      return result;
    } catch (error) {
      await begun;
      if (tx.#state === 'open') {
        tx.#state = 'ended';
        // The error that made us roll back is the one to report.
        await shared.transport.call('end', session, 'rollback').catch(() => {});
      }
      throw error;
    }
  }
}
