/**
 * One open database and its sessions: what a worker (or, in Node, the caller's own thread) does for every
 * method of the protocol. Statements of one session run one after another in the order they were called;
 * sessions do not wait for each other except where the engine makes them.
 *
 * The engine answers at once whenever it does not have to wait, so most calls finish synchronously.
 */

import {
  afterTrap,
  answerOf,
  currentInstance,
  Database,
  engineError,
  isSound,
  mustBeSound,
  type Prepared,
  type Session,
} from './engine.js';
import { nacreError } from './errors.js';
import type { OwnedStore } from './local-store.js';
import type { EngineOptions, StorageReport, StreamForm, WirePrepared } from './protocol.js';
import { Streams } from './streams.js';
import { endsTransaction } from './transaction-end.js';

/** The session of calls that belong to no transaction. */
export const MAIN_SESSION = 0;
const MAINTENANCE_STEPS = 4;
/** Longest time that an answered commit of `relaxed` durability waits for its sync. */
const SYNC_AFTER_MS = 100;

interface OpenStatement {
  /** It ends with its session. */
  session: number;
  prepared: Prepared;
}

interface OpenSession {
  engine: Session;
  /** Whether it is one transaction's: what would commit by itself must not run in it. */
  transaction: boolean;
  /** The last statement that has not ended, when there is one. */
  tail: Promise<unknown> | null;
}

type Timer = ReturnType<typeof setTimeout>;
type Method = (...args: never[]) => unknown;

export class Connection {
  readonly #database: Database;
  readonly #store: OwnedStore | null;
  readonly #instance = currentInstance();
  readonly #sessions = new Map<number, OpenSession>();
  readonly #statements = new Map<number, OpenStatement>();
  readonly #streams = new Streams();
  #nextStatement = 1;
  #closing: Promise<void> | null = null;
  #idle: Timer | null = null;
  readonly #relaxed: boolean;
  #sync: Timer | null = null;
  readonly #forgetTrap: () => void;

  private constructor(database: Database, store: OwnedStore | null, options: EngineOptions) {
    this.#database = database;
    this.#store = store;
    this.#relaxed = options.durability === 'relaxed';
    this.#forgetTrap = afterTrap(() => store?.close());
    this.#sessions.set(MAIN_SESSION, {
      engine: database.session(),
      transaction: false,
      tail: null,
    });
  }

  /** Opens a database on a store, or in memory without one. The store is closed when that fails. */
  static async open(store: OwnedStore | null, options: EngineOptions): Promise<Connection> {
    try {
      const database = await answerOf<Database>(Database.open(store ?? undefined, options));
      const connection = new Connection(database, store, options);
      connection.#afterwards();
      return connection;
    } catch (error) {
      store?.close();
      throw engineError(error);
    }
  }

  readonly #methods: Record<string, Method> = {
    begin: (session: number) => this.#begin(session),
    end: (session: number, statement: 'commit' | 'rollback') => this.#end(session, statement),
    execute: (session: number, sql: string, parameters: unknown) =>
      this.#run(session, sql, (engine) => engine.execute(sql, parameters)),
    arrow: (session: number, sql: string, parameters: unknown) =>
      this.#run(session, sql, (engine) => engine.arrow(sql, parameters)),
    prepare: (session: number, sql: string) =>
      this.#run(session, sql, (engine) => this.#prepare(session, engine, sql)),
    run: (session: number, statement: number, parameters: unknown) =>
      this.#run(session, '', (engine) => engine.run(this.#statement(statement), parameters)),
    finalize: (statement: number) => this.#finalize(statement),
    stream: (session: number, stream: number, form: StreamForm, sql: string, parameters: unknown) =>
      this.#streams.open(stream, form, (opened) =>
        this.#run(session, sql, (engine) => opened(() => engine.stream(sql, parameters))),
      ),
    runStream: (
      session: number,
      stream: number,
      form: StreamForm,
      statement: number,
      parameters: unknown,
    ) =>
      this.#streams.open(stream, form, (opened) =>
        this.#run(session, '', (engine) =>
          opened(() => engine.streamPrepared(this.#statement(statement), parameters)),
        ),
      ),
    more: (stream: number) => this.#streams.next(stream),
    endStream: (stream: number) => this.#streams.end(stream),
    inspect: () => this.#database.inspect(),
    storage: () => this.#storage(),
    flush: () => this.#database.flush(),
    close: () => this.close(),
  };

  /** Runs a method: the result, or a promise of it. Throws NacreError only. */
  call(method: string, args: unknown[]): unknown {
    try {
      if (this.#closing !== null && method !== 'close') {
        throw nacreError('closed', 'the database is closed');
      }
      if (method !== 'close') {
        mustBeSound(this.#instance);
      }
      const run = this.#methods[method];
      if (run === undefined) {
        throw nacreError(
          'unsupported',
          `unknown method ${method}: page and worker are of different versions`,
        );
      }
      const result = run(...(args as never[]));
      return result instanceof Promise ? this.#later(result) : result;
    } catch (error) {
      throw engineError(error);
    } finally {
      this.#afterwards();
    }
  }

  async #later(result: Promise<unknown>): Promise<unknown> {
    try {
      return await result;
    } catch (error) {
      throw engineError(error);
    } finally {
      this.#afterwards();
    }
  }

  /** Waits for running statements and closes. Transactions still open are rolled back. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const timer of [this.#idle, this.#sync]) {
      if (timer !== null) {
        clearTimeout(timer);
      }
    }
    try {
      await Promise.all([...this.#sessions.values()].map((session) => session.tail));
      if (isSound(this.#instance)) {
        this.#streams.endAll();
        this.#statements.forEach(({ prepared }) => prepared.free());
        this.#sessions.forEach(({ engine }) => engine.free());
        await this.#closeDatabase();
      }
    } finally {
      this.#forgetTrap();
      this.#store?.close();
    }
  }

  async #closeDatabase(): Promise<void> {
    try {
      await answerOf(this.#database.close());
    } finally {
      if (isSound(this.#instance)) {
        this.#database.free();
      }
    }
  }

  /** In the session's turn: at once when it has nothing else to do. */
  #on(id: number, work: (engine: Session) => unknown): unknown {
    const session = this.#session(id);
    const result =
      session.tail === null
        ? answerOf(work(session.engine))
        : session.tail.then(() => {
            // Either may have ended meanwhile.
            mustBeSound(this.#instance);
            return answerOf(work(this.#session(id).engine));
          });
    if (result instanceof Promise) {
      // The next statement runs whether or not this one fails.
      const tail = result
        .catch(() => {})
        .then(() => {
          if (session.tail === tail) {
            session.tail = null;
          }
        });
      session.tail = tail;
    }
    return result;
  }

  /** A statement in the session's turn. In a transaction's it does not end the transaction, and is never without it. */
  #run(id: number, sql: string, work: (engine: Session) => unknown): unknown {
    return this.#on(id, (engine) => {
      if (this.#session(id).transaction && (endsTransaction(sql) || !engine.inTransaction())) {
        throw endedBySql();
      }
      return work(engine);
    });
  }

  #session(id: number): OpenSession {
    const session = this.#sessions.get(id);
    if (session === undefined) {
      throw nacreError('closed', 'the transaction has ended');
    }
    return session;
  }

  #begin(id: number): unknown {
    const engine = this.#database.session();
    this.#sessions.set(id, { engine, transaction: true, tail: null });
    return this.#settle(
      () => this.#on(id, () => engine.execute('begin', undefined)),
      () => undefined,
      () => this.#drop(id),
    );
  }

  #end(id: number, statement: 'commit' | 'rollback'): unknown {
    return this.#settle(
      () =>
        this.#on(id, (engine) => {
          if (!engine.inTransaction()) {
            throw endedBySql();
          }
          return engine.execute(statement, undefined);
        }),
      () => this.#drop(id),
      () => this.#drop(id),
    );
  }

  /** `then` for something that may be a promise, so that what is there already stays synchronous. */
  #settle(work: () => unknown, done: () => void, failed: () => void): unknown {
    let result: unknown;
    try {
      result = work();
    } catch (error) {
      failed();
      throw error;
    }
    if (result instanceof Promise) {
      return result.then(done, (error: unknown) => {
        failed();
        throw error;
      });
    }
    done();
    return undefined;
  }

  #drop(id: number): void {
    for (const [statement, { session }] of this.#statements) {
      if (session === id) {
        this.#free(statement);
      }
    }
    // What a trap leaves is given back as a whole.
    if (isSound(this.#instance)) {
      this.#sessions.get(id)?.engine.free();
    }
    this.#sessions.delete(id);
  }

  #prepare(session: number, engine: Session, sql: string): WirePrepared {
    const prepared = engine.prepare(sql);
    const statement = this.#nextStatement++;
    this.#statements.set(statement, { session, prepared });
    return {
      statement,
      fields: prepared.fields() as WirePrepared['fields'],
      parameters: prepared.parameters() as string[],
    };
  }

  #statement(id: number): Prepared {
    const statement = this.#statements.get(id);
    if (statement === undefined) {
      throw nacreError('closed', 'the prepared statement is closed');
    }
    return statement.prepared;
  }

  /** In its session's turn: what was called before runs. */
  #finalize(id: number): unknown {
    const statement = this.#statements.get(id);
    return statement && this.#on(statement.session, () => this.#free(id));
  }

  #free(id: number): void {
    if (isSound(this.#instance)) {
      this.#statements.get(id)?.prepared.free();
    }
    this.#statements.delete(id);
  }

  async #storage(): Promise<StorageReport> {
    const manager = typeof navigator === 'undefined' ? undefined : navigator.storage;
    const inOrigin = this.#store !== null && manager !== undefined;
    return {
      bytes: this.#store?.bytes() ?? 0,
      quota: inOrigin ? ((await manager.estimate()).quota ?? null) : null,
      persisted: this.#store !== null && (!inOrigin || (await manager.persisted())),
    };
  }

  /** Between calls: files are made ready and the engine's background work is stepped, a little at a time. */
  #afterwards(): void {
    if (this.#closing !== null) {
      return;
    }
    this.#maintainSoon();
    if (this.#relaxed) {
      // A process of Node stays until then: it loses nothing when it ends by itself.
      this.#sync ??= setTimeout(() => {
        this.#sync = null;
        this.#flush();
      }, SYNC_AFTER_MS);
    }
  }

  /** Without keeping a process of Node alive for it. */
  #maintainSoon(): void {
    if (this.#idle === null) {
      this.#idle = setTimeout(() => {
        this.#idle = null;
        void this.#maintain();
      });
      (this.#idle as { unref?: () => void }).unref?.();
    }
  }

  /** Whatever was answered since the timer was set. Maintenance syncs too, but less than all in a burst of commits. */
  #flush(): void {
    try {
      mustBeSound(this.#instance);
      this.#database.flush();
    } catch (error) {
      // The next commit reports it.
      engineError(error);
    }
  }

  async #maintain(): Promise<void> {
    try {
      mustBeSound(this.#instance);
      await this.#store?.prepare();
      mustBeSound(this.#instance);
      if (this.#closing === null && this.#database.maintain(MAINTENANCE_STEPS)) {
        this.#maintainSoon();
      }
    } catch (error) {
      // The statement that needs what failed here reports it.
      engineError(error);
    }
  }
}

function endedBySql(): Error {
  return nacreError(
    'closed',
    'COMMIT and ROLLBACK in SQL end the transaction that db.transaction began: return to commit, throw or call rollback() to roll back',
  );
}
