/** SQLite in this worker's thread, on its pool of OPFS handles. */

import sqlite3Init, { type Database, type PreparedStatement } from '@sqlite.org/sqlite-wasm';

import type { Columns, Parameter, Value } from '../system';

/** Settings with which SQLite is fastest while a commit stays durable. */
const TUNED =
  'pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -65536';

/** Opens a database in a folder of its own. */
export async function openDatabase(directory: string, isTuned: boolean): Promise<Database> {
  const sqlite3 = await sqlite3Init();
  const pool = await sqlite3.installOpfsSAHPoolVfs({ directory });
  const db = new pool.OpfsSAHPoolDb('/bench.db');
  if (isTuned) db.exec(TUNED);
  db.exec('pragma case_sensitive_like = on');
  return db;
}

/** The rows of a prepared statement. */
export function rowsOf(statement: PreparedStatement, parameters: Parameter[]): Value[][] {
  const rows: Value[][] = [];
  if (parameters.length > 0) statement.bind(parameters);
  while (statement.step()) rows.push(statement.get([]) as Value[]);
  statement.reset(true);
  return rows;
}

/** Inserts columns, with one prepared statement. */
export function insertColumns(db: Database, table: string, columns: Columns[string][]): void {
  const insert = db.prepare(`insert into ${table} values (${columns.map(() => '?').join()})`);
  for (let row = 0; row < columns[0]!.length; row += 1) {
    insert.bind(columns.map((column) => column[row]!)).stepReset();
  }
  insert.finalize();
}
