/**
 * What a connection does between calls: prepares files, steps the engine's background work a little
 * at a time, and syncs commits of `relaxed` durability.
 */

import { currentInstance, engineError, mustBeSound, type Database } from './engine.js';
import type { LocalStore } from './local-store.js';
import type { Durability } from './wire.js';

/** Steps of background work between two calls. */
const MAINTENANCE_STEPS = 4;
/** Longest time from answering a commit with `relaxed` durability to its sync. */
const SYNC_AFTER_MS = 100;

type Timer = ReturnType<typeof setTimeout>;

/** The background work of one connection. */
export class Upkeep {
  readonly #database: Database;
  readonly #store: LocalStore | null;
  readonly #durability: Durability;
  readonly #instance = currentInstance();
  #idle: Timer | null = null;
  #sync: Timer | null = null;
  #stopped = false;

  constructor(database: Database, store: LocalStore | null, durability: Durability) {
    this.#database = database;
    this.#store = store;
    this.#durability = durability;
  }

  /** Schedules what a call may have made necessary. */
  afterCall(): void {
    if (this.#stopped) {
      return;
    }
    this.#maintainSoon();
    if (this.#durability === 'relaxed') {
      // This timer keeps a process of Node alive, so a process that ends by itself loses nothing.
      this.#sync ??= setTimeout(() => {
        this.#sync = null;
        this.#flush();
      }, SYNC_AFTER_MS);
    }
  }

  /** Cancels everything, for good. */
  stop(): void {
    this.#stopped = true;
    for (const timer of [this.#idle, this.#sync]) {
      if (timer !== null) {
        clearTimeout(timer);
      }
    }
  }

  /** Schedules maintenance without keeping a process of Node alive for it. */
  #maintainSoon(): void {
    if (this.#idle === null) {
      this.#idle = setTimeout(() => {
        this.#idle = null;
        void this.#maintain();
      });
      (this.#idle as { unref?: () => void }).unref?.();
    }
  }

  /**
   * Syncs every commit answered since the timer was set. Maintenance syncs too, but may lag behind
   * a burst of commits.
   */
  #flush(): void {
    try {
      mustBeSound(this.#instance);
      this.#database.flush();
    } catch (error) {
      // The next commit reports the failure.
      engineError(error);
    }
  }

  async #maintain(): Promise<void> {
    try {
      mustBeSound(this.#instance);
      await this.#store?.prepare();
      mustBeSound(this.#instance);
      if (!this.#stopped && this.#database.maintain(MAINTENANCE_STEPS)) {
        this.#maintainSoon();
      }
    } catch (error) {
      // The statement that depends on what failed here reports the failure.
      engineError(error);
    }
  }
}
