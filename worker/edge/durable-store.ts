/**
 * A database's files in the storage of a Durable Object: rows of its SQLite database, which is
 * synchronous. The platform's output gate keeps back every answer until what was written before it is
 * durable, and writes without an `await` between them are atomic; so `sync` has nothing to do, and a
 * commit is never answered before it is durable.
 *
 * A file is a list of extents: runs of bytes, each a row, without holes or overlaps. Appending writes one
 * row, or makes the last one longer while it is small. A large write is cut into short extents, because
 * SQLite reads a row whole, and a point read needs a few bytes of it.
 */

import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import type { Alarm, AlarmStorage } from './alarm.js';

/** The part of `DurableObjectState` that a database uses. */
export interface DurableState {
  readonly storage: Partial<AlarmStorage> & {
    readonly sql: {
      exec(query: string, ...bindings: (string | number | ArrayBuffer)[]): Iterable<object>;
    };
  };
}

/** Longest extent that a write makes. */
const EXTENT_BYTES = 8_192;
/** An extent up to this length is written again when bytes are appended: about a page of SQLite. */
const APPENDED_BYTES = 4_096;

const SCHEMA = [
  'create table if not exists nacre_file (id integer primary key, name text not null unique)',
  `create table if not exists nacre_extent (
     file integer not null, at integer not null, bytes blob not null, primary key (file, at)
   ) without rowid`,
];

/** What SQLite says where there is no room, and the platform where an object may have no more. */
const IS_FULL =
  /SQLITE_(?:FULL|TOOBIG)|is full|too big|exceed\w* .*(?:storage|limit|size)|(?:storage|limit|size).* exceed/i;

/** Files of running statements: they would take space that is paid for, and be no larger than memory. */
const TEMPORARY = /^tmp-/;

/** Whether a storage is being called. */
let isCalling = false;

/**
 * Whether the engine was left in the middle of a call: an object that is reset while it calls its storage
 * never comes back, and the next call in its isolate finds the engine as it was. Answers so once.
 */
export function wasCutOff(): boolean {
  const was = isCalling;
  isCalling = false;
  return was;
}

/**
 * Storages that have an open database, by what executes their SQL, which a state that an application made has
 * of the object: an isolate has several objects, each with its own.
 */
const held = new WeakSet<object>();

interface OpenFile {
  readonly id: number;
  readonly name: string;
  /** Where each extent begins, and at the end the file's length. */
  readonly bounds: number[];
}

/** A folder of files in an object's storage. */
export class DurableStore implements OwnedStore {
  readonly place = 'durable-object';
  readonly #storage: DurableState['storage'];
  readonly #files = new Map<string, OpenFile>();
  readonly #byId = new Map<number, OpenFile>();
  readonly #alarm: Alarm | undefined;
  #nextId = 1;
  #closed = false;

  /** Opens the storage of an object, which sets an alarm when it is written, if one is given. Fails with `in_use` if it has a database open. */
  constructor({ storage }: DurableState, alarm?: Alarm) {
    this.#alarm = alarm;
    if (typeof storage?.sql?.exec !== 'function') {
      throw nacreError(
        'unsupported',
        'the Durable Object has no SQLite storage: list its class under new_sqlite_classes in a migration',
      );
    }
    if (held.has(storage.sql)) {
      throw nacreError('in_use', 'this Durable Object has its database open: share one connection');
    }
    this.#storage = storage;
    SCHEMA.forEach((sql) => this.#run(sql));
    for (const row of this.#run('select id, name from nacre_file')) {
      const { id, name } = row as { id: number; name: string };
      this.#remember({ id, name, bounds: this.#boundsOf(id) });
    }
    held.add(storage.sql);
  }

  list(): string[] {
    return [...this.#files.keys()];
  }

  open(name: string): number {
    return this.#named(name).id;
  }

  create(name: string): number {
    this.#mustBeOpen();
    if (this.#files.has(name)) {
      throw nacreError('already_exists', `file ${name} is already in the Durable Object`);
    }
    if (TEMPORARY.test(name)) {
      throw nacreError(
        'limit',
        'a statement needs more than its memory limit, and a Durable Object has no room for temporary files',
      );
    }
    const file = { id: this.#nextId, name, bounds: [0] };
    this.#change('insert into nacre_file (id, name) values (?, ?)', file.id, name);
    this.#remember(file);
    return file.id;
  }

  remove(name: string): void {
    const { id } = this.#named(name);
    this.#change('delete from nacre_extent where file = ?', id);
    this.#change('delete from nacre_file where id = ?', id);
    this.#files.delete(name);
    this.#byId.delete(id);
  }

  release(_file: number): void {
    // A file is its rows, open or not.
  }

  len(file: number): number {
    return lengthOf(this.#file(file));
  }

  read(id: number, offset: number, buffer: Uint8Array): void {
    const file = this.#file(id);
    if (offset + buffer.length > lengthOf(file)) {
      throw nacreError('corrupt', `file ${file.name} ends before byte ${offset + buffer.length}`);
    }
    let [done, extent] = [0, extentAt(file, offset)];
    while (done < buffer.length) {
      const at = file.bounds[extent]!;
      const bytes = this.#extent(file, at);
      const from = offset + done - at;
      const part = bytes.subarray(from, from + buffer.length - done);
      buffer.set(part, done);
      done += part.length;
      extent++;
    }
  }

  write(id: number, offset: number, bytes: Uint8Array): void {
    const file = this.#file(id);
    if (bytes.length > 0 && offset > lengthOf(file)) {
      this.truncate(id, offset);
    }
    const inside = Math.min(bytes.length, Math.max(0, lengthOf(file) - offset));
    this.#overwrite(file, offset, bytes.subarray(0, inside));
    this.#append(file, bytes.subarray(inside));
  }

  truncate(id: number, len: number): void {
    const file = this.#file(id);
    while (lengthOf(file) < len) {
      this.#append(file, new Uint8Array(Math.min(EXTENT_BYTES, len - lengthOf(file))));
    }
    while (lengthOf(file) > len) {
      const last = file.bounds.length - 2;
      const at = file.bounds[last]!;
      if (at >= len) {
        this.#change('delete from nacre_extent where file = ? and at = ?', file.id, at);
        file.bounds.pop();
      } else {
        this.#put(file, at, this.#extent(file, at).slice(0, len - at));
        file.bounds[last + 1] = len;
      }
    }
  }

  sync(file: number): void {
    this.#file(file);
  }

  prepare(): undefined {
    return undefined;
  }

  ranShort(): boolean {
    return false;
  }

  withoutPreparing<T>(work: () => T): T {
    return work();
  }

  bytes(): number {
    return [...this.#files.values()].reduce((sum, file) => sum + lengthOf(file), 0);
  }

  close(): void {
    if (!this.#closed) {
      this.#closed = true;
      held.delete(this.#storage.sql);
    }
  }

  /** Replaces bytes that are there. */
  #overwrite(file: OpenFile, offset: number, bytes: Uint8Array): void {
    let [done, extent] = [0, extentAt(file, offset)];
    while (done < bytes.length) {
      const [at, end] = [file.bounds[extent]!, file.bounds[extent + 1]!];
      const whole = this.#extent(file, at);
      const part = bytes.subarray(done, end - offset);
      whole.set(part, offset + done - at);
      this.#put(file, at, whole);
      done += part.length;
      extent++;
    }
  }

  /** Adds bytes at the end. */
  #append(file: OpenFile, bytes: Uint8Array): void {
    let done = 0;
    const { bounds } = file;
    const last = bounds.length - 2;
    const lastLength = last < 0 ? 0 : lengthOf(file) - bounds[last]!;
    if (bytes.length > 0 && lastLength > 0 && lastLength + bytes.length <= APPENDED_BYTES) {
      const longer = new Uint8Array(lastLength + bytes.length);
      longer.set(this.#extent(file, bounds[last]!));
      longer.set(bytes, lastLength);
      this.#put(file, bounds[last]!, longer);
      bounds[last + 1]! += bytes.length;
      return;
    }
    while (done < bytes.length) {
      const part = bytes.subarray(done, done + EXTENT_BYTES);
      const at = lengthOf(file);
      this.#put(file, at, part);
      bounds.push(at + part.length);
      done += part.length;
    }
  }

  #put(file: OpenFile, at: number, bytes: Uint8Array): void {
    // A copy: the engine's memory is not to be seen by the storage.
    const copy = bytes.slice().buffer as ArrayBuffer;
    this.#change(
      'insert or replace into nacre_extent (file, at, bytes) values (?, ?, ?)',
      file.id,
      at,
      copy,
    );
  }

  #extent(file: OpenFile, at: number): Uint8Array {
    const rows = this.#run('select bytes from nacre_extent where file = ? and at = ?', file.id, at);
    const [row] = rows as { bytes: ArrayBuffer }[];
    if (row === undefined) {
      throw nacreError('corrupt', `file ${file.name} lacks its bytes from ${at} on`);
    }
    return new Uint8Array(row.bytes);
  }

  /** Where a file's extents begin, and its length. */
  #boundsOf(id: number): number[] {
    const bounds = [0];
    const rows = this.#run(
      'select at, length(bytes) as bytes from nacre_extent where file = ? order by at',
      id,
    );
    for (const row of rows) {
      const { at, bytes } = row as { at: number; bytes: number };
      if (at !== bounds.at(-1)) {
        throw nacreError('corrupt', `a file lacks its bytes from ${bounds.at(-1)} to ${at}`);
      }
      bounds.push(at + bytes);
    }
    return bounds;
  }

  #change(sql: string, ...bindings: (string | number | ArrayBuffer)[]): void {
    this.#alarm?.wrote();
    this.#run(sql, ...bindings);
  }

  #run(sql: string, ...bindings: (string | number | ArrayBuffer)[]): object[] {
    isCalling = true;
    let rows: object[];
    try {
      rows = [...this.#storage.sql.exec(sql, ...bindings)];
    } catch (error) {
      isCalling = false;
      const isFull = IS_FULL.test(String(error));
      throw nacreError(
        isFull ? 'limit' : 'io',
        `the storage of the Durable Object ${isFull ? 'is full' : 'failed'}: ${String(error)}`,
        error,
      );
    }
    // Not in a `finally`, which runs when a call is cut off as well.
    isCalling = false;
    return rows;
  }

  #remember(file: OpenFile): void {
    this.#files.set(file.name, file);
    this.#byId.set(file.id, file);
    this.#nextId = Math.max(this.#nextId, file.id + 1);
  }

  #named(name: string): OpenFile {
    this.#mustBeOpen();
    const file = this.#files.get(name);
    if (file === undefined) {
      throw nacreError('not_found', `there is no file ${name} in the Durable Object`);
    }
    return file;
  }

  #file(id: number): OpenFile {
    this.#mustBeOpen();
    const file = this.#byId.get(id);
    if (file === undefined) {
      throw nacreError('io', 'the file was removed');
    }
    return file;
  }

  #mustBeOpen(): void {
    if (this.#closed) {
      throw nacreError('closed', 'the database is closed');
    }
  }
}

const lengthOf = ({ bounds }: OpenFile): number => bounds.at(-1)!;

/** Number of the extent that has a byte. */
function extentAt({ bounds }: OpenFile, offset: number): number {
  let [low, high] = [0, bounds.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (bounds[middle]! <= offset) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
