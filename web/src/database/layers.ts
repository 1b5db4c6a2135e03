// How every table is stored, read again after each run, and which table the last run changed.

import { computed, signal } from '@preact/signals';

import { refreshCounters } from './counters';
import { inspect } from './connection';
import type { TableReport } from 'nacredb';

/** The table in which the loader notes that it has finished; hidden from the user. */
export const NOTE_TABLE = 'nacre_demo';

/** Prefix of the tables that a load fills before they replace the others; hidden as well. */
export const NEXT = 'nacre_next_';

export const layers = signal<TableReport[]>([]);
export const selectedTable = signal('lineitem');
/** Number of changes seen of each table, so that a view can animate the newest. */
export const changes = signal<Record<string, number>>({});

export const storedBytes = computed(() =>
  layers.value.reduce((sum, table) => sum + table.rowstoreBytes + segmentBytes(table), 0),
);

export const segmentBytes = (table: TableReport): number =>
  table.segments.reduce((sum, segment) => sum + segment.bytes, 0);

export const deletedRows = (table: TableReport): number =>
  table.segments.reduce((sum, segment) => sum + segment.deleted, 0);

/** Reads the storage again, and selects a table that has changed. */
export async function refreshLayers(): Promise<void> {
  const before = new Map(layers.value.map((table) => [table.name, fingerprint(table)]));
  const now = (await inspect()).filter(({ name }) => name !== NOTE_TABLE && !name.startsWith(NEXT));
  layers.value = now;
  await refreshCounters();
  if (before.size === 0) return;
  const changed = now.filter((table) => before.get(table.name) !== fingerprint(table));
  if (changed.length === 0) return;
  const counts = { ...changes.value };
  for (const table of changed) counts[table.name] = (counts[table.name] ?? 0) + 1;
  changes.value = counts;
  if (!changed.some((table) => table.name === selectedTable.value))
    selectedTable.value = changed[0]!.name;
}

function fingerprint(table: TableReport): string {
  const segments = table.segments.map((segment) => `${segment.id}:${segment.deleted}`);
  return `${table.rowstoreRows}/${table.rowstoreBytes}/${segments.join()}`;
}
