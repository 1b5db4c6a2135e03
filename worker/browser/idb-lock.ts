/** The lock of a database's files in IndexedDB, which any number of workers could open. */

import { nacreError } from '../shared/errors.js';

/** How long a worker that is ending may keep it. */
const LINGER_MS = 2000;

/**
 * Takes the Web Lock of a database's files, which ends with this worker at the latest, and answers a
 * function that gives it back. Fails with `in_use`.
 */
export async function holdFiles(
  database: string,
  patienceMs: number = LINGER_MS,
): Promise<() => void> {
  if (typeof navigator === 'undefined' || navigator.locks === undefined) {
    throw nacreError(
      'unsupported',
      'a database in IndexedDB needs Web Locks, which pages served over HTTPS or from localhost have',
    );
  }
  return new Promise((resolve, reject) => {
    const options = { signal: AbortSignal.timeout(patienceMs) };
    const held = () => new Promise<void>((release) => resolve(release));
    navigator.locks.request(`nacredb:files:${database}`, options, held).catch((error: unknown) => {
      const isHeld = (error as Error).name === 'TimeoutError';
      reject(
        isHeld
          ? nacreError('in_use', `opfs://${database} is open in another tab or worker`, error)
          : error,
      );
    });
  });
}
