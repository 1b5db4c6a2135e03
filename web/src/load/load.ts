// Fills the database on the first start.
//
// Each table is one transaction, and a note is written after the last one. A tab that is closed
// before leaves no note, and the next start creates all tables again.

import { signal } from '@preact/signals';

import { connection } from '../database/connection';
import { NOTE_TABLE } from '../database/layers';
import { rowSource } from './rows';
import { createTable, SCALE, TABLES, type TableDefinition } from './tables';

/** Progress of one table. */
export interface Progress {
  table: string;
  rows: number;
  total: number;
  state: 'waiting' | 'loading' | 'done';
}

export const progress = signal<Progress[]>([]);

/** Rows per slice from the generator, and values per insert. */
const SLICE_ROWS = 2000;
const INSERT_VALUES = 8000;

/** Whether an earlier start has filled this database completely. */
export async function isLoaded(): Promise<boolean> {
  const tables = await connection().inspect();
  if (!tables.some((table) => table.name === NOTE_TABLE)) return false;
  const { rows } = await connection().query(`select loaded from ${NOTE_TABLE}`);
  return rows.length > 0;
}

/** Creates every table again and fills it. Answers the number of rows and the time it took. */
export async function load(): Promise<{ rows: number; ms: number }> {
  const started = performance.now();
  progress.value = TABLES.map(({ name }) => ({ table: name, rows: 0, total: 0, state: 'waiting' }));
  const source = rowSource();
  try {
    await connection().exec(`drop table if exists ${NOTE_TABLE}`);
    for (const table of TABLES) await loadTable(table, source);
  } finally {
    source.close();
  }
  const rows = progress.value.reduce((sum, table) => sum + table.rows, 0);
  const ms = Math.round(performance.now() - started);
  await connection().exec(
    `create table ${NOTE_TABLE} (loaded integer primary key, row_count bigint, took_ms bigint)`,
  );
  await connection().query(`insert into ${NOTE_TABLE} values (1, ?, ?)`, [rows, ms]);
  return { rows, ms };
}

async function loadTable(
  table: TableDefinition,
  source: ReturnType<typeof rowSource>,
): Promise<void> {
  const db = connection();
  await db.exec(`drop table if exists ${table.name}`);
  await db.exec(createTable(table));
  report(table.name, { state: 'loading' });
  let rows = 0;
  await db.transaction(async (tx) => {
    const step = Math.floor(INSERT_VALUES / table.columns.length);
    const many = await tx.prepare(insert(table, step));
    for await (const slice of source.slices({
      table: table.name,
      scale: SCALE,
      slice: SLICE_ROWS,
    })) {
      const lines = slice.text.split('\n');
      lines.pop();
      const inserts: Promise<unknown>[] = [];
      for (let at = 0; at < lines.length; at += step) {
        const some = lines.slice(at, at + step);
        const parameters = some.flatMap((line) => values(table, line));
        inserts.push(
          some.length === step
            ? many.run(parameters)
            : tx.query(insert(table, some.length), parameters),
        );
      }
      await Promise.all(inserts);
      rows += lines.length;
      report(table.name, { rows, total: slice.total });
    }
    await many.close();
  });
  await db.exec(`optimize table ${table.name} flush`);
  report(table.name, { rows, total: rows, state: 'done' });
}

function insert({ name, columns }: TableDefinition, rows: number): string {
  const row = `(${columns.map(() => '?').join(',')})`;
  return `insert into ${name} values ${Array<string>(rows).fill(row).join(',')}`;
}

function values({ columns }: TableDefinition, line: string): (number | string)[] {
  const fields = line.split('|');
  return columns.map(({ field }, index) =>
    field === 'integer' ? Number(fields[index]) : fields[index]!,
  );
}

function report(name: string, change: Partial<Progress>): void {
  progress.value = progress.value.map((entry) =>
    entry.table === name ? { ...entry, ...change } : entry,
  );
}
