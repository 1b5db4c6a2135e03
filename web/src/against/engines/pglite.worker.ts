// PGlite in the comparison: in this worker's thread, on its pool of OPFS handles.

import { PGlite } from '@electric-sql/pglite';

import { asCsv, hasFiles, serve } from '../engine';
import { STORED } from '../stored';
import type { Value } from '../protocol';

/** Type numbers of PostgreSQL. */
const INT8 = 20;
const NUMERIC = 1700;
const DATE = 1082;

let db: PGlite;

serve({
  async open() {
    const files = await hasFiles();
    db = await PGlite.create({
      dataDir: files ? `opfs-ahp://${STORED.pglite}` : undefined,
      parsers: { [INT8]: Number, [NUMERIC]: Number, [DATE]: (text: string) => text },
    });
    const { rows } = await db.query<[string]>('show server_version', [], { rowMode: 'array' });
    return { version: `PostgreSQL ${rows[0]![0]}`, place: files ? 'OPFS' : 'memory' };
  },
  async exec(sql) {
    await db.exec(sql);
  },
  async load(table, _columns, text) {
    const blob = new Blob([asCsv(text)]);
    await db.query(`copy ${table} from '/dev/blob' with (format csv, delimiter '|')`, [], {
      blob,
    });
    await db.exec(`analyze ${table}`);
  },
  query,
  prepare(sql) {
    let number = 0;
    const numbered = sql.replaceAll('?', () => `$${++number}`);
    return { all: (parameters) => query(numbered, parameters) };
  },
});

async function query(sql: string, parameters: (number | string)[] = []): Promise<Value[][]> {
  const { rows } = await db.query<Value[]>(sql, parameters, { rowMode: 'array' });
  return rows;
}
