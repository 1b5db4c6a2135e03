/**
 * A database's files in a folder, for Node. The folder and its files are the same as the native
 * engine's.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { nacreError } from '../shared/errors.js';
import type { OwnedStore } from '../shared/local-store.js';
import { lockFolder } from './folder-lock.js';

interface OpenFile {
  name: string;
  descriptor: number;
  /** Whether the folder's entry for the file may not be durable yet. */
  fresh: boolean;
}

/** A folder of files, locked until it is closed. */
export class FolderStore implements OwnedStore {
  readonly place = 'folder';
  readonly #folder: string;
  readonly #unlock: () => void;
  readonly #files = new Map<number, OpenFile>();
  #nextId = 1;
  #closed = false;

  private constructor(folder: string, unlock: () => void) {
    this.#folder = folder;
    this.#unlock = unlock;
  }

  /**
   * Opens a folder, creating it if it does not exist. Fails with `in_use` if another process has it
   * open.
   */
  static async open(folder: string): Promise<FolderStore> {
    // Resolved once: the process may change its working directory later.
    const absolute = path.resolve(folder);
    makeFolder(absolute);
    const unlock = await lockFolder(absolute);
    try {
      // The previous owner may have ended between creating a file and syncing its directory entry.
      syncFolder(absolute);
      return new FolderStore(absolute, unlock);
    } catch (error) {
      unlock();
      throw error;
    }
  }

  list(): string[] {
    return fs
      .readdirSync(this.#folder, { withFileTypes: true })
      .filter(
        (entry) =>
          /^[A-Za-z0-9._-]{1,64}$/.test(entry.name) &&
          entry.name !== 'LOCK' &&
          // A symbolic link to a file counts: it is left behind when a file is moved to another
          // disk.
          (entry.isFile() || (entry.isSymbolicLink() && this.#isFile(entry.name))),
      )
      .map((entry) => entry.name);
  }

  #isFile(name: string): boolean {
    return fs.statSync(path.join(this.#folder, name), { throwIfNoEntry: false })?.isFile() ?? false;
  }

  open(name: string): number {
    return this.#open(name, 'r+', false);
  }

  create(name: string): number {
    return this.#open(name, 'wx+', true);
  }

  /** After closing, the folder's files may belong to its next owner. */
  #mustBeOpen(): void {
    if (this.#closed) {
      throw nacreError('closed', `${this.#folder} is closed`);
    }
  }

  #open(name: string, flags: string, fresh: boolean): number {
    this.#mustBeOpen();
    try {
      const descriptor = fs.openSync(path.join(this.#folder, name), flags, 0o644);
      const id = this.#nextId++;
      this.#files.set(id, { name, descriptor, fresh });
      return id;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
        throw nacreError('already_exists', `file ${name} is already in ${this.#folder}`, error);
      }
      throw error;
    }
  }

  remove(name: string): void {
    this.#mustBeOpen();
    fs.unlinkSync(path.join(this.#folder, name));
  }

  release(file: number): void {
    const open = this.#files.get(file);
    if (open !== undefined) {
      this.#files.delete(file);
      fs.closeSync(open.descriptor);
    }
  }

  len(file: number): number {
    return fs.fstatSync(this.#file(file).descriptor).size;
  }

  read(file: number, offset: number, buffer: Uint8Array): void {
    const { name, descriptor } = this.#file(file);
    let filled = 0;
    while (filled < buffer.length) {
      const count = fs.readSync(
        descriptor,
        buffer,
        filled,
        buffer.length - filled,
        offset + filled,
      );
      if (count === 0) {
        throw nacreError('corrupt', `file ${name} ends before byte ${offset + buffer.length}`);
      }
      filled += count;
    }
  }

  write(file: number, offset: number, bytes: Uint8Array): void {
    const { descriptor } = this.#file(file);
    let written = 0;
    while (written < bytes.length) {
      written += fs.writeSync(descriptor, bytes, written, bytes.length - written, offset + written);
    }
  }

  truncate(file: number, len: number): void {
    fs.ftruncateSync(this.#file(file).descriptor, len);
  }

  sync(file: number): void {
    const open = this.#file(file);
    fs.fsyncSync(open.descriptor);
    if (open.fresh) {
      syncFolder(this.#folder);
      open.fresh = false;
    }
  }

  prepare(): undefined {}

  withoutPreparing<T>(work: () => T): T {
    return work();
  }

  ranShort(): boolean {
    return false;
  }

  bytes(): number {
    return this.list().reduce((sum, name) => {
      return (
        sum + (fs.statSync(path.join(this.#folder, name), { throwIfNoEntry: false })?.size ?? 0)
      );
    }, 0);
  }

  close(): void {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    try {
      for (const { descriptor } of this.#files.values()) {
        fs.closeSync(descriptor);
      }
    } finally {
      this.#files.clear();
      this.#unlock();
    }
  }

  #file(id: number): OpenFile {
    const file = this.#files.get(id);
    if (file === undefined) {
      throw nacreError('closed', `${this.#folder} is closed`);
    }
    return file;
  }
}

/** Creates a folder and its missing parents, and makes their directory entries durable. */
function makeFolder(folder: string): void {
  if (fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    return;
  }
  const parent = path.dirname(folder);
  if (parent !== folder) {
    makeFolder(parent);
  }
  // `recursive` accepts a folder that another process has created meanwhile.
  fs.mkdirSync(folder, { recursive: true });
  syncFolder(parent);
}

/**
 * Makes new directory entries durable. Windows cannot sync folders; there the file system's journal
 * has to suffice.
 */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') {
    return;
  }
  const descriptor = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
