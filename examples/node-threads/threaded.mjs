// The main thread's side: the same calls, as messages to the thread that has the database.

import { Worker } from 'node:worker_threads';

/** A database in a worker thread, so that a long query does not stop the main thread. */
export class ThreadedDatabase {
  #worker;
  #pending = new Map();
  #nextId = 1;

  constructor(folder) {
    this.#worker = new Worker(new URL('./database.mjs', import.meta.url), {
      workerData: { folder },
    });
    this.#worker.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) {
        resolve(result);
      } else {
        reject(Object.assign(new Error(error.message), { kind: error.kind }));
      }
    });
    // It could not open the database, or has ended: nothing will be answered.
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('the thread of the database has ended')));
  }

  exec(sql) {
    return this.#call('exec', sql);
  }

  query(sql, parameters = []) {
    return this.#call('query', sql, parameters);
  }

  insertRows(table, rows, options = {}) {
    return this.#call('insertRows', table, rows, options);
  }

  close() {
    return this.#call('close');
  }

  #call(method, ...args) {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    });
  }

  #fail(error) {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    pending.forEach(({ reject }) => reject(error));
  }
}
