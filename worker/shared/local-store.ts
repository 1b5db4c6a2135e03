/**
 * The files of one database as the engine's WebAssembly module sees them: a flat folder,
 * synchronous calls, and open files identified by small numbers. `bindings/wasm/src/store.rs`
 * implements the engine's `LocalStore` trait on top of this interface; `browser/opfs-store.ts` and
 * `node/folder-store.ts` implement the interface.
 *
 * Every method may throw. A NacreError keeps its kind on the way through the engine; anything else
 * becomes `io`, or `limit` when storage is full.
 */

import type { Place } from './wire.js';

/** A folder of files. */
export interface LocalStore {
  /** Names of all files, in no particular order. */
  list(): string[];
  /** Opens a file; `not_found` if there is none of that name. */
  open(name: string): number;
  /**
   * Creates an empty file; `already_exists` if there is one of that name, `limit` if there can be
   * no more files.
   */
  create(name: string): number;
  /**
   * Removes a file; `not_found` if it is missing. Reading it through a number that is still open
   * may fail.
   */
  remove(name: string): void;
  /** Releases a file's number. */
  release(file: number): void;
  /** Length in bytes. */
  len(file: number): number;
  /** Fills `buffer` completely from `offset`; `corrupt` if the file ends before. */
  read(file: number, offset: number, buffer: Uint8Array): void;
  /** Writes all of `bytes` at `offset`, extending the file if necessary. */
  write(file: number, offset: number, bytes: Uint8Array): void;
  /** Shortens the file, or extends it with zeroes. */
  truncate(file: number, len: number): void;
  /** Makes the file's data, length and name durable. */
  sync(file: number): void;
  /** Prepares for `create`, which cannot wait; undefined if there is nothing to do. */
  prepare(): Promise<void> | undefined;
  /** Whether `create` has failed since the last `prepare` because no prepared file was left. */
  ranShort(): boolean;
}

/** A store as its connection uses it: held exclusively until `close`. */
export interface OwnedStore extends LocalStore {
  readonly place: Place;
  /**
   * Where `sync` cannot wait: settles once everything synced is durable, and fails if it cannot be
   * any more; null if it is already. Missing where `sync` waits.
   */
  settled?(): Promise<void> | null;
  /** Runs work that cannot wait: `prepare` does nothing meanwhile. */
  withoutPreparing<T>(work: () => T): T;
  /** Size of all files, in bytes. */
  bytes(): number;
  /** Closes every file and unlocks the folder. */
  close(): void;
}
