/**
 * Uploads what is committed, a step at a time, beside everything else: a step waits for the blob store, which
 * holds up nothing. The engine says when the next one is due.
 */

import { answerOf, currentInstance, engineError, mustBeSound, type Database } from './engine.js';

/** From a change to the look at what it made necessary, so that not every call looks. */
const SOON_MS = 4;
/** Longest delay that a timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The uploads of one database. */
export class Uploading {
  readonly #database: Database;
  readonly #instance = currentInstance();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isStepping = false;
  /** Whether something has changed since the step in progress began. */
  #hasChanged = false;
  #isOver = false;

  constructor(database: Database) {
    this.#database = database;
    this.changed();
  }

  /** Something may have been committed. */
  changed(): void {
    if (this.#isStepping) {
      this.#hasChanged = true;
    } else if (this.#timer === null) {
      this.#stepIn(SOON_MS);
    }
  }

  /** Takes no further step, for good. */
  stop(): void {
    this.#isOver = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }

  #stepIn(ms: number): void {
    if (this.#isOver) {
      return;
    }
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        void this.#step();
      },
      Math.min(ms, MAX_TIMER_MS),
    );
    // What is not uploaded when a process of Node ends is in its folder.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #step(): Promise<void> {
    this.#isStepping = true;
    this.#hasChanged = false;
    let restMs = Infinity;
    try {
      mustBeSound(this.#instance);
      // The engine keeps failures, and takes them up again: this is about the step itself.
      [restMs] = await answerOf<[number]>(this.#database.uploadStep());
    } catch (error) {
      engineError(error);
    } finally {
      this.#isStepping = false;
    }
    if (restMs !== Infinity) {
      this.#stepIn(restMs);
    } else if (this.#hasChanged) {
      this.#stepIn(SOON_MS);
    }
  }
}
