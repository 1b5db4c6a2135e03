/**
 * Opens synchronous access handles, which are exclusive. A refused handle is tried again for a
 * moment, because the handles of a tab that was just reloaded or closed linger.
 */

import { nacreError } from '../shared/errors.js';

/**
 * A file's exclusive handle with synchronous calls. TypeScript's own type is available in worker
 * projects only.
 */
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

/** How long handles of a closed tab may linger. */
const LINGER_MS = 2000;
const RETRY_MS = 40;

/**
 * Opens a file of a directory exclusively, creating it if it does not exist. Fails with `in_use`.
 */
export async function openExclusive(
  directory: FileSystemDirectoryHandle,
  name: string,
  database: string,
  patienceMs: number = LINGER_MS,
): Promise<SyncAccessHandle> {
  const deadline = performance.now() + patienceMs;
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

/** Names of the error of a file that is open elsewhere; browsers differ. */
const HELD: ReadonlySet<string> = new Set(['NoModificationAllowedError', 'InvalidStateError']);

/** Fails with `type` unless a text can name a database. */
export function mustBeDatabaseName(database: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(database)) {
    throw nacreError(
      'type',
      `'${database}' cannot name an OPFS database: use at most 100 letters, digits, '.', '-' and '_'`,
    );
  }
}

/** Opens the directory of a database, creating it if it does not exist. */
export async function databaseDirectory(database: string): Promise<FileSystemDirectoryHandle> {
  mustBeDatabaseName(database);
  if (!hasFiles()) {
    throw nacreError(
      'unsupported',
      'there is no origin private file system here; it needs a page served over HTTPS or from localhost, and a browser of 2023 or later',
    );
  }
  const root = await navigator.storage.getDirectory().catch((error: unknown) => {
    throw isRefusal(error)
      ? nacreError(
          'unsupported',
          `this page may not use the origin private file system (${String(error)}): it is from a file, in a private window or a sandboxed frame, or site data are blocked; use memory:// here`,
          error,
        )
      : error;
  });
  return root.getDirectoryHandle(database, { create: true });
}

/**
 * Whether the browser has files with synchronous handles. Before 2023, some calls of a handle were not
 * synchronous.
 */
function hasFiles(): boolean {
  const handle = globalThis.FileSystemFileHandle?.prototype as Partial<SyncFileHandle> | undefined;
  return (
    typeof navigator !== 'undefined' &&
    typeof navigator.storage?.getDirectory === 'function' &&
    typeof handle?.createSyncAccessHandle === 'function'
  );
}

/** Whether the browser keeps a page from all storage. */
function isRefusal(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'SecurityError';
}
