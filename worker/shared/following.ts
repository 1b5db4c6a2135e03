/** Looks now and then for what the writer of a database that is only read has uploaded since. */

import { answerOf, currentInstance, engineError, mustBeSound, type Database } from './engine.js';

/** Follows the writer of one database. */
export class Following {
  readonly #database: Database;
  readonly #everyMs: number;
  readonly #changed: () => void;
  readonly #instance = currentInstance();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Looks after each pause of this length. `changed` is called when something has become visible. */
  constructor(database: Database, everyMs: number, changed: () => void) {
    this.#database = database;
    this.#everyMs = everyMs;
    this.#changed = changed;
    this.#soon();
  }

  /** Looks no more, for good. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #soon(): void {
    if (!this.#isOver) {
      // Of a process of Node that follows, it keeps it going.
      this.#timer = setTimeout(() => void this.#look(), this.#everyMs);
    }
  }

  async #look(): Promise<void> {
    try {
      mustBeSound(this.#instance);
      if ((await answerOf<boolean>(this.#database.refresh())) && !this.#isOver) {
        this.#changed();
      }
    } catch (error) {
      // What was visible stays so, and the lag grows: `db.refresh` reports why.
      engineError(error);
    }
    this.#soon();
  }
}
