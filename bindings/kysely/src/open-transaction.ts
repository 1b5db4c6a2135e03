/**
 * A transaction that calls begin and end. `db.transaction` runs a function in a transaction; here,
 * that function waits until the transaction is to end.
 */

import type { Database, Transaction } from 'nacredb';

/** A transaction between `begin` and `commit` or `rollback`. */
export class OpenTransaction {
  readonly queries: Transaction;
  /** Lets the function of `db.transaction` return. */
  readonly #end: () => void;
  /** The call of `db.transaction`. */
  readonly #ended: Promise<void>;

  private constructor(queries: Transaction, end: () => void, ended: Promise<void>) {
    this.queries = queries;
    this.#end = end;
    this.#ended = ended;
  }

  static async begin(db: Database): Promise<OpenTransaction> {
    let start = (_: Transaction): void => {};
    let end = (): void => {};
    const started = new Promise<Transaction>((resolve) => (start = resolve));
    const until = new Promise<void>((resolve) => (end = resolve));
    const ended = db.transaction((queries) => {
      start(queries);
      return until;
    });
    // A closed database fails without calling the function.
    const queries = await Promise.race([started, ended.then(() => started)]);
    return new OpenTransaction(queries, end, ended);
  }

  async commit(): Promise<void> {
    this.#end();
    await this.#ended;
  }

  async rollback(): Promise<void> {
    try {
      await this.queries.rollback();
    } finally {
      this.#end();
    }
    await this.#ended;
  }
}
