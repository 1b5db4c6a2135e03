/**
 * The files of one database as the engine's WebAssembly module wants them: a flat folder, every call
 * synchronous, files known by small numbers. The engine's `LocalStore` trait is implemented on top of
 * this interface; `browser/opfs-store.ts` and `node/folder-store.ts` implement it.
 *
 * Every method may throw; a NacreError keeps its kind on the way through the engine, anything else
 * becomes `io` (or `limit` when storage is full).
 */

/** A folder of files, held exclusively until `close`. */
export interface LocalStore {
  /** Names of all files, in no particular order. */
  list(): string[];
  /** Opens an existing file; `not_found` otherwise. */
  open(name: string): number;
  /** Makes an empty file; `already_exists` when there is one of that name, `limit` when there can be no further one. */
  create(name: string): number;
  /** Removes a file; `not_found` when it is missing. Reads through open numbers may fail afterwards. */
  remove(name: string): void;
  /** Gives a number back. */
  release(file: number): void;
  /** Length in bytes. */
  len(file: number): number;
  /** Fills `buffer` completely from `offset`; `corrupt` when the file ends before. */
  read(file: number, offset: number, buffer: Uint8Array): void;
  /** Writes all of `bytes` at `offset`, extending the file if needed. */
  write(file: number, offset: number, bytes: Uint8Array): void;
  /** Shortens or extends the file with zeroes. */
  truncate(file: number, len: number): void;
  /** Makes writes, length and name durable. */
  sync(file: number): void;
  /** Gets ready for files to be created; undefined when there is nothing to do. */
  prepare(): Promise<void> | undefined;
  /** Whether `create` was refused since the last `prepare` for want of files that the next one makes ready. */
  ranShort(): boolean;
}

/** What a connection does with its store besides handing it to the engine. */
export interface OwnedStore extends LocalStore {
  /** Bytes of all files. */
  bytes(): number;
  /** Closes every file and gives the folder free. */
  close(): void;
}
