/** SQLite's worker for a page: answers each message, and keeps its prepared statements. */

import './memory';
import type { Database, PreparedStatement } from '@sqlite.org/sqlite-wasm';

import type { Columns, Parameter, Value } from '../system';
import { insertColumns, openDatabase, rowsOf } from './sqlite-engine';

/** What the page asks. */
export type Call =
  | { name: 'open'; isTuned: boolean }
  | { name: 'exec'; sql: string }
  | { name: 'all'; sql: string; parameters: Parameter[] }
  | { name: 'insert'; table: string; columns: Columns[string][] };

/** What it is answered. */
export interface Reply {
  id: number;
  rows?: Value[][];
  failure?: string;
}

let db: Database;
const statements = new Map<string, PreparedStatement>();

function prepared(sql: string): PreparedStatement {
  const known = statements.get(sql) ?? db.prepare(sql);
  statements.set(sql, known);
  return known;
}

async function run(call: Call): Promise<Value[][]> {
  switch (call.name) {
    case 'open':
      db = await openDatabase(call.isTuned ? 'bench-sqlite-tuned' : 'bench-sqlite', call.isTuned);
      return [];
    case 'exec':
      db.exec(call.sql);
      return [];
    case 'all':
      return rowsOf(prepared(call.sql), call.parameters);
    case 'insert':
      insertColumns(db, call.table, call.columns);
      return [];
  }
}

self.onmessage = async ({ data: { id, call } }: MessageEvent<{ id: number; call: Call }>) => {
  try {
    self.postMessage({ id, rows: await run(call) });
  } catch (error) {
    self.postMessage({ id, failure: String(error) });
  }
};
