// The worker's side of the comparison: runs jobs on one system and measures them.
//
// Every system has the same jobs and the same loop around its calls. A call that answers without a
// promise is not awaited, so that a synchronous system pays nothing for the asynchronous ones.

import type { Answer, Job, LoadColumn, Opened, Reply, Request, Value } from './protocol';

/** A statement that runs more than once. */
export interface Prepared {
  all(parameters: (number | string)[]): Value[][] | Promise<Value[][]>;
}

/** One system. All calls run in the worker that loaded it. */
export interface Engine {
  open(): Promise<Opened>;
  exec(sql: string): Promise<void> | void;
  load(table: string, columns: LoadColumn[], text: string): Promise<void> | void;
  query(sql: string): Promise<Value[][]> | Value[][];
  prepare(sql: string): Promise<Prepared> | Prepared;
}

/** Answers the page's requests, one at a time. */
export function serve(engine: Engine): void {
  const prepared = new Map<string, Prepared>();
  const statement = async (sql: string): Promise<Prepared> => {
    const known = prepared.get(sql) ?? (await engine.prepare(sql));
    prepared.set(sql, known);
    return known;
  };

  const run = async (job: Job, columns: LoadColumn[]): Promise<Answer> => {
    const each = job.name === 'each' ? await statement(job.sql) : undefined;
    const update = job.name === 'mixed' ? await statement(job.update) : undefined;
    const sum = job.name === 'mixed' ? await statement(job.query) : undefined;
    const started = performance.now();
    const rows: Value[][] = [];
    let opened: Opened | undefined;
    switch (job.name) {
      case 'open':
        opened = await engine.open();
        break;
      case 'exec':
        for (const sql of job.sql) await engine.exec(sql);
        break;
      case 'load':
        await engine.load(job.table, columns, job.text);
        break;
      case 'query':
        rows.push(...(await engine.query(job.sql)));
        break;
      case 'each':
        for (const parameters of job.parameters) {
          const answer = each!.all(parameters);
          rows.push(...(answer instanceof Promise ? await answer : answer));
        }
        break;
      case 'mixed':
        for (const parameters of job.parameters) {
          await engine.exec('begin');
          await update!.all(parameters);
          rows.push(...(await sum!.all([])));
          await engine.exec('commit');
        }
        break;
    }
    const ms = performance.now() - started;
    return { ms, rows, fetchedBytes: fetchedBytes(), opened };
  };

  let last: Promise<void> = Promise.resolve();
  self.onmessage = ({ data }: MessageEvent<Request>) => {
    last = last.then(async () => {
      let reply: Reply;
      try {
        reply = { id: data.id, answer: await run(data.job, data.columns ?? []) };
      } catch (error) {
        reply = { id: data.id, failure: messageOf(error) };
      }
      self.postMessage(reply);
    });
  };
}

/** Uncompressed bytes of the scripts, WebAssembly and data files that this worker has fetched. */
function fetchedBytes(): number {
  const entries = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  return entries.reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Splits the lines of a table into columns. Integers become numbers. */
export function toColumns(
  columns: LoadColumn[],
  lines: string[],
): Record<string, Int32Array | string[]> {
  const arrays = columns.map(({ integer }) =>
    integer ? new Int32Array(lines.length) : new Array<string>(lines.length),
  );
  lines.forEach((line, row) => {
    let from = 0;
    for (let at = 0; at < columns.length; at += 1) {
      const to = line.indexOf('|', from);
      const field = line.slice(from, to);
      arrays[at]![row] = columns[at]!.integer ? Number(field) : field;
      from = to + 1;
    }
  });
  return Object.fromEntries(columns.map(({ name }, at) => [name, arrays[at]!]));
}

/** The lines of a table's text, without the empty one after the last line feed. */
export function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** The text as CSV with `|` between fields, without the `|` that TPC-H writes after the last. */
export const asCsv = (text: string): string => text.replaceAll('|\n', '\n');

/** Whether this worker can keep synchronously accessed files. */
export async function hasFiles(): Promise<boolean> {
  try {
    await navigator.storage.getDirectory();
    return 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
  } catch {
    return false;
  }
}
