/**
 * A worker whose own thread runs an engine: reads rows by key with synchronous calls, and
 * commits rows.
 */

import { createTable, makeColumns } from '../data';
import type { Columns, Parameter, Value } from '../system';

/** An engine in this thread, with an open database. */
export interface Engine {
  exec(sql: string): unknown;
  load(table: string, columns: Columns): unknown;
  /** Prepares a statement; a call of the answer runs it and gives its rows. */
  prepare(sql: string): (parameters: Parameter[]) => Value[][];
}

/** What the page asks. */
export type Request =
  | { name: 'open'; rows: number }
  | { name: 'points'; keys: number[] }
  | { name: 'commits'; first: number; count: number };

/** Answers the page. */
export function serve(open: () => Promise<Engine>): void {
  let select: ReturnType<Engine['prepare']>;
  let insert: ReturnType<Engine['prepare']>;

  const prepare = async (rows: number): Promise<void> => {
    const engine = await open();
    for (const table of ['t', 'c']) {
      await engine.exec(`drop table if exists ${table}`);
      await engine.exec(createTable(table));
    }
    await engine.load('t', makeColumns(rows));
    select = engine.prepare('select id, region, amount, note from t where id = ?');
    insert = engine.prepare('insert into c values (?, ?, ?, ?)');
  };

  const run = (request: Request): unknown => {
    const started = performance.now();
    switch (request.name) {
      case 'open':
        return prepare(request.rows);
      case 'points': {
        const rows = request.keys.map((key) => select([key])[0]!);
        return { ms: performance.now() - started, rows };
      }
      case 'commits':
        for (let id = request.first; id < request.first + request.count; id += 1) {
          insert([id, id % 20, id / 4, `a row that is committed, number ${id}`]);
        }
        return { ms: performance.now() - started, rows: [] };
    }
  };

  self.onmessage = async ({ data }: MessageEvent<Request>) => {
    try {
      self.postMessage({ answer: await run(data) });
    } catch (error) {
      self.postMessage({ failure: String(error) });
    }
  };
}
