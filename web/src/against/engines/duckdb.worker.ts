// DuckDB in the comparison: its blocking API in this worker's thread.
//
// Opens a database in the origin private file system, and one in memory where that fails.

import {
  BROWSER_RUNTIME,
  createDuckDB,
  VoidLogger,
  type Bindings,
  type Connection,
  type Table,
} from 'duckdb-blocking';
import wasmEh from '@duckdb/duckdb-wasm/dist/duckdb-eh.wasm?url';

import { asCsv, hasFiles, serve } from '../engine';
import { STORED } from '../stored';
import type { Value } from '../protocol';

const READ_WRITE = 3;
const FILE_ACCESS = 3;
/** Arrow's number of the type of dates. */
const DATE = 8;
const QUERY = { castBigIntToDouble: true, castDecimalToDouble: true };

let db: Bindings;
let connection: Connection;

serve({
  async open() {
    const bundle = { mainModule: wasmEh, mainWorker: '' };
    db = await createDuckDB({ mvp: bundle, eh: bundle }, new VoidLogger(), BROWSER_RUNTIME);
    await db.instantiate(() => {});
    const place = await openDatabase();
    connection = db.connect();
    return { version: db.getVersion().replace(/^v/, ''), place };
  },
  exec(sql) {
    connection.query(sql);
  },
  load(table, _columns, text) {
    const name = `${table}.csv`;
    db.registerFileText(name, asCsv(text));
    connection.query(`copy ${table} from '${name}' (delimiter '|', header false)`);
    db.dropFile(name);
  },
  query: (sql) => rowsOf(connection.query(sql)),
  prepare(sql) {
    const statement = connection.prepare(sql);
    return { all: (parameters) => rowsOf(statement.query(...parameters)) };
  },
});

async function openDatabase(): Promise<string> {
  if (await hasFiles()) {
    try {
      const path = `opfs://${STORED.duckdb}`;
      await db.prepareDBFileHandle(path, FILE_ACCESS);
      db.open({ path, accessMode: READ_WRITE, useDirectIO: true, query: QUERY });
      return 'OPFS';
    } catch (error) {
      console.warn(`DuckDB-Wasm runs in memory: ${String(error)}`);
    }
  }
  db.open({ path: ':memory:', query: QUERY });
  return 'memory';
}

function rowsOf(table: Table): Value[][] {
  const { fields } = table.schema;
  const columns = fields.map((_, at) => table.getChildAt(at)!);
  return Array.from({ length: table.numRows }, (_, row) =>
    columns.map((column, at) => plain(column.get(row), fields[at]!.type.typeId)),
  );
}

function plain(value: unknown, typeId: number): Value {
  if (value === null || value === undefined) return null;
  if (typeId === DATE) return new Date(Number(value)).toISOString().slice(0, 10);
  return typeof value === 'bigint' ? Number(value) : (value as Value);
}
