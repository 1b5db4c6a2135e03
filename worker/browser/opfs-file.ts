/**
 * A file of an OPFS store as the engine knows it, and whether it needs a handle.
 */

import { NacreError } from '../shared/errors.js';
import { ColdFile } from './opfs-cold.js';
import type { SyncAccessHandle } from './opfs-handles.js';

/** Files that are written, synced once, and then only read. */
const WRITTEN_ONCE = /^(seg|hsh|idx)-/;

/** A file as the engine knows it. */
export interface Logical {
  readonly name: string;
  /** Name of the physical file in the directory. */
  readonly entry: string;
  readonly id: number;
  readonly isWrittenOnce: boolean;
  /** How its bytes are reached. */
  place: SyncAccessHandle | ColdFile;
  /** Counts writes. */
  version: number;
  /** The version that is durable; -1 while none is. */
  synced: number;
  /** When it was created or read last, in uses of the store's files. */
  lastUsed: number;
  /** Reads since it has no handle. */
  coldReads: number;
}

/** A file of which nothing is known to be durable. */
export function newFile(
  id: number,
  name: string,
  entry: string,
  place: SyncAccessHandle | ColdFile,
): Logical {
  return {
    name,
    entry,
    id,
    isWrittenOnce: WRITTEN_ONCE.test(name),
    place,
    version: 0,
    synced: -1,
    lastUsed: 0,
    coldReads: 0,
  };
}

/** Whether a file has a handle and can do without: it is complete and durable. */
export function canCool({ isWrittenOnce, place, version, synced }: Logical): boolean {
  return isWrittenOnce && synced === version && !(place instanceof ColdFile);
}

/** Size of a physical file, in bytes. */
export function sizeOf(place: SyncAccessHandle | ColdFile): number {
  return place instanceof ColdFile ? place.size : place.getSize();
}

/** The error of a write that the browser did not do, or not completely. */
export function noStorageLeft(name: string, database: string): NacreError {
  return new NacreError({
    kind: 'limit',
    sqlstate: '53100',
    message: `no storage left for ${name} in opfs://${database}: the quota of this origin or the disk is full; free some, then connect again`,
  });
}

/** Waits for all of them even if one fails: `close` can close only handles that are open. */
export async function all<T>(work: Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(work);
  const failed = settled.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    throw failed.reason;
  }
  return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}
