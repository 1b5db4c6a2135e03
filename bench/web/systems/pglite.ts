/** PGlite with its default settings on its pool of OPFS handles. Loads columns with `COPY` from CSV. */

import { PGliteWorker } from '@electric-sql/pglite/worker';

import type { Columns, Parameter, Statement, System, Value } from '../system';

/** Type numbers of PostgreSQL, and what their texts become. */
const PARSERS = { 20: Number, 1700: Number, 1082: (text: string) => text };

/** Starts the engine and opens the database. */
export async function openPglite(): Promise<System> {
  const worker = new Worker(new URL('./pglite-worker.js', import.meta.url), { type: 'module' });
  const db = await PGliteWorker.create(worker, { dataDir: 'opfs-ahp://bench-pglite' });
  return new Pglite(db);
}

class Pglite implements System {
  constructor(readonly db: PGliteWorker) {}

  async exec(sql: string): Promise<void> {
    await this.db.exec(sql);
  }

  async query(sql: string, parameters: Parameter[] = []): Promise<Value[][]> {
    let number = 0;
    const numbered = sql.replaceAll('?', () => `$${(number += 1)}`);
    const { rows } = await this.db.query<Value[]>(numbered, parameters, {
      rowMode: 'array',
      parsers: PARSERS,
    });
    return rows;
  }

  /** PGlite has no prepared statements. */
  prepare(sql: string): Promise<Statement> {
    return Promise.resolve({ all: (parameters) => this.query(sql, parameters) });
  }

  async load(table: string, columns: Columns): Promise<void> {
    const all = Object.values(columns);
    const lines: string[] = [];
    for (let row = 0; row < all[0]!.length; row += 1) {
      lines.push(all.map((column) => column[row]!).join('|'));
    }
    const blob = new Blob([lines.join('\n')]);
    const copy = `copy ${table} from '/dev/blob' with (format csv, delimiter '|')`;
    await this.db.query(copy, [], { blob });
  }
}
