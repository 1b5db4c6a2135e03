/**
 * DuckDB-Wasm with its default settings on a file in OPFS: the build with WebAssembly exceptions, one
 * thread. Loads columns as an Arrow stream, which is its fastest way.
 */

import { AsyncDuckDB, DuckDBAccessMode, DuckDBDataProtocol, VoidLogger } from '@duckdb/duckdb-wasm';
import type { AsyncDuckDBConnection, DuckDBFilesystemConfig } from '@duckdb/duckdb-wasm';
import { tableFromArrays, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';

import type { TableDefinition } from '../../../web/src/load/tables';
import { asCsv } from '../lines';
import type { Columns, Parameter, Statement, System, Value } from '../system';

/** Arrow's number of the type of dates. */
const DATE = 8;

/** A result, of the version of Arrow that DuckDB-Wasm brings along. */
type Result = Awaited<ReturnType<AsyncDuckDBConnection['query']>>;

/** Reads ranges of a file at a URL; otherwise it fetches the whole file first. */
const RANGES = { reliableHeadRequests: true, allowFullHTTPReads: false, forceFullHTTPReads: false };

/** Starts the engine and opens the database, with a worker of its own script or a given one. */
export async function openDuckdb(
  worker = './duckdb-worker.js',
  filesystem?: DuckDBFilesystemConfig,
): Promise<Duckdb> {
  const db = new AsyncDuckDB(new VoidLogger(), new Worker(new URL(worker, import.meta.url)));
  await db.instantiate(new URL('./duckdb-eh.wasm', import.meta.url).href);
  await db.open({
    path: 'opfs://bench.duckdb',
    accessMode: DuckDBAccessMode.READ_WRITE,
    query: { castBigIntToDouble: true, castDecimalToDouble: true },
    ...(filesystem && { filesystem }),
  });
  return new Duckdb(db, await db.connect());
}

/** Opens a file of DuckDB's at a URL, of which it fetches what it reads. */
export async function openDuckdbAt(url: string): Promise<System> {
  const system = await openDuckdb(undefined, RANGES);
  await system.db.registerFileURL('remote.duckdb', url, DuckDBDataProtocol.HTTP, false);
  await system.exec("attach 'remote.duckdb' as remote (read_only)");
  await system.exec('use remote');
  return system;
}

class Duckdb implements System {
  constructor(
    readonly db: AsyncDuckDB,
    readonly connection: AsyncDuckDBConnection,
  ) {}

  async exec(sql: string): Promise<void> {
    await this.connection.query(sql);
  }

  async query(sql: string, parameters: Parameter[] = []): Promise<Value[][]> {
    if (parameters.length === 0) {
      return rowsOf(await this.connection.query(sql));
    }
    return (await this.prepare(sql)).all(parameters);
  }

  async prepare(sql: string): Promise<Statement> {
    const statement = await this.connection.prepare(sql);
    return { all: async (parameters) => rowsOf(await statement.query(...parameters)) };
  }

  async load(table: string, columns: Columns): Promise<void> {
    const vectors = Object.entries(columns).map(([name, values]) => [
      name,
      // Without a type, Arrow makes a dictionary, which takes longer here.
      Array.isArray(values) ? vectorFromArray(values, new Utf8()) : values,
    ]);
    const ipc = tableToIPC(tableFromArrays(Object.fromEntries(vectors)), 'stream');
    await this.connection.insertArrowFromIPCStream(ipc, { name: table, create: false });
  }

  async loadLines({ name }: TableDefinition, text: string): Promise<void> {
    const file = `${name}.csv`;
    await this.db.registerFileText(file, asCsv(text));
    await this.exec(`copy ${name} from '${file}' (delimiter '|', header false)`);
    await this.db.dropFile(file);
  }
}

function rowsOf(table: Result): Value[][] {
  const { fields } = table.schema;
  const columns = fields.map((_, at) => table.getChildAt(at)!);
  return Array.from({ length: table.numRows }, (_, row) =>
    columns.map((column, at) => plain(column.get(row), fields[at]!.type.typeId as number)),
  );
}

function plain(value: unknown, typeId: number): Value {
  if (value === null || value === undefined) return null;
  if (typeId === DATE) return new Date(Number(value)).toISOString().slice(0, 10);
  return typeof value === 'bigint' ? Number(value) : (value as Value);
}
