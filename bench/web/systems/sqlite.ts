/**
 * SQLite on its pool of OPFS handles, in a worker as applications write it (the package's own
 * interface for pages is deprecated): a message a call, statements prepared once. Default settings,
 * or tuned: exclusive lock, write-ahead log, 64 MB of cache, commits still durable.
 */

import type { Columns, Parameter, Statement, System, Value } from '../system';
import type { Call, Reply } from '../workers/sqlite-worker';

/** Rows that are sent in one message. */
const PIECE_ROWS = 8192;

/** Opens the database with default settings, or tuned. */
export async function openSqlite(isTuned: boolean): Promise<System> {
  const url = new URL('./sqlite-worker.js', import.meta.url);
  const system = new Sqlite(new Worker(url, { type: 'module' }));
  await system.call({ name: 'open', isTuned });
  return system;
}

class Sqlite implements System {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #last = 0;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      this.#waiting.get(data.id)!(data);
      this.#waiting.delete(data.id);
    };
  }

  call(call: Call): Promise<Value[][]> {
    const id = (this.#last += 1);
    this.#worker.postMessage({ id, call });
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ rows, failure }) =>
        failure === undefined ? resolve(rows!) : reject(new Error(failure)),
      );
    });
  }

  async exec(sql: string): Promise<void> {
    await this.call({ name: 'exec', sql });
  }

  query(sql: string, parameters: Parameter[] = []): Promise<Value[][]> {
    return this.call({ name: 'all', sql, parameters });
  }

  /** The worker keeps statements by their text. */
  prepare(sql: string): Promise<Statement> {
    return Promise.resolve({ all: (parameters) => this.query(sql, parameters) });
  }

  async load(table: string, columns: Columns): Promise<void> {
    const all = Object.values(columns);
    await this.exec('begin');
    for (let at = 0; at < all[0]!.length; at += PIECE_ROWS) {
      const piece = all.map((column) => column.slice(at, at + PIECE_ROWS));
      await this.call({ name: 'insert', table, columns: piece });
    }
    await this.exec('commit');
  }
}
