/**
 * An open database of the engine with what belongs to it as a whole: its files and its background
 * work. The connections of several clients may share it; each has sessions of its own. A commit of
 * one may concern the live queries of all.
 */

import type { ArchivedFile } from './archive.js';
import type { EngineBlobs } from './blobs/engine-blobs.js';
import { afterTrap, answerOf, currentInstance, Database, engineError, isSound } from './engine.js';
import { Following } from './following.js';
import { Functions } from './functions.js';
import { LiveQueries } from './live.js';
import type { OwnedStore } from './local-store.js';
import { nextTask } from './next-task.js';
import { Uploading } from './uploading.js';
import { Upkeep } from './upkeep.js';
import type { Awaitable } from './protocol.js';
import type { EngineOptions } from './wire.js';

/** An open database. */
export class Opened {
  readonly database: Database;
  readonly store: OwnedStore | null;
  readonly instance: number = currentInstance();
  readonly functions: Functions;
  /** Whether a blob store has its files, of which not all are here. */
  readonly hasBlobs: boolean;
  /** Whether commits wait until they are uploaded. */
  readonly holdsCommits: boolean;
  readonly #live = new Set<LiveQueries>();
  readonly #upkeep: Upkeep;
  readonly #uploading: Uploading | null;
  readonly #following: Following | null;
  readonly #forgetTrap: () => void;
  #setStopped = (): void => {};
  readonly #isStrict: boolean;
  /** Settles if the engine stops after an internal error. */
  readonly stopped: Promise<void>;

  private constructor(
    database: Database,
    store: OwnedStore | null,
    options: EngineOptions,
    blobs: EngineBlobs | undefined,
  ) {
    this.database = database;
    this.store = store;
    this.hasBlobs = blobs !== undefined;
    this.holdsCommits = options.durability === 'blob';
    // Of a database that is only read, the steps renew its lease, and warm it.
    const { leaseMs, warm } = blobs?.settings ?? {};
    const hasSteps = this.hasBlobs && !(options.readOnly && leaseMs === 0 && !warm);
    this.#uploading = hasSteps ? new Uploading(database) : null;
    const { followMs } = options;
    this.#following =
      followMs === undefined ? null : new Following(database, followMs, () => this.changed());
    this.functions = new Functions(database);
    this.#isStrict = options.durability !== 'relaxed';
    const worked = () => this.#uploading?.changed();
    this.#upkeep = new Upkeep(database, store, options.durability ?? 'strict', worked);
    this.stopped = new Promise((resolve) => (this.#setStopped = resolve));
    this.#forgetTrap = afterTrap(this);
  }

  /**
   * Opens a database on a store, or in memory without one, with the files of another one if there
   * are any. A blob store has its files as well, or all of them. The store is closed when that fails.
   */
  static async open(
    store: OwnedStore | null,
    options: EngineOptions,
    files: readonly ArchivedFile[],
    blobs?: EngineBlobs,
  ): Promise<Opened> {
    try {
      const named = files.length === 0 ? undefined : files.map(({ name, bytes }) => [name, bytes]);
      const database = await answerOf<Database>(
        Database.open(store ?? undefined, options, named, blobs),
      );
      await store?.settled?.();
      return new Opened(database, store, options, blobs);
    } catch (error) {
      store?.close();
      throw engineError(error);
    }
  }

  /** Makes the live queries of a connection, which run until `forget`. */
  liveQueries(): LiveQueries {
    const live = new LiveQueries(this.database);
    this.#live.add(live);
    return live;
  }

  /** Forgets the live queries of a connection that closes. */
  forget(live: LiveQueries): void {
    this.#live.delete(live);
  }

  /** Does what a call of a connection may have made necessary. */
  afterCall(): void {
    this.#upkeep.afterCall();
    this.#uploading?.changed();
    this.#live.forEach((live) => live.afterCall());
  }

  /** Answers in a later task if background work is late, so that it goes on while calls come. */
  whenPunctual<T>(answer: T): Awaitable<T> {
    return this.#upkeep.isLate ? new Promise((resolve) => nextTask(() => resolve(answer))) : answer;
  }

  /** Something else than a call has changed what queries answer. */
  changed(): void {
    this.#live.forEach((live) => live.afterCall());
  }

  /**
   * Keeps an answer back until every commit that it can show is durable, where the files' `sync` does
   * not wait for that. With `relaxed` durability, only calls that ask for it wait.
   */
  whenDurable<T>(answer: Awaitable<T>, isAsked: boolean): Awaitable<T> {
    const { store } = this;
    if (store?.settled === undefined || !(isAsked || this.#isStrict)) {
      return answer;
    }
    if (answer instanceof Promise) {
      return answer.then((result) => this.whenDurable(result, isAsked) as T);
    }
    return store.settled()?.then(() => answer) ?? answer;
  }

  /** The engine has stopped after an internal error. */
  stop(): void {
    this.#setStopped();
    this.#live.forEach((live) => live.stopped());
    this.store?.close();
  }

  /** Cancels background work. */
  stopUpkeep(): void {
    this.#upkeep.stop();
    this.#uploading?.stop();
    this.#following?.stop();
  }

  /** Closes the database, whose connections have ended, and its files. */
  async close(): Promise<void> {
    try {
      if (isSound(this.instance)) {
        await answerOf(this.database.close());
        await this.store?.settled?.();
      }
    } finally {
      if (isSound(this.instance)) {
        this.database.free();
      }
      this.#forgetTrap();
      this.store?.close();
    }
  }
}
