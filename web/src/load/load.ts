// Fills the database: on the first start, after a reset, and when another scale is chosen.
//
// Rows go into new tables beside the present ones, which are replaced at the end: a load that is
// stopped keeps the data as it was. A note is written after the last step. A tab that is closed
// before leaves no note, and the next start loads again.

import { signal } from '@preact/signals';

import { connection } from '../database/connection';
import { NEXT, NOTE_TABLE } from '../database/layers';
import { rowSource } from './rows';
import { createTable, TABLES, type TableDefinition } from './tables';

/** Progress of one table. */
export interface Progress {
  table: string;
  rows: number;
  total: number;
  state: 'waiting' | 'loading' | 'done';
}

/** What a load wrote. */
export interface Loaded {
  rows: number;
  ms: number;
}

export const progress = signal<Progress[]>([]);

/** The scales to choose from, with the rows of all tables and the megabytes they take about. */
export const SCALES = [
  { scale: 0.01, rows: 86_805, megabytes: 4 },
  { scale: 0.1, rows: 866_602, megabytes: 35 },
  { scale: 1, rows: 8_661_245, megabytes: 350 },
] as const;

/** The scale of the data, or of the load that is running. */
export const scale = signal<number>(SCALES[0].scale);

/** Rows per slice from the generator, each of which becomes a segment. */
const SLICE_ROWS = 100_000;

/** Whether an earlier start has filled this database completely. */
export async function isLoaded(): Promise<boolean> {
  const tables = await connection().inspect();
  if (!tables.some((table) => table.name === NOTE_TABLE)) return false;
  const { rows } = await connection().query<{ row_count: bigint }>(
    `select row_count from ${NOTE_TABLE}`,
  );
  const count = Number(rows[0]?.row_count ?? 0);
  scale.value = SCALES.findLast((each) => count >= each.rows / 2)?.scale ?? SCALES[0].scale;
  return rows.length > 0;
}

/** Generates every table at a scale, and replaces the present ones. Ends early if `signal` aborts. */
export async function load(wanted: number, signal?: AbortSignal): Promise<Loaded> {
  const started = performance.now();
  progress.value = TABLES.map(({ name }) => ({ table: name, rows: 0, total: 0, state: 'waiting' }));
  const source = rowSource();
  signal?.addEventListener('abort', () => source.close());
  try {
    for (const table of TABLES) await loadTable(table, wanted, source, signal);
    const rows = progress.value.reduce((sum, table) => sum + table.rows, 0);
    const ms = Math.round(performance.now() - started);
    await replaceTables(rows, ms);
    scale.value = wanted;
    return { rows, ms };
  } catch (error) {
    for (const { name } of TABLES) await connection().exec(`drop table if exists ${NEXT}${name}`);
    throw error;
  } finally {
    source.close();
  }
}

async function loadTable(
  table: TableDefinition,
  wanted: number,
  source: ReturnType<typeof rowSource>,
  signal?: AbortSignal,
): Promise<void> {
  const db = connection();
  const next = { ...table, name: `${NEXT}${table.name}` };
  await db.exec(`drop table if exists ${next.name}`);
  await db.exec(createTable(next));
  signal?.throwIfAborted();
  report(table.name, { state: 'loading' });
  let before = 0;
  const request = { table: table.name, scale: wanted, slice: SLICE_ROWS };
  for await (const slice of source.slices(request)) {
    signal?.throwIfAborted();
    report(table.name, { total: slice.total });
    before += await db.insertRows(next.name, columnsOf(table, slice.text), {
      signal,
      onProgress: (done) => report(table.name, { rows: before + done }),
    });
  }
  signal?.throwIfAborted();
  report(table.name, { rows: before, total: before, state: 'done' });
}

/** Puts the new tables into the place of the old ones. The note says when this is complete. */
async function replaceTables(rows: number, ms: number): Promise<void> {
  const db = connection();
  await db.exec(`drop table if exists ${NOTE_TABLE}`);
  for (const { name } of TABLES) {
    await db.exec(`drop table if exists ${name}`);
    await db.exec(`alter table ${NEXT}${name} rename to ${name}`);
  }
  await db.exec(
    `create table ${NOTE_TABLE} (loaded integer primary key, row_count bigint, took_ms bigint)`,
  );
  await db.query(`insert into ${NOTE_TABLE} values (1, ?, ?)`, [rows, ms]);
}

/** The columns of TBL lines: integers as numbers, everything else as text. */
function columnsOf({ columns }: TableDefinition, text: string) {
  const lines = text.split('\n');
  lines.pop();
  const values = columns.map(({ field }) =>
    field === 'integer' ? new Int32Array(lines.length) : new Array<string>(lines.length),
  );
  lines.forEach((line, row) => {
    let from = 0;
    columns.forEach(({ field }, at) => {
      const to = line.indexOf('|', from);
      const value = line.slice(from, to);
      values[at]![row] = field === 'integer' ? Number(value) : value;
      from = to + 1;
    });
  });
  return Object.fromEntries(columns.map(({ name }, at) => [name, values[at]!]));
}

function report(name: string, change: Partial<Progress>): void {
  progress.value = progress.value.map((entry) =>
    entry.table === name ? { ...entry, ...change } : entry,
  );
}
