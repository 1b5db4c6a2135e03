/**
 * A database's files in IndexedDB, for browsers without the origin private file system. The engine
 * reads and writes files synchronously, which IndexedDB cannot, so all of them are in memory as well.
 *
 * `sync` begins a transaction of IndexedDB that stores everything that has changed in any file, so what
 * is stored is always the state of one moment. `settled` answers when it is durable: until then the
 * connection keeps back its answers, so that no client learns of a commit that could still be lost.
 * While one transaction runs, the changes of all later syncs wait for the next.
 */

import { nacreError, type NacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { IdbFile } from './idb-file.js';
import { Idb } from './idb.js';
import { holdFiles } from './idb-lock.js';
import { mustBeDatabaseName } from './opfs-handles.js';

/** Files that belong to running statements, and are not stored. */
const TEMPORARY = /^tmp-/;

/** A folder of files, locked until it is closed. */
export class IdbStore implements OwnedStore {
  readonly place = 'indexeddb';
  readonly #database: string;
  readonly #idb: Idb;
  readonly #unlock: () => void;
  readonly #byName = new Map<string, IdbFile>();
  readonly #byId = new Map<number, IdbFile>();
  /** Stored files that were removed since. */
  #removed: IdbFile[] = [];
  #nextId = 1;
  /** Settles when the transaction under way has ended. */
  #storing: Promise<void> | null = null;
  /** Settles when the next one has ended, which stores what was synced since that one began. */
  #next: Promise<void> | null = null;
  #failure: NacreError | null = null;
  #closed = false;

  private constructor(database: string, idb: Idb, unlock: () => void) {
    this.#database = database;
    this.#idb = idb;
    this.#unlock = unlock;
  }

  /** Whether a database of this name is in IndexedDB. */
  static async has(database: string): Promise<boolean> {
    return Idb.has(database);
  }

  /**
   * Opens a database, creating it if it does not exist. Fails with `in_use` if another worker has it
   * open for longer than `patienceMs`.
   */
  static async open(database: string, patienceMs?: number): Promise<IdbStore> {
    mustBeDatabaseName(database);
    const unlock = await holdFiles(database, patienceMs);
    let idb: Idb | null = null;
    try {
      idb = await Idb.open(database);
      const store = new IdbStore(database, idb, unlock);
      for (const file of await idb.files()) {
        store.#remember(file);
      }
      return store;
    } catch (error) {
      idb?.close();
      unlock();
      throw error;
    }
  }

  list(): string[] {
    return [...this.#byName.keys()];
  }

  open(name: string): number {
    return this.#named(name).id;
  }

  create(name: string): number {
    this.#mustBeSound();
    if (this.#byName.has(name)) {
      throw nacreError('already_exists', `file ${name} is already in ${this.#url()}`);
    }
    const file = new IdbFile(this.#nextId, name);
    this.#remember(file);
    return file.id;
  }

  remove(name: string): void {
    this.#mustBeSound();
    const file = this.#named(name);
    this.#byName.delete(name);
    this.#byId.delete(file.id);
    if (file.isStored) {
      this.#removed.push(file);
    }
  }

  release(_file: number): void {
    // Files are in memory, open or not.
  }

  len(file: number): number {
    return this.#file(file).length;
  }

  read(id: number, offset: number, buffer: Uint8Array): void {
    const file = this.#file(id);
    if (offset + buffer.length > file.length) {
      throw nacreError('corrupt', `file ${file.name} ends before byte ${offset + buffer.length}`);
    }
    file.read(offset, buffer);
  }

  write(id: number, offset: number, bytes: Uint8Array): void {
    this.#mustBeSound();
    this.#file(id).write(offset, bytes);
  }

  truncate(id: number, len: number): void {
    this.#mustBeSound();
    this.#file(id).truncate(len);
  }

  sync(id: number): void {
    this.#mustBeSound();
    this.#file(id);
    if (this.#next === null) {
      // After the task, so that several syncs of one statement take one transaction.
      this.#next = (this.#storing ?? Promise.resolve()).then(() => this.#store());
      // Reported to the calls that wait, and to all later ones.
      this.#next.catch(() => {});
    }
  }

  settled(): Promise<void> | null {
    // Later syncs take a later transaction, which it does not wait for.
    return this.#failure === null ? (this.#next ?? this.#storing) : Promise.reject(this.#failure);
  }

  async #store(): Promise<void> {
    this.#storing = this.#next;
    this.#next = null;
    try {
      if (!this.#closed) {
        const changed = [...this.#byId.values()].filter((file) => !TEMPORARY.test(file.name));
        const removed = this.#removed;
        this.#removed = [];
        await this.#idb.store(changed, removed);
      }
    } catch (error) {
      this.#failure = failureOf(error, this.#url());
      throw this.#failure;
    } finally {
      this.#storing = null;
    }
  }

  prepare(): undefined {
    return undefined;
  }

  withoutPreparing<T>(work: () => T): T {
    return work();
  }

  ranShort(): boolean {
    return false;
  }

  bytes(): number {
    let sum = 0;
    this.#byId.forEach(({ length }) => (sum += length));
    return sum;
  }

  close(): void {
    if (this.#closed) {
      return;
    }
    const ended = this.#next ?? this.#storing ?? Promise.resolve();
    this.#closed = true;
    this.#byName.clear();
    this.#byId.clear();
    this.#idb.close();
    // The next owner must not read before the last transaction has ended.
    void ended.catch(() => {}).then(this.#unlock);
  }

  #remember(file: IdbFile): void {
    this.#nextId = Math.max(this.#nextId, file.id + 1);
    this.#byName.set(file.name, file);
    this.#byId.set(file.id, file);
  }

  #named(name: string): IdbFile {
    const file = this.#byName.get(name);
    if (file === undefined) {
      throw nacreError('not_found', `file ${name} is not in ${this.#url()}`);
    }
    return file;
  }

  #file(id: number): IdbFile {
    const file = this.#byId.get(id);
    if (file === undefined) {
      this.#mustBeSound();
      throw nacreError('not_found', `a file of ${this.#url()} was removed while it was open`);
    }
    return file;
  }

  /** What is in memory must not get further from what is stored once storing has failed. */
  #mustBeSound(): void {
    if (this.#failure !== null) {
      throw this.#failure;
    }
    if (this.#closed) {
      throw nacreError('closed', `${this.#url()} is closed`);
    }
  }

  #url(): string {
    return `opfs://${this.#database}, which is in IndexedDB`;
  }
}

function failureOf(error: unknown, url: string): NacreError {
  const { name } = (error ?? {}) as Partial<DOMException>;
  return name === 'QuotaExceededError'
    ? nacreError(
        'limit',
        `no storage left for ${url}: the quota of this origin or the disk is full; free some, then connect again`,
        error,
      )
    : nacreError('io', `IndexedDB did not store ${url}: ${String(error)}; connect again`, error);
}
