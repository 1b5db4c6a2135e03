/**
 * Live queries: each runs again after commits that changed a table it reads, when its client asks
 * for the next result. Commits meanwhile are covered by one run, so a slow client causes few. Each
 * has a session of its own, and reads what is committed. The changes of a table are one that answers
 * what has changed since its last run.
 */

import {
  answerOf,
  type Changes,
  currentInstance,
  isSound,
  mustBeSound,
  type Database,
  type Prepared,
  type Session,
} from './engine.js';
import { nacreError, type NacreError } from './errors.js';
import { nextTask } from './next-task.js';
import type { Awaitable } from './protocol.js';
import type { WireLive, WireParameters, WireResult } from './wire.js';

/** What a live query runs. */
interface Source {
  /** Answers a `WireResult`, or a `Pending` for one. */
  run(): unknown;
  /** The tables that it reads. */
  tables(): Uint32Array;
  cancel(): void;
  free(): void;
}

interface LiveQuery {
  source: Source;
  /** The tables that it read last. */
  tables: Uint32Array;
  /** The newest change of them that its last result has. */
  seen: number;
  /** Settles with the run under way; null between runs. */
  running: Promise<unknown> | null;
  /** Runs it again, or fails the call that waits for that; null when no call waits. */
  waiting: { run: () => void; fail: (error: NacreError) => void } | null;
}

/** The live queries of one connection. */
export class LiveQueries {
  readonly #database: Database;
  readonly #open = new Map<number, LiveQuery>();
  readonly #instance = currentInstance();
  #scheduled = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Begins a live query under a number the client chose, and answers its first result. */
  begin(id: number, sql: string, parameters: WireParameters): Awaitable<WireLive> {
    const engine = this.#database.session();
    let prepared: Prepared | null = null;
    let live: LiveQuery;
    try {
      prepared = engine.prepare(sql);
      live = this.#add(id, querySource(engine, prepared, parameters));
    } catch (error) {
      prepared?.free();
      engine.free();
      throw error;
    }
    const fields = prepared.fields() as WireLive['fields'];
    // A run that fails frees it.
    const result = this.#run(id, live);
    return result instanceof Promise
      ? result.then((first) => ({ result: first, fields }))
      : { result, fields };
  }

  /** Begins with the changes of a table after now, under a number the client chose. */
  beginChanges(id: number, table: string): void {
    const changes = this.#database.changes(table);
    const live = this.#add(id, changesSource(changes));
    live.seen = this.#database.newestChange(live.tables);
  }

  #add(id: number, source: Source): LiveQuery {
    const live = { source, tables: source.tables(), seen: 0, running: null, waiting: null };
    this.#open.set(id, live);
    return live;
  }

  /** Answers the next result, as soon as a commit has changed a table of the query. */
  next(id: number): Awaitable<WireResult> {
    const live = this.#open.get(id);
    if (live === undefined) {
      throw ended();
    }
    if (this.#hasChanged(live)) {
      return this.#run(id, live);
    }
    return new Promise<WireResult>((resolve, reject) => {
      const run = (): void => {
        live.waiting = null;
        try {
          resolve(this.#run(id, live));
        } catch (error) {
          reject(error as Error);
        }
      };
      const fail = (error: NacreError): void => {
        live.waiting = null;
        reject(error);
      };
      live.waiting = { run, fail };
    });
  }

  /** Ends a live query. Ending it twice does nothing. */
  end(id: number): void {
    const live = this.#open.get(id);
    this.#open.delete(id);
    if (live === undefined) {
      return;
    }
    live.waiting?.fail(ended());
    // After a trap the instance's memory is released as a whole.
    if (isSound(this.#instance)) {
      if (live.running === null) {
        this.#free(live);
      } else {
        // Freed once it has ended.
        live.source.cancel();
      }
    }
  }

  /** Ends every live query, and waits for those that run. */
  async endAll(): Promise<void> {
    const running = [...this.#open.values()].map((live) => live.running?.catch(() => {}));
    [...this.#open.keys()].forEach((id) => this.end(id));
    await Promise.all(running);
  }

  /** The engine has stopped: fails the calls that wait for changes. */
  stopped(): void {
    this.#open.forEach(({ waiting }) => waiting?.run());
  }

  /** Looks for changes once the task that may have made them has ended. */
  afterCall(): void {
    if (this.#open.size > 0 && !this.#scheduled) {
      this.#scheduled = true;
      nextTask(() => {
        this.#scheduled = false;
        if (isSound(this.#instance)) {
          this.#open.forEach((live) => {
            if (live.waiting !== null && this.#hasChanged(live)) {
              live.waiting.run();
            }
          });
        }
      });
    }
  }

  #hasChanged({ tables, seen }: LiveQuery): boolean {
    return this.#database.newestChange(tables) > seen;
  }

  #run(id: number, live: LiveQuery): Awaitable<WireResult> {
    const { source } = live;
    mustBeSound(this.#instance);
    if (live.running !== null) {
      throw nacreError('closed', 'the live query runs already');
    }
    const done = (result: WireResult): WireResult => {
      live.running = null;
      if (this.#open.get(id) !== live) {
        this.#free(live);
        throw ended();
      }
      // A change of the catalog may have changed what it reads.
      live.tables = source.tables();
      return result;
    };
    const failed = (error: unknown): never => {
      live.running = null;
      this.#open.delete(id);
      this.#free(live);
      throw error;
    };
    try {
      live.seen = this.#database.newestChange(live.tables);
      const result = answerOf<WireResult>(source.run());
      if (!(result instanceof Promise)) {
        return done(result);
      }
      const running = result.then(done, failed);
      live.running = running;
      return running;
    } catch (error) {
      return failed(error);
    }
  }

  #free({ source }: LiveQuery): void {
    if (isSound(this.#instance)) {
      source.free();
    }
  }
}

function querySource(engine: Session, prepared: Prepared, parameters: WireParameters): Source {
  return {
    run: () => engine.run(prepared, parameters),
    tables: () => prepared.tables(),
    cancel: () => engine.cancel(),
    free: () => {
      prepared.free();
      engine.free();
    },
  };
}

function changesSource(changes: Changes): Source {
  const tables = Uint32Array.of(changes.table());
  return {
    run: () => changes.next(),
    tables: () => tables,
    // It does not give way, so it has ended.
    cancel: () => {},
    free: () => changes.free(),
  };
}

function ended(): NacreError {
  return nacreError('cancelled', 'the live query has ended');
}
