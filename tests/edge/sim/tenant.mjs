/** The application of the simulation: a Durable Object that keeps one sequence of numbered events. */

import { SCHEMA, viewOf } from './history.mjs';

/** Attempts of a transaction that meets others. */
const ATTEMPTS = 50;

export class Tenant {
  /** The database, once it is open. */
  db;
  #history;
  #random;

  constructor(connect, options, history, random) {
    this.#history = history;
    this.#random = random;
    this.db = this.#open(connect, options);
  }

  async #open(connect, options) {
    const db = await connect(options);
    for (const sql of SCHEMA) {
      await db.exec(sql);
    }
    return db;
  }

  alarm = async () => (await this.db).alarm();

  /** Adds events in one transaction; answers the attempt that was committed, and its position. */
  async write(kind) {
    const db = await this.db;
    for (let attempts = 1; ; attempts++) {
      try {
        const id = await db.transaction((tx) => this.#write(tx, kind));
        const lag = await db.lag();
        return { id, position: lag?.position ?? null };
      } catch (error) {
        if (error.retryable !== true || attempts === ATTEMPTS) {
          throw error;
        }
      }
    }
  }

  async #write(tx, kind) {
    const { rows } = await tx.query('select n from head where id = 1 for update');
    const [{ n }] = rows;
    const isAbout = n > 1 && kind !== 'add';
    const arg = isAbout ? 1 + this.#random.below(n - 1) : 0;
    const count = kind === 'add' ? 1 + this.#random.below(3) : 1;
    const id = this.#history.begin(n + 1, count, isAbout ? kind : 'add', arg);
    for (const row of this.#history.rowsOf(id)) {
      await tx.query('insert into event values (?, ?, ?, ?, ?, ?)', row);
    }
    if (isAbout && kind === 'amend') {
      await tx.query('update event set v = ? where seq = ?', [n + 1, arg]);
    } else if (isAbout) {
      await tx.query('delete from event where seq <= ?', [arg]);
    }
    await tx.query('update head set n = ? where id = 1', [n + count]);
    return id;
  }

  async view() {
    return viewOf(await this.db);
  }

  /** Moves rows into segments, or segments into one. */
  async optimize() {
    await (await this.db).exec('optimize table event full');
  }

  async upload() {
    await (await this.db).upload();
  }
}
