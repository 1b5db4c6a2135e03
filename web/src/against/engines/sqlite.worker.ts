// SQLite in the comparison: its object API in this worker's thread, on the pool of OPFS handles, with
// the settings that make it fastest while a commit stays durable.

import sqlite3Init, { type Database, type PreparedStatement } from '@sqlite.org/sqlite-wasm';

import { hasFiles, linesOf, serve } from '../engine';
import { STORED } from '../stored';
import type { Value } from '../protocol';

let db: Database;

serve({
  async open() {
    const sqlite3 = await sqlite3Init();
    const files = await hasFiles();
    if (files) {
      const pool = await sqlite3.installOpfsSAHPoolVfs({ directory: STORED.sqlite });
      db = new pool.OpfsSAHPoolDb('/against.db');
    } else {
      db = new sqlite3.oo1.DB(':memory:', 'c');
    }
    db.exec('pragma locking_mode = exclusive');
    const journal = files ? db.selectValue('pragma journal_mode = wal') : 'memory';
    db.exec(
      'pragma synchronous = full; pragma cache_size = -65536; pragma case_sensitive_like = on',
    );
    const version = sqlite3.version.libVersion;
    return { version, place: files ? `OPFS, journal ${String(journal)}` : 'memory' };
  },
  exec(sql) {
    db.exec(sql);
  },
  load(table, columns, text) {
    db.exec('begin');
    const insert = db.prepare(`insert into ${table} values (${columns.map(() => '?').join()})`);
    const values = new Array<string | number>(columns.length);
    for (const line of linesOf(text)) {
      let from = 0;
      for (let at = 0; at < columns.length; at += 1) {
        const to = line.indexOf('|', from);
        const field = line.slice(from, to);
        values[at] = columns[at]!.integer ? Number(field) : field;
        from = to + 1;
      }
      insert.bind(values).stepReset();
    }
    insert.finalize();
    db.exec(`commit; analyze ${table}`);
  },
  query(sql) {
    const statement = db.prepare(sql);
    try {
      return rowsOf(statement);
    } finally {
      statement.finalize();
    }
  },
  prepare(sql) {
    const statement = db.prepare(sql);
    return {
      all(parameters) {
        if (parameters.length > 0) statement.bind(parameters);
        const rows = rowsOf(statement);
        statement.reset(true);
        return rows;
      },
    };
  },
});

function rowsOf(statement: PreparedStatement): Value[][] {
  const rows: Value[][] = [];
  while (statement.step()) rows.push(statement.get([]) as Value[]);
  return rows;
}
