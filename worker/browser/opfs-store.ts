/**
 * A database's files in the origin private file system, with synchronous calls only.
 *
 * Opening a file in OPFS is asynchronous, so the store keeps a pool of physical files whose access
 * handles stay open as long as the store does. The first sector of each says which logical file it
 * holds (`opfs-header.ts`); creating or removing a logical file rewrites that sector. `prepare`
 * keeps spare files ready, and more of them after a shortage. The last spare files are reserved for
 * the log and its snapshots, without which the database could not go on. A file named LOCK locks
 * the directory: only one access handle can be open on it.
 *
 * Invariants: a free physical file is durably empty before it is reused, so that a new file never
 * shows bytes of an old one after a crash. At most MAX_FILES handles are open (Safari allows about
 * 250).
 */

import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
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
const MAX_FILES = 220;
/** Spare files reserved for the names that `ALWAYS_SERVED` matches. */
const RESERVED = 2;
const ALWAYS_SERVED = /^(log|snap)-/;

interface Physical {
  /** Name in the directory. */
  entry: string;
  handle: SyncAccessHandle;
}

interface Found {
  file: Physical;
  header: Header | null;
}

interface Logical extends Physical {
  name: string;
  id: number;
}

/** A directory of files, locked until it is closed. */
export class OpfsStore implements OwnedStore {
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
  #generation = 0;
  #nextEntry = 0;
  #nextId = 1;
  #preparing: Promise<void> | null = null;
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
   * tab has it open.
   */
  static async open(database: string): Promise<OpfsStore> {
    const directory = await databaseDirectory(database);
    const store = new OpfsStore(
      database,
      directory,
      await openExclusive(directory, LOCK, database),
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
    // Waits for all of them even if one fails: `close` can close only handles that are open.
    const opened = await Promise.allSettled(entries.map((entry) => this.#find(entry)));
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed !== undefined) {
      throw failed.reason;
    }
    this.#adopt(opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])));
  }

  /** Opens an existing physical file. From then on `close` closes it. */
  async #find(entry: string): Promise<Found> {
    const file = { entry, handle: await openExclusive(this.#directory, entry, this.#database) };
    this.#spare.push(file);
    const sector = new Uint8Array(HEADER_BYTES);
    const filled = file.handle.read(sector, { at: 0 });
    return { file, header: filled === HEADER_BYTES ? decodeHeader(sector) : null };
  }

  /** Takes the physical files found at opening into the pool. */
  #adopt(found: Found[]): void {
    const named = new Map<string, { file: Physical; generation: number }>();
    for (const { file, header } of found) {
      const { name = null, generation = 0 } = header ?? {};
      this.#generation = Math.max(this.#generation, generation);
      // Two files of one name: a crash undid a removal after the name was used again. The newer one
      // counts.
      if (name !== null && generation >= (named.get(name)?.generation ?? 0)) {
        named.set(name, { file, generation });
      }
    }
    named.forEach(({ file }, name) => this.#remember(name, file));
    const spare = found.filter(({ file, header }) => named.get(header?.name ?? '')?.file !== file);
    this.#spare = spare.map(({ file }) => file);
    for (const { file, header } of spare) {
      if (header === null || header.name === null) {
        this.#empty(file);
      } else {
        this.#free(file);
      }
    }
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
      const full = this.#byName.size + this.#spare.length >= MAX_FILES;
      this.#ranShort = !full;
      const why = full ? `there are ${MAX_FILES} already` : 'too many are created at once';
      throw nacreError('limit', `no spare file for ${name} in opfs://${this.#database}: ${why}`);
    }
    this.#writeHeader(file, name);
    this.#spare.pop();
    return this.#remember(name, file).id;
  }

  remove(name: string): void {
    const file = this.#byName.get(name);
    if (file === undefined) {
      throw nacreError('not_found', `file ${name} is not in opfs://${this.#database}`);
    }
    const { entry, handle } = file;
    this.#byName.delete(name);
    this.#byId.delete(file.id);
    try {
      this.#free(file);
    } catch (error) {
      this.#unusable.push({ entry, handle });
      throw error;
    }
    this.#spare.push({ entry, handle });
  }

  release(_file: number): void {
    // Handles stay open as long as the store does.
  }

  len(file: number): number {
    return Math.max(0, this.#file(file).handle.getSize() - HEADER_BYTES);
  }

  read(file: number, offset: number, buffer: Uint8Array): void {
    const { handle, name } = this.#file(file);
    const filled = handle.read(buffer, { at: offset + HEADER_BYTES });
    if (filled !== buffer.length) {
      throw nacreError('corrupt', `file ${name} ends before byte ${offset + buffer.length}`);
    }
  }

  write(file: number, offset: number, bytes: Uint8Array): void {
    const { handle, name } = this.#file(file);
    const written = handle.write(bytes, { at: offset + HEADER_BYTES });
    if (written !== bytes.length) {
      throw nacreError(
        'limit',
        `no storage left: ${written} of ${bytes.length} bytes written to ${name}`,
      );
    }
  }

  truncate(file: number, len: number): void {
    this.#file(file).handle.truncate(len + HEADER_BYTES);
  }

  sync(file: number): void {
    this.#file(file).handle.flush();
  }

  bytes(): number {
    let sum = 0;
    for (const { handle } of [...this.#byName.values(), ...this.#spare]) {
      sum += handle.getSize();
    }
    return sum;
  }

  ranShort(): boolean {
    return this.#ranShort;
  }

  /** Opens missing spare files and removes surplus ones. */
  prepare(): Promise<void> | undefined {
    const spare = this.#spare.length;
    if (this.#ranShort) {
      this.#ranShort = false;
      this.#wanted = Math.min(2 * this.#wanted, MAX_FILES);
    }
    const least = this.#wanted > SPARE_AFTER_PREPARE ? this.#wanted : MIN_SPARE;
    const enough = spare >= least || this.#byName.size + spare >= MAX_FILES;
    if (this.#closed || (enough && spare <= Math.max(MAX_SPARE, this.#wanted))) {
      return undefined;
    }
    this.#preparing ??= this.#refill().finally(() => {
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
    const room = MAX_FILES - this.#byName.size - this.#spare.length;
    const missing = Math.min(this.#wanted - this.#spare.length, room);
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

  close(): void {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    for (const { handle } of [...this.#byName.values(), ...this.#spare, ...this.#unusable]) {
      handle.close();
    }
    this.#byName.clear();
    this.#byId.clear();
    this.#spare = [];
    this.#unusable = [];
    this.#lock.close();
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

  #remember(name: string, physical: Physical): Logical {
    const file = { ...physical, name, id: this.#nextId++ };
    this.#byName.set(name, file);
    this.#byId.set(file.id, file);
    return file;
  }

  #writeHeader(file: Physical, name: string | null): void {
    const sector = encodeHeader({ name, generation: ++this.#generation });
    if (file.handle.write(sector, { at: 0 }) !== HEADER_BYTES) {
      throw nacreError(
        'limit',
        `no storage left for ${name ?? 'a file header'} in opfs://${this.#database}`,
      );
    }
  }

  /**
   * Removes the name, durably, and then the data. In the other order a crash could leave a name
   * without data.
   */
  #free(file: Physical): void {
    this.#writeHeader(file, null);
    file.handle.flush();
    this.#empty(file);
  }

  #empty(file: Physical): void {
    if (file.handle.getSize() > HEADER_BYTES) {
      file.handle.truncate(HEADER_BYTES);
      file.handle.flush();
    }
  }
}
