// What the database takes: bytes of its files, and of the parts of its memory that the view shows;
// how often its cache had what was asked for.

import { signal } from '@preact/signals';

import { connection } from './connection';

export interface Counters {
  /** Bytes of the database's files; 0 in memory. */
  fileBytes: number;
  rowstoreBytes: number;
  cacheBytes: number;
  cacheLimit: number;
  /** Uses of blocks in the cache, and reads of others, since the database was opened. */
  cacheHits: number;
  cacheMisses: number;
}

export const counters = signal<Counters | null>(null);

interface Part {
  part: string;
  bytes: bigint;
  limit_bytes: bigint | null;
  hits: bigint | null;
  misses: bigint | null;
}

/** Commits of this page since it was opened, without those of loads. */
export const commits = signal(0);

export async function refreshCounters(): Promise<void> {
  const [{ bytes }, { rows }] = await Promise.all([
    connection().storage(),
    connection().query<Part>(
      'select part, bytes, limit_bytes, hits, misses from information_schema.memory',
    ),
  ]);
  const part = (name: string) => rows.find((row) => row.part === name);
  const cache = part('block cache');
  counters.value = {
    fileBytes: bytes,
    rowstoreBytes: Number(part('rowstore')?.bytes ?? 0),
    cacheBytes: Number(cache?.bytes ?? 0),
    cacheLimit: Number(cache?.limit_bytes ?? 0),
    cacheHits: Number(cache?.hits ?? 0),
    cacheMisses: Number(cache?.misses ?? 0),
  };
}
