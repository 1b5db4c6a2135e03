// Nacre in the comparison: the engine in this worker's thread, with its default settings.

import { connectInThread, type ThreadDatabase } from 'nacredb';

import { hasFiles, linesOf, serve, toColumns } from '../engine';
import { STORED } from '../stored';
import type { Value } from '../protocol';

/** Rows per call, so that a table's values are not all in memory twice. */
const PIECE_ROWS = 100_000;

let db: ThreadDatabase;

serve({
  async open() {
    const files = await hasFiles();
    const url = files ? `opfs://${STORED.nacre}` : 'memory://';
    db = await connectInThread(url, {
      types: { bigint: 'number', decimal: 'number', date: 'string' },
    });
    return { version: '0.1.0', place: files ? 'OPFS' : 'memory' };
  },
  async exec(sql) {
    await db.exec(sql);
  },
  async load(table, columns, text) {
    const lines = linesOf(text);
    for (let at = 0; at < lines.length; at += PIECE_ROWS) {
      const piece = lines.slice(at, at + PIECE_ROWS);
      await db.insertRows(table, toColumns(columns, piece));
    }
  },
  async query(sql) {
    const result = await db.query(sql);
    return Array.from({ length: result.rowCount }, (_, row) => result.values(row) as Value[]);
  },
  prepare(sql) {
    const statement = db.prepareSync(sql);
    return {
      all(parameters) {
        const result = statement.runSync(parameters);
        return Array.from({ length: result.rowCount }, (_, row) => result.values(row) as Value[]);
      },
    };
  },
});
