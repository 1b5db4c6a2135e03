/**
 * The seam of blob storage in JavaScript: whole immutable objects, far away. It mirrors the engine's trait
 * `BlobStore`, and keeps the same promises.
 */

import { nacreError } from '../errors.js';

/** A blob in a listing. */
export interface BlobInfo {
  name: string;
  /** In bytes. */
  length: number;
  /** When it was written, by the store's clock, in milliseconds since 1970-01-01 UTC. */
  modifiedMs: number;
}

/** Under which condition a blob is written: always, if there is none, or if it still has a tag. */
export type WriteIf = 'any' | 'absent' | { readonly tag: string };

/**
 * A folder of blobs. No blob may have the name of a folder of another.
 *
 * Errors: `not_found` if there is no such blob, `unavailable` if the same call may succeed later, `io` if
 * the store refuses it, `corrupt` if an answer is not what was asked for, `cancelled` if `signal` is
 * aborted. A write or removal that ends with `unavailable` or `cancelled` may have taken effect, or may
 * still do so later. One that ends with another error has not, and will not.
 */
export interface BlobStore {
  /** Reads the bytes from `start` up to `end`. A range past the end of the blob is `corrupt`. */
  read(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>;
  /** Reads a small blob whole, with its tag. */
  readAll(name: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; tag: string }>;
  /** Writes a blob whole. Returns its tag, or fails with `conflict` if the condition does not hold. */
  write(name: string, bytes: Uint8Array, when: WriteIf, signal?: AbortSignal): Promise<string>;
  /** The blobs whose names begin with `prefix`, in the order of their names. */
  list(prefix: string, signal?: AbortSignal): Promise<BlobInfo[]>;
  /** Removes a blob. It is no error if there is none. */
  remove(name: string, signal?: AbortSignal): Promise<void>;
}

/** The longest name, in bytes. */
const LONGEST_NAME = 200;
const NAME = /^(?!\.)[A-Za-z0-9_.-]+(?:\/(?!\.)[A-Za-z0-9_.-]+)*$/;

/** Whether a blob can have this name. */
export function isBlobName(name: string): boolean {
  return name.length <= LONGEST_NAME && NAME.test(name);
}

/** Throws `io` for a name that no blob can have. */
export function checkBlobName(name: string): void {
  if (!isBlobName(name)) {
    throw nacreError('io', `${JSON.stringify(name)} is not a valid name of a blob`);
  }
}
