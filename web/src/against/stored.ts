// The names under which the systems keep their databases in the origin private file system.

export const STORED = {
  nacre: 'against-nacre',
  sqlite: 'against-sqlite',
  duckdb: 'against.duckdb',
  pglite: 'against-pglite',
} as const;

const RETRIES = 20;
const RETRY_MS = 100;

/** Removes the databases of a comparison. To be called while no system is running. */
export async function removeStored(): Promise<void> {
  try {
    const folder = await navigator.storage.getDirectory();
    for (const name of [...Object.values(STORED), `${STORED.duckdb}.wal`]) {
      await remove(folder, name);
    }
  } catch {
    // Without a file system the systems run in memory.
  }
}

/** A worker that has just ended keeps its files open for a moment, so this tries more than once. */
async function remove(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  for (let attempt = 0; attempt < RETRIES; attempt += 1) {
    try {
      await folder.removeEntry(name, { recursive: true });
      return;
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotFoundError') return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
