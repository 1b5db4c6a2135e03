/**
 * A database's files in the origin private file system, with synchronous calls only.
 *
 * Opening a file in OPFS is asynchronous, so the store keeps a pool of physical files whose access
 * handles are open. The first sector of each physical file says which logical file it holds
 * (`opfs-header.ts`); creating or removing a logical file rewrites that sector. `prepare` keeps
 * spare files ready, and more of them after a shortage. The last spare files are reserved for the
 * log and its snapshots, without which the database could not go on. A file named LOCK locks the
 * directory: only one access handle can be open on it.
 *
 * There may be more files than handles. Files that are written once, such as segments, can be read
 * without one (`opfs-cold.ts`). Those used least give up their handles when more are needed, and
 * get one again once they have been read often.
 *
 * Invariants: a free physical file is durably empty before it is reused, so that a new file never
 * shows bytes of an old one after a crash. At most MAX_HANDLES handles are open (Safari allows about
 * 250). A file without a handle is never written, and its bytes are durable.
 */

import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { ColdFile } from './opfs-cold.js';
import { all, canCool, newFile, noStorageLeft, sizeOf, type Logical } from './opfs-file.js';
import { databaseDirectory, openExclusive, type SyncAccessHandle } from './opfs-handles.js';
import {
  decodeHeader,
  encodeHeader,
  HEADER_BYTES,
  isFileName,
  type Header,
} from './opfs-header.js';

const LOCK = 'LOCK';
const MIN_SPARE = 8;
const SPARE_AFTER_PREPARE = 12;
const MAX_SPARE = 24;
/** How long more spare files are kept after a shortage, in milliseconds. */
const SHORTAGE_MS = 5_000;
const MAX_HANDLES = 220;
/** Handles of files that could do without, above which those used least are closed. */
const MAX_WARM = 128;
/** Reads of a file without a handle after which it gets one. */
const READS_UNTIL_WARM = 16;
/** Size from which a removed file is not emptied and used again: emptying takes time by size. */
const LARGE_BYTES = 8 * 2 ** 20;
/** Spare files reserved for the names that `ALWAYS_SERVED` matches. */
const RESERVED = 2;
const ALWAYS_SERVED = /^(log|snap)-/;

/** A physical file with a handle. */
interface Physical {
  /** Name in the directory. */
  entry: string;
  handle: SyncAccessHandle;
}

/** A physical file as opening finds it, with a handle or without. */
interface Found {
  entry: string;
  place: SyncAccessHandle | ColdFile;
  header: Header | null;
}

/** A directory of files, locked until it is closed. */
export class OpfsStore implements OwnedStore {
  readonly place = 'opfs';
  readonly #database: string;
  readonly #directory: FileSystemDirectoryHandle;
  readonly #lock: SyncAccessHandle;
  readonly #byName = new Map<string, Logical>();
  readonly #byId = new Map<number, Logical>();
  #spare: Physical[] = [];
  /** Physical files of removed files that could not be emptied. */
  #unusable: Physical[] = [];
  /** Number of spare files to keep. */
  #wanted = SPARE_AFTER_PREPARE;
  #ranShort = false;
  /** Whether a synchronous call runs, which cannot wait for prepared files. */
  #cannotWait = false;
  /** When the last shortage is over. */
  #shortUntil = 0;
  #generation = 0;
  #nextEntry = 0;
  #nextId = 1;
  #uses = 0;
  #preparing: Promise<void> | null = null;
  /** Settles when no asynchronous change of the handles is under way; null if none is. */
  #changing: Promise<void> | null = null;
  /** Files without a handle that are read often. */
  readonly #toWarm = new Set<Logical>();
  /** Removals of physical files that have not settled. */
  readonly #removals = new Set<Promise<void>>();
  /** False where a file with a handle has no snapshot: then handles stay open. */
  #canCool = true;
  #closed = false;

  private constructor(
    database: string,
    directory: FileSystemDirectoryHandle,
    lock: SyncAccessHandle,
  ) {
    this.#database = database;
    this.#directory = directory;
    this.#lock = lock;
  }

  /**
   * Opens a database's directory, creating it if it does not exist. Fails with `in_use` if another
   * worker has it open for longer than `patienceMs`.
   */
  static async open(database: string, patienceMs?: number): Promise<OpfsStore> {
    const directory = await databaseDirectory(database);
    const store = new OpfsStore(
      database,
      directory,
      await openExclusive(directory, LOCK, database, patienceMs),
    );
    try {
      await store.#load();
      await store.prepare();
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  async #load(): Promise<void> {
    const entries: string[] = [];
    for await (const entry of this.#directory.keys()) {
      if (/^p\d+$/.test(entry)) {
        entries.push(entry);
        this.#nextEntry = Math.max(this.#nextEntry, Number(entry.slice(1)) + 1);
      }
    }
    const found =
      entries.length <= MAX_WARM
        ? await all(entries.map((entry) => this.#find(entry)))
        : await all(entries.map((entry) => this.#findCold(entry)));
    await this.#adopt(found);
  }

  /** Opens an existing physical file. From then on `close` closes it. */
  async #find(entry: string): Promise<Found> {
    const handle = await openExclusive(this.#directory, entry, this.#database);
    this.#spare.push({ entry, handle });
    const sector = new Uint8Array(HEADER_BYTES);
    const filled = handle.read(sector, { at: 0 });
    return { entry, place: handle, header: filled === HEADER_BYTES ? decodeHeader(sector) : null };
  }

  /** Reads the header of an existing physical file without opening a handle. */
  async #findCold(entry: string): Promise<Found> {
    const place = await ColdFile.of(this.#directory, entry);
    const sector = await place.head(HEADER_BYTES);
    return { entry, place, header: sector.length === HEADER_BYTES ? decodeHeader(sector) : null };
  }

  /** Takes the physical files found at opening into the pool. */
  async #adopt(found: Found[]): Promise<void> {
    const named = new Map<string, { file: Found; generation: number }>();
    for (const file of found) {
      const { name = null, generation = 0 } = file.header ?? {};
      this.#generation = Math.max(this.#generation, generation);
      // Two files of one name: a crash undid a removal after the name was used again. The newer one
      // counts.
      if (name !== null && generation >= (named.get(name)?.generation ?? 0)) {
        named.set(name, { file, generation });
      }
    }
    this.#spare = [];
    for (const [name, { file }] of named) {
      const known = this.#remember(name, file.entry, file.place);
      known.synced = known.version;
    }
    const free = found.filter((file) => named.get(file.header?.name ?? '')?.file !== file);
    for (const { entry, place, header } of free) {
      if (place instanceof ColdFile) {
        // There are enough files: this one is not needed.
        this.#discard(entry);
        continue;
      }
      this.#spare.push({ entry, handle: place });
      if (header === null || header.name === null) {
        this.#empty(place);
      } else {
        this.#unname(place);
        this.#empty(place);
      }
    }
    const written = [...this.#byName.values()].filter((file) => !file.isWrittenOnce);
    await all(written.map((file) => this.#giveHandle(file)));
  }

  list(): string[] {
    return [...this.#byName.keys()];
  }

  open(name: string): number {
    const file = this.#byName.get(name);
    if (file === undefined) {
      throw nacreError('not_found', `file ${name} is not in opfs://${this.#database}`);
    }
    return file.id;
  }

  create(name: string): number {
    this.#mustBeOpen();
    if (!isFileName(name)) {
      throw nacreError('type', `'${name}' is not a file name`);
    }
    if (this.#byName.has(name)) {
      throw nacreError('already_exists', `file ${name} is already in opfs://${this.#database}`);
    }
    const file = this.#spare.at(-1);
    if (file === undefined || (this.#spare.length <= RESERVED && !ALWAYS_SERVED.test(name))) {
      const full = this.#spare.length >= this.#mostSpare();
      this.#ranShort = !full;
      const why = full ? `${MAX_HANDLES} are open` : 'too many are created at once';
      throw nacreError('limit', `no spare file for ${name} in opfs://${this.#database}: ${why}`);
    }
    this.#writeHeader(file.handle, name);
    this.#spare.pop();
    const created = this.#remember(name, file.entry, file.handle);
    created.lastUsed = ++this.#uses;
    return created.id;
  }

  remove(name: string): void {
    const file = this.#byName.get(name);
    if (file === undefined) {
      throw nacreError('not_found', `file ${name} is not in opfs://${this.#database}`);
    }
    const { entry, place } = file;
    this.#byName.delete(name);
    this.#byId.delete(file.id);
    this.#toWarm.delete(file);
    if (place instanceof ColdFile) {
      this.#discard(entry);
      return;
    }
    try {
      this.#unname(place);
      if (place.getSize() < LARGE_BYTES) {
        this.#empty(place);
        this.#spare.push({ entry, handle: place });
        return;
      }
    } catch (error) {
      this.#unusable.push({ entry, handle: place });
      throw error;
    }
    place.close();
    this.#discard(entry);
  }

  release(_file: number): void {
    // The store decides which handles stay open.
  }

  len(file: number): number {
    return Math.max(0, sizeOf(this.#file(file).place) - HEADER_BYTES);
  }

  read(id: number, offset: number, buffer: Uint8Array): void {
    const file = this.#file(id);
    file.lastUsed = ++this.#uses;
    const { place, name } = file;
    let filled: number;
    if (place instanceof ColdFile) {
      filled = place.read(buffer, offset + HEADER_BYTES);
      if (++file.coldReads === READS_UNTIL_WARM) {
        this.#toWarm.add(file);
        this.#warmSoon();
      }
    } else {
      filled = place.read(buffer, { at: offset + HEADER_BYTES });
    }
    if (filled !== buffer.length) {
      throw nacreError('corrupt', `file ${name} ends before byte ${offset + buffer.length}`);
    }
  }

  write(id: number, offset: number, bytes: Uint8Array): void {
    const { handle, name } = this.#changed(id);
    const written = handle.write(bytes, { at: offset + HEADER_BYTES });
    if (written !== bytes.length) {
      throw noStorageLeft(name, this.#database);
    }
  }

  truncate(id: number, len: number): void {
    this.#changed(id).handle.truncate(len + HEADER_BYTES);
  }

  sync(id: number): void {
    const file = this.#file(id);
    // Without a handle it is durable.
    if (!(file.place instanceof ColdFile)) {
      file.place.flush();
      file.synced = file.version;
    }
  }

  /** The handle of a file that is about to be changed. */
  #changed(id: number): { handle: SyncAccessHandle; name: string } {
    const file = this.#file(id);
    if (file.place instanceof ColdFile) {
      throw nacreError('io', `file ${file.name} was complete, and cannot be changed`);
    }
    file.version++;
    return { handle: file.place, name: file.name };
  }

  bytes(): number {
    let sum = 0;
    this.#byName.forEach(({ place }) => (sum += sizeOf(place)));
    this.#spare.forEach(({ handle }) => (sum += handle.getSize()));
    return sum;
  }

  ranShort(): boolean {
    return this.#ranShort;
  }

  /** Opens missing spare files and removes surplus ones. */
  withoutPreparing<T>(work: () => T): T {
    this.#cannotWait = true;
    try {
      return work();
    } finally {
      this.#cannotWait = false;
    }
  }

  prepare(): Promise<void> | undefined {
    if (this.#cannotWait) {
      return undefined;
    }
    const spare = this.#spare.length;
    if (this.#ranShort) {
      this.#ranShort = false;
      this.#wanted = Math.min(2 * this.#wanted, MAX_HANDLES);
      this.#shortUntil = performance.now() + SHORTAGE_MS;
    } else if (performance.now() > this.#shortUntil) {
      this.#wanted = SPARE_AFTER_PREPARE;
    }
    const least = this.#wanted > SPARE_AFTER_PREPARE ? this.#wanted : MIN_SPARE;
    const enough = spare >= least || spare >= this.#mostSpare();
    if (this.#closed || (enough && spare <= Math.max(MAX_SPARE, this.#wanted))) {
      return undefined;
    }
    this.#preparing ??= this.#change(() => this.#refill()).finally(() => {
      this.#preparing = null;
    });
    return this.#preparing;
  }

  async #refill(): Promise<void> {
    while (this.#spare.length > Math.max(MAX_SPARE, this.#wanted)) {
      const { entry, handle } = this.#spare.pop()!;
      handle.close();
      await this.#directory.removeEntry(entry);
    }
    const wanted = Math.min(this.#wanted, this.#mostSpare()) - this.#spare.length;
    if (wanted <= 0) {
      return;
    }
    await this.#cool(Math.max(this.#handles() + wanted - MAX_HANDLES, this.#warm() - MAX_WARM));
    const missing = Math.min(wanted, MAX_HANDLES - this.#handles());
    const entries = Array.from({ length: Math.max(0, missing) }, () => `p${this.#nextEntry++}`);
    const opened = await Promise.allSettled(
      entries.map(async (entry) => {
        const handle = await openExclusive(this.#directory, entry, this.#database);
        if (this.#closed) {
          handle.close();
        } else {
          this.#spare.push({ entry, handle });
        }
      }),
    );
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed !== undefined && this.#spare.length === 0) {
      throw failed.reason;
    }
  }

  /** Gives handles to files that are read often, one after another. */
  #warmSoon(): void {
    const [next] = this.#toWarm;
    if (next === undefined || this.#changing !== null) {
      return;
    }
    this.#toWarm.delete(next);
    void this.#change(async () => {
      if (this.#warm() >= MAX_WARM || this.#handles() >= MAX_HANDLES) {
        await this.#cool(1);
      }
      if (this.#handles() < MAX_HANDLES) {
        await this.#giveHandle(next);
      }
    }).catch(() => {
      // It is read without a handle, as before.
    });
  }

  /** Opens a handle for a file without one. */
  async #giveHandle(file: Logical): Promise<void> {
    if (!(file.place instanceof ColdFile) || this.#closed) {
      return;
    }
    const handle = await openExclusive(this.#directory, file.entry, this.#database);
    if (this.#closed) {
      handle.close();
      return;
    }
    if (this.#byId.get(file.id) !== file) {
      // It was removed meanwhile, which the opening handle prevented.
      handle.close();
      this.#discard(file.entry);
      return;
    }
    file.place = handle;
    file.coldReads = 0;
  }

  /** Closes the handles of files that can do without and were not read for longest. */
  async #cool(count: number): Promise<void> {
    if (count <= 0 || !this.#canCool) {
      return;
    }
    const files = [...this.#byName.values()].filter(canCool);
    files.sort((a, b) => a.lastUsed - b.lastUsed);
    await Promise.all(files.slice(0, count).map((file) => this.#takeHandle(file)));
  }

  async #takeHandle(file: Logical): Promise<void> {
    const { version, entry } = file;
    let before: ColdFile;
    try {
      before = await ColdFile.of(this.#directory, entry);
    } catch {
      this.#canCool = false;
      return;
    }
    // Meanwhile it may have been removed or written, or the store closed.
    const { place } = file;
    if (this.#byId.get(file.id) !== file || file.version !== version || place instanceof ColdFile) {
      return;
    }
    place.close();
    file.place = before;
    file.coldReads = 0;
    // Some systems change the time of the last change when a file is closed, which ends snapshots.
    const after = await ColdFile.of(this.#directory, entry).catch(() => null);
    if (after !== null && file.place === before) {
      file.place = after;
    }
  }

  /** Runs asynchronous changes of the handles one after another. */
  #change(work: () => Promise<void>): Promise<void> {
    const turn = (this.#changing ?? Promise.resolve()).then(work);
    const settled = turn
      .catch(() => {})
      .then(() => {
        if (this.#changing === settled) {
          this.#changing = null;
          this.#warmSoon();
        }
      });
    this.#changing = settled;
    return turn;
  }

  /** Removes a physical file that has no handle. A failure leaves an orphan, as a crash would. */
  #discard(entry: string): void {
    const removal = this.#directory
      .removeEntry(entry)
      .catch(() => {})
      .then(() => {
        this.#removals.delete(removal);
      });
    this.#removals.add(removal);
  }

  /** Number of open handles, without that of the lock. */
  #handles(): number {
    let count = this.#spare.length + this.#unusable.length;
    this.#byName.forEach(({ place }) => (count += place instanceof ColdFile ? 0 : 1));
    return count;
  }

  /** Number of files that could do without their handles. */
  #warm(): number {
    let count = 0;
    this.#byName.forEach((file) => (count += canCool(file) ? 1 : 0));
    return count;
  }

  /** Number of spare files there can be at most at the moment. */
  #mostSpare(): number {
    const needed = this.#handles() - this.#spare.length - (this.#canCool ? this.#warm() : 0);
    return Math.max(0, MAX_HANDLES - needed);
  }

  close(): void {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    for (const { place } of this.#byName.values()) {
      if (!(place instanceof ColdFile)) {
        place.close();
      }
    }
    [...this.#spare, ...this.#unusable].forEach(({ handle }) => handle.close());
    this.#byName.clear();
    this.#byId.clear();
    this.#toWarm.clear();
    this.#spare = [];
    this.#unusable = [];
    if (this.#removals.size === 0) {
      this.#lock.close();
    } else {
      // The next owner must not find files that are being removed.
      void Promise.all(this.#removals).then(() => this.#lock.close());
    }
  }

  #mustBeOpen(): void {
    if (this.#closed) {
      throw nacreError('closed', `opfs://${this.#database} is closed`);
    }
  }

  #file(id: number): Logical {
    const file = this.#byId.get(id);
    if (file === undefined) {
      this.#mustBeOpen();
      throw nacreError(
        'not_found',
        `a file of opfs://${this.#database} was removed while it was open`,
      );
    }
    return file;
  }

  #remember(name: string, entry: string, place: SyncAccessHandle | ColdFile): Logical {
    const file = newFile(this.#nextId++, name, entry, place);
    this.#byName.set(name, file);
    this.#byId.set(file.id, file);
    return file;
  }

  #writeHeader(handle: SyncAccessHandle, name: string | null): void {
    const sector = encodeHeader({ name, generation: ++this.#generation });
    if (handle.write(sector, { at: 0 }) !== HEADER_BYTES) {
      throw noStorageLeft(name ?? 'a file header', this.#database);
    }
  }

  /**
   * Removes the name, durably. The data goes after it: in the other order a crash could leave a
   * name without data.
   */
  #unname(handle: SyncAccessHandle): void {
    this.#writeHeader(handle, null);
    handle.flush();
  }

  #empty(handle: SyncAccessHandle): void {
    if (handle.getSize() > HEADER_BYTES) {
      handle.truncate(HEADER_BYTES);
      handle.flush();
    }
  }
}
