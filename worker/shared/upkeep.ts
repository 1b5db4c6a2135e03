/**
 * What a connection does between calls: prepares files, does the engine's background work a little
 * at a time, and syncs commits of `relaxed` durability.
 *
 * A message that arrives during background work waits until it pauses, for 8 ms at most. While
 * messages come, it also rests between two pauses, so that they get most of the time.
 */

import {
  answerOf,
  currentInstance,
  engineError,
  isSound,
  mustBeSound,
  type Database,
} from './engine.js';
import type { LocalStore } from './local-store.js';
import type { Durability } from './wire.js';

/** Time in which steps of background work begin; the last one takes a few milliseconds more. */
const WORK_MS = 3;
/** Time to rest after background work while calls come, in multiples of the time it took. */
const REST_FACTOR = 4;
/** Shortest and longest rest. Looking for work after every call would cost as much as reading a row. */
const MIN_REST_MS = 4;
const MAX_REST_MS = 50;
/**
 * How late background work may be. Calls that are answered without a message, as in Node, follow each
 * other without letting timers run.
 */
const MOST_LATE_MS = 20;
/** How often background work waits for absent bytes at once, so that flushes go on meanwhile. */
const MAX_WAITING = 2;
/** Longest time from answering a commit with `relaxed` durability to its sync. */
const SYNC_AFTER_MS = 100;

type Timer = ReturnType<typeof setTimeout>;

/** The background work of one connection. */
export class Upkeep {
  readonly #database: Database;
  readonly #store: LocalStore | null;
  readonly #durability: Durability;
  readonly #worked: () => void;
  readonly #instance = currentInstance();
  #idle: Timer | null = null;
  #sync: Timer | null = null;
  #stopped = false;
  /** Whether calls have come since background work was done last. */
  #called = false;
  /** How often background work waits for absent bytes. */
  #waiting = 0;
  /** When background work may go on. */
  #restsUntil = 0;
  /** When the timer of background work is due, if there is one. */
  #due = 0;

  /** `worked` is called after background work. */
  constructor(
    database: Database,
    store: LocalStore | null,
    durability: Durability,
    worked: () => void,
  ) {
    this.#database = database;
    this.#store = store;
    this.#durability = durability;
    this.#worked = worked;
    // The first write may wait for rows of an earlier connection to be flushed.
    this.#maintainSoon();
  }

  /** Schedules what a call may have made necessary. */
  afterCall(): void {
    if (this.#stopped) {
      return;
    }
    this.#called = true;
    this.#maintainSoon();
    if (this.#durability === 'relaxed') {
      // This timer keeps a process of Node alive, so a process that ends by itself loses nothing.
      this.#sync ??= setTimeout(() => {
        this.#sync = null;
        this.#flush();
      }, SYNC_AFTER_MS);
    }
  }

  /** Whether background work is so late that a call should let it run before it is answered. */
  get isLate(): boolean {
    const isDue = this.#idle !== null && !this.#stopped;
    return isDue && performance.now() > this.#due + MOST_LATE_MS;
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
      const now = performance.now();
      this.#due = Math.max(now, this.#restsUntil);
      this.#idle = setTimeout(() => {
        this.#idle = null;
        void this.#maintain();
      }, this.#due - now);
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
      if (this.#stopped || this.#waiting >= MAX_WAITING) {
        return;
      }
      const more = this.#work();
      if ((more instanceof Promise ? await this.#waited(more) : more) && !this.#stopped) {
        this.#maintainSoon();
      }
      this.#worked();
    } catch (error) {
      // The statement that depends on what failed here reports the failure.
      engineError(error);
      if (!this.#stopped && isSound(this.#instance) && this.#store?.ranShort()) {
        // It failed only for lack of a prepared file.
        this.#maintainSoon();
      }
    }
  }

  async #waited(more: Promise<boolean>): Promise<boolean> {
    this.#waiting += 1;
    try {
      // Work that was due meanwhile may have been put off.
      return (await more) || this.#called;
    } finally {
      this.#waiting -= 1;
    }
  }

  /**
   * Does background work for a while; answers whether more is due. It waits for bytes that are not
   * there, which holds up nothing else.
   */
  #work(): boolean | Promise<boolean> {
    const called = this.#called;
    this.#called = false;
    const began = performance.now();
    const more = answerOf<boolean>(this.#database.maintain(WORK_MS));
    const ended = performance.now();
    const rest = Math.max(MIN_REST_MS, Math.min((ended - began) * REST_FACTOR, MAX_REST_MS));
    this.#restsUntil = ended + (called ? rest : 0);
    return more;
  }
}
