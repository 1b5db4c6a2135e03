// What the database takes: bytes of its files, and of the parts of its memory that the view shows.

import { signal } from '@preact/signals';

import { connection } from './connection';

export interface Counters {
  /** Bytes of the database's files; 0 in memory. */
  fileBytes: number;
  rowstoreBytes: number;
  cacheBytes: number;
  cacheLimit: number;
}

export const counters = signal<Counters | null>(null);

/** Commits of this page since it was opened, without those of loads. */
export const commits = signal(0);

export async function refreshCounters(): Promise<void> {
  const [{ bytes }, { rows }] = await Promise.all([
    connection().storage(),
    connection().query<{ part: string; bytes: bigint; limit_bytes: bigint | null }>(
      'select part, bytes, limit_bytes from information_schema.memory',
    ),
  ]);
  const part = (name: string) => rows.find((row) => row.part === name);
  counters.value = {
    fileBytes: bytes,
    rowstoreBytes: Number(part('rowstore')?.bytes ?? 0),
    cacheBytes: Number(part('block cache')?.bytes ?? 0),
    cacheLimit: Number(part('block cache')?.limit_bytes ?? 0),
  };
}
