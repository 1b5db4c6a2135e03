/**
 * The page of the comparison. `window.bench` does what the driver asks, one thing at a time, and times
 * it around the calls of a system's own API.
 */

import { createTable as createTpch, TABLES } from '../../web/src/load/tables';
import { createTable, makeColumns, makeKeys } from './data';
import { openDuckdb } from './systems/duckdb';
import { openNacre } from './systems/nacre';
import { openPglite } from './systems/pglite';
import { openSqlite } from './systems/sqlite';
import type { Columns, System, SystemName, Value } from './system';

const OPEN: Record<SystemName, () => Promise<System>> = {
  nacre: openNacre,
  sqlite: () => openSqlite(false),
  tuned: () => openSqlite(true),
  duckdb: openDuckdb,
  pglite: openPglite,
};
const POINT = 'select id, region, amount, note from t where id = ?';
const INSERT = 'insert into c values (?, ?, ?, ?)';

const systems = new Map<SystemName, System>();
let columns: Columns = {};

const of = (name: SystemName): System => systems.get(name)!;

/** What a run took, and what it answered. */
interface Timed {
  ms: number;
  rows: Value[][];
}

async function timed(run: () => Promise<Value[][] | void>): Promise<Timed> {
  const started = performance.now();
  const rows = (await run()) ?? [];
  return { ms: performance.now() - started, rows };
}

const bench = {
  async open(name: SystemName): Promise<void> {
    systems.set(name, await OPEN[name]());
  },

  /** Makes the rows to insert. */
  make(rows: number): void {
    columns = makeColumns(rows);
  },

  exec: (name: SystemName, sql: string): Promise<void> => of(name).exec(sql),

  query: (name: SystemName, sql: string): Promise<Timed> => timed(() => of(name).query(sql)),

  /** Inserts all rows into an empty table, with a primary key or without. */
  async load(name: SystemName, table: string, key: boolean): Promise<number> {
    await of(name).exec(`drop table if exists ${table}`);
    await of(name).exec(createTable(table, key ? undefined : ''));
    return (await timed(() => of(name).load(table, columns))).ms;
  },

  /** Reads rows by their keys with one statement, `inTask` calls at a time. */
  async points(name: SystemName, keys: number[], inTask: number): Promise<Timed> {
    const statement = await of(name).prepare(POINT);
    const rows: Value[][] = [];
    return timed(async () => {
      for (let at = 0; at < keys.length; at += inTask) {
        const some = keys.slice(at, at + inTask);
        const answers = await Promise.all(some.map((key) => statement.all([key])));
        for (const answer of answers) rows.push(answer[0]!);
      }
      return rows;
    });
  },

  /** Reads rows by their keys, each with the text of the statement. */
  async byText(name: SystemName, keys: number[]): Promise<Timed> {
    const rows: Value[][] = [];
    return timed(async () => {
      for (const key of keys) rows.push((await of(name).query(POINT, [key]))[0]!);
      return rows;
    });
  },

  /** Inserts rows, each of which is committed before the next. */
  async commits(name: SystemName, first: number, count: number): Promise<number> {
    const statement = await of(name).prepare(INSERT);
    const run = async (): Promise<void> => {
      for (let id = first; id < first + count; id += 1) {
        await statement.all([id, id % 20, id / 4, `a row that is committed, number ${id}`]);
      }
    };
    return (await timed(run)).ms;
  },

  keys: makeKeys,

  /** Creates the tables of TPC-H, and fills them with the lines that the server has. */
  async loadTpch(name: SystemName): Promise<void> {
    for (const table of TABLES) {
      await of(name).exec(`drop table if exists ${table.name}`);
      await of(name).exec(createTpch(table));
      const lines = await fetch(`data/${table.name}.tbl`);
      await of(name).loadLines!(table, await lines.text());
    }
  },

  /** Bytes of WebAssembly memory of the one system that is open in this browser. */
  memory: (): Promise<number> =>
    new Promise((resolve) => {
      const channel = new BroadcastChannel('bench-memory');
      channel.onmessage = ({ data }: MessageEvent<{ bytes: number }>) => resolve(data.bytes);
      channel.postMessage('how much');
    }),
};

export type Bench = typeof bench;

Object.assign(window, { bench });
