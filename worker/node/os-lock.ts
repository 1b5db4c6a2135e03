/**
 * The operating system's lock of a file, where the runtime has it: Deno does, Node does not. It is the lock
 * that the native `nacre` holds, and ends with its process.
 */

import * as path from 'node:path';

interface LockableFile {
  tryLockSync(exclusive: boolean): boolean;
  close(): void;
}

interface Runtime {
  openSync(path: string, options: { create: boolean; write: boolean }): LockableFile;
}

const { Deno: deno } = globalThis as { Deno?: Runtime };

/** Whether the runtime has such locks. */
export const hasOsLocks: boolean = deno !== undefined;

/** Locks a file in a folder, and returns the function that unlocks it; `null` if another process has it. */
export function tryLockFile(folder: string, name: string): (() => void) | null {
  const file = deno!.openSync(path.join(folder, name), { create: true, write: true });
  if (file.tryLockSync(true)) {
    return () => file.close();
  }
  file.close();
  return null;
}
