/** Nacre with its default settings: `connect` in the page. Loads columns with `insertRows`. */

import { connect, type ConnectOptions, type Database, type QueryResult } from 'nacredb';

import type { TableDefinition } from '../../../web/src/load/tables';
import { toColumns } from '../lines';
import type { Columns, Parameter, Statement, System, Value } from '../system';

/** Rows of text that are made to columns at a time. */
const PIECE_ROWS = 100_000;

/** Opens the database, which is created if it is not there. */
export async function openNacre(options: ConnectOptions = {}): Promise<System> {
  const db = await connect('opfs://bench', {
    types: { bigint: 'number', decimal: 'number', date: 'string' },
    workerUrl: new URL('./nacre-worker.js', import.meta.url),
    preload: true,
    ...options,
  });
  return new Nacre(db);
}

/** A database of Nacre. */
export class Nacre implements System {
  constructor(readonly db: Database) {}

  async exec(sql: string): Promise<void> {
    await this.db.exec(sql);
  }

  async query(sql: string, parameters: Parameter[] = []): Promise<Value[][]> {
    return rowsOf(await this.db.query(sql, parameters));
  }

  async prepare(sql: string): Promise<Statement> {
    const statement = await this.db.prepare(sql);
    return { all: async (parameters) => rowsOf(await statement.run(parameters)) };
  }

  async load(table: string, columns: Columns): Promise<void> {
    await this.db.insertRows(table, columns);
  }

  async loadLines(table: TableDefinition, text: string): Promise<void> {
    for (const columns of toColumns(table, text, PIECE_ROWS)) {
      await this.db.insertRows(table.name, columns);
    }
  }
}

function rowsOf(result: QueryResult): Value[][] {
  return Array.from({ length: result.rowCount }, (_, row) => result.values(row) as Value[]);
}
