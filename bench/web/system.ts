/** What the comparison asks of a system, as a page uses it: through its own API, with its engine in a worker. */

import type { TableDefinition } from '../../web/src/load/tables';

/** A value of a result, in a form that is equal across systems. */
export type Value = number | string | null;

/** A value of a parameter. */
export type Parameter = number | string;

/** Rows by column: arrays of one length, by name. */
export type Columns = Record<string, Int32Array | Float64Array | string[]>;

/** A statement that runs more than once. */
export interface Statement {
  /** The rows of a run. */
  all(parameters: Parameter[]): Promise<Value[][]>;
}

/** One system with an open database. */
export interface System {
  exec(sql: string): Promise<void>;
  query(sql: string, parameters?: Parameter[]): Promise<Value[][]>;
  prepare(sql: string): Promise<Statement>;
  /** Inserts columns that the page has, committed when it is answered. */
  load(table: string, columns: Columns): Promise<void>;
  /** Inserts the lines of a table of TPC-H; only where these queries are compared. */
  loadLines?(table: TableDefinition, text: string): Promise<void>;
}

/** The names of the systems. SQLite takes part with its default settings, and tuned. */
export const SYSTEMS = ['nacre', 'sqlite', 'tuned', 'duckdb', 'pglite'] as const;
export type SystemName = (typeof SYSTEMS)[number];
