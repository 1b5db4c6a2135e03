/**
 * What the simulation has for a database: rows, which know how often they were written. It answers
 * the calls that the workload makes, as the engine would.
 */

import { nacreError } from '../../../../worker/shared/errors.js';
/** A worker, which may be killed. */
interface Worker {
  readonly isAlive: boolean;
}

/** Chance and time. */
interface World {
  random(): number;
  between(from: number, to: number): number;
  wait(ms: number, worker: Worker): Promise<void>;
}

type Settle = { resolve: (answer: unknown) => void; reject: (error: unknown) => void };

/** The rows of the database, which outlive every worker. */
export class Rows {
  /** The worker that has the files open. */
  holder: Worker | null = null;
  /** How often each row was written. */
  readonly written = new Map<number, number>();
  /** What must never happen. */
  readonly violations: string[] = [];
  readonly changed = new Set<() => void>();
  version = 0;

  write(worker: Worker, ids: number[]): void {
    if (!worker.isAlive) {
      return;
    }
    if (this.holder !== worker) {
      this.violations.push(`${ids.join()} was written by a worker without the files`);
    }
    ids.forEach((id) => this.written.set(id, (this.written.get(id) ?? 0) + 1));
    this.version++;
    this.changed.forEach((wake) => wake());
  }

  connection(world: World, worker: Worker): RowsConnection {
    return new RowsConnection(this, world, worker);
  }
}

/** A connection to the rows. `select` reads them all, every other text writes its parameters. */
export class RowsConnection {
  readonly #rows: Rows;
  readonly #world: World;
  readonly #worker: Worker;
  readonly #sessions = new Map<number, number[]>();
  readonly #statements = new Map<number, string>();
  readonly #streams = new Set<number>();
  readonly #lives = new Map<number, { seen: number; waiting: Settle | null }>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #wake: () => void;
  #isClosed = false;
  #isAbandoned = false;

  constructor(rows: Rows, world: World, worker: Worker) {
    this.#rows = rows;
    this.#world = world;
    this.#worker = worker;
    this.#wake = () => this.#lives.forEach((_, id) => this.#look(id));
    rows.changed.add(this.#wake);
  }

  another(): RowsConnection {
    return new RowsConnection(this.#rows, this.#world, this.#worker);
  }

  call(method: string, args: unknown[]): unknown {
    if (this.#isClosed && method !== 'close') {
      throw nacreError('closed', 'the database is closed');
    }
    const [first, second, third] = args as [number, number, unknown];
    switch (method) {
      case 'stopped':
        return new Promise(() => {});
      case 'close':
        return this.#close();
      case 'begin':
        this.#sessions.set(first, []);
        return undefined;
      case 'end':
        return this.#end(first, args[1] as string);
      case 'execute':
        return this.#execute(first, args[1] as string, third as number[]);
      case 'prepare':
        this.#statements.set(second, third as string);
        return { fields: [], parameters: [] };
      case 'run':
        return this.#execute(first, this.#statement(second), third as number[]);
      case 'stream':
        this.#streams.add(second);
        return { chunk: this.#all(), done: false, fields: [] };
      case 'more':
        if (!this.#streams.delete(first)) {
          throw nacreError('closed', 'the stream has ended');
        }
        return { chunk: this.#all(), done: true };
      case 'live':
        this.#lives.set(first, { seen: this.#rows.version, waiting: null });
        return { fields: [], result: this.#all() };
      case 'nextLive':
        return this.#next(first);
      default:
        return undefined;
    }
  }

  #statement(id: number): string {
    const text = this.#statements.get(id);
    if (text === undefined) {
      throw nacreError('closed', 'the prepared statement is closed');
    }
    return text;
  }

  #all(): { rows: number[]; columns: [] } {
    return { rows: [...this.#rows.written.keys()], columns: [] };
  }

  /** A statement takes a while. Its effect is there at its beginning or at its end. */
  #execute(session: number, text: string, ids: number[]): Promise<unknown> {
    const transaction = this.#sessions.get(session);
    if (session !== 0 && transaction === undefined) {
      throw nacreError('closed', 'the transaction has ended');
    }
    const effect = (): unknown => {
      if (this.#isAbandoned) {
        throw nacreError('cancelled', 'the client of the call is gone');
      }
      if (text === 'select') {
        return this.#all();
      }
      if (transaction === undefined) {
        this.#rows.write(this.#worker, ids);
      } else {
        transaction.push(...ids);
      }
      return { rows: [], columns: [] };
    };
    const isEarly = this.#world.random() < 0.5;
    const answer = isEarly ? effect() : null;
    return this.#takeTime(25, () => (isEarly ? answer : effect()));
  }

  /** Closing waits for what takes time. */
  #takeTime(atMostMs: number, work: () => unknown): Promise<unknown> {
    const running = this.#world.wait(this.#world.between(0, atMostMs), this.#worker).then(work);
    this.#running.add(running);
    const ended = (): void => void this.#running.delete(running);
    running.then(ended, ended);
    return running;
  }

  #end(session: number, how: string): unknown {
    const ids = this.#sessions.get(session);
    if (ids === undefined) {
      throw nacreError('closed', 'the transaction has ended');
    }
    this.#sessions.delete(session);
    if (how === 'commit') {
      this.#rows.write(this.#worker, ids);
    }
    return this.#takeTime(10, () => undefined);
  }

  #next(id: number): Promise<unknown> {
    const live = this.#lives.get(id);
    if (live === undefined) {
      throw nacreError('cancelled', 'the live query has ended');
    }
    return new Promise((resolve, reject) => {
      live.waiting = { resolve, reject };
      this.#look(id);
    });
  }

  #look(id: number): void {
    const live = this.#lives.get(id)!;
    if (live.waiting !== null && live.seen < this.#rows.version && this.#worker.isAlive) {
      live.seen = this.#rows.version;
      live.waiting.resolve(this.#all());
      live.waiting = null;
    }
  }

  abandon(): Promise<void> {
    this.#isAbandoned = true;
    return this.#close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    this.#rows.changed.delete(this.#wake);
    this.#lives.forEach(({ waiting }) =>
      waiting?.reject(nacreError('cancelled', 'the live query has ended')),
    );
  }
}
