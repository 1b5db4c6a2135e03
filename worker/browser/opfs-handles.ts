/**
 * Opening synchronous access handles: exclusive, and patient for a moment, because the handles of a tab
 * that was just reloaded or closed linger.
 */

import { nacreError } from '../shared/errors.js';

/** What TypeScript knows only in workers: a file's exclusive handle with synchronous calls. */
export interface SyncAccessHandle {
  read(buffer: Uint8Array, options: { at: number }): number;
  write(buffer: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

type SyncFileHandle = FileSystemFileHandle & {
  createSyncAccessHandle(): Promise<SyncAccessHandle>;
};

const LINGER_MS = 2000;
const RETRY_MS = 40;

/** Opens (making it if need be) a file of a directory exclusively, or fails with `in_use`. */
export async function openExclusive(
  directory: FileSystemDirectoryHandle,
  name: string,
  database: string,
): Promise<SyncAccessHandle> {
  const deadline = performance.now() + LINGER_MS;
  const file = (await directory.getFileHandle(name, { create: true })) as SyncFileHandle;
  for (;;) {
    try {
      return await file.createSyncAccessHandle();
    } catch (error) {
      if (!(error instanceof DOMException) || !HELD.has(error.name)) {
        throw error;
      }
      if (performance.now() >= deadline) {
        throw nacreError('in_use', `opfs://${database} is open in another tab or worker`, error);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

// Browsers differ in the name of the refusal.
const HELD: ReadonlySet<string> = new Set(['NoModificationAllowedError', 'InvalidStateError']);

/** The directory of a database, made if need be. */
export async function databaseDirectory(database: string): Promise<FileSystemDirectoryHandle> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(database)) {
    throw nacreError(
      'type',
      `'${database}' cannot name an OPFS database: use letters, digits, '.', '-' and '_', at most 100`,
    );
  }
  if (typeof navigator === 'undefined' || typeof navigator.storage?.getDirectory !== 'function') {
    throw nacreError(
      'unsupported',
      'this context has no origin private file system (is the page secure?)',
    );
  }
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(database, { create: true });
}
