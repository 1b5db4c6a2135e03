/**
 * One client's sessions of an open database: the engine's side of the protocol. It runs in a worker
 * or, in Node, in the caller's own thread. Statements of one session run one after another, in the
 * order of their calls; sessions do not wait for each other, except for locks inside the engine.
 *
 * A call that does not have to wait finishes synchronously, and most calls do.
 */

import { archiveOf, type ArchivedFile } from './archive.js';
import {
  answerOf,
  endsTransaction,
  engineError,
  isSound,
  mustBeSound,
  resultNow,
  type Prepared,
  type Session,
} from './engine.js';
import { nacreError, type NacreError } from './errors.js';
import { LiveQueries } from './live.js';
import type { EngineBlobs } from './blobs/engine-blobs.js';
import type { OwnedStore } from './local-store.js';
import { Loads } from './loads.js';
import { Opened } from './opened.js';
import {
  MAIN_SESSION,
  type Answer,
  type Arguments,
  type Awaitable,
  type ConnectionMethod,
  type Handlers,
  type Service,
} from './protocol.js';
import { Streams } from './streams.js';
import { Tickets } from './tickets.js';
import type {
  EngineOptions,
  LagReport,
  StorageReport,
  WireParameters,
  WirePrepared,
  WireResult,
} from './wire.js';

/** Names of temporary files, which belong to running statements, begin with this. */
const TEMPORARY = 'tmp-';

interface OpenStatement {
  /** The session that prepared it, and with which it is freed. */
  session: number;
  prepared: Prepared;
}

/** Methods that can be called synchronously. */
type NowMethod = 'prepare' | 'run';

interface OpenSession {
  engine: Session;
  /** Whether the session belongs to one transaction: then no statement may commit on its own. */
  transaction: boolean;
  /** Whether the transaction is being cancelled: statements that wait for their turn do not begin. */
  isCancelled: boolean;
  /** Settles with the last statement that has not finished; null when the session is idle. */
  tail: Promise<unknown> | null;
}

/** A connection to an open database. */
export class Connection implements Service<ConnectionMethod> {
  readonly #opened: Opened;
  /** Whether the database is closed with this connection. */
  readonly #owns: boolean;
  readonly #sessions = new Map<number, OpenSession>();
  readonly #statements = new Map<number, OpenStatement>();
  readonly #streams = new Streams();
  readonly #loads = new Loads();
  readonly #tickets = new Tickets();
  #closing: Promise<void> | null = null;
  #isAbandoned = false;
  readonly #live: LiveQueries;

  private constructor(opened: Opened, owns: boolean) {
    this.#opened = opened;
    this.#owns = owns;
    this.#live = opened.liveQueries();
    this.#sessions.set(MAIN_SESSION, {
      engine: opened.database.session(),
      transaction: false,
      isCancelled: false,
      tail: null,
    });
  }

  /**
   * Opens a database on a store, or in memory without one, with the files of another one if there
   * are any. A blob store has its files as well, or all of them. The store is closed when that fails.
   * Closing the connection closes the database.
   */
  static async open(
    store: OwnedStore | null,
    options: EngineOptions,
    files: readonly ArchivedFile[] = [],
    blobs?: EngineBlobs,
  ): Promise<Connection> {
    const connection = new Connection(await Opened.open(store, options, files, blobs), true);
    connection.#opened.afterCall();
    return connection;
  }

  /** Connects another client to the same database, which must close before this connection does. */
  another(): Connection {
    this.#mustBeOpen();
    return new Connection(this.#opened, false);
  }

  readonly #handlers: Handlers<ConnectionMethod> = {
    begin: (session) => this.#begin(session),
    end: (session, how) => this.#end(session, how),
    execute: (session, sql, parameters, ticket) =>
      this.#run(
        session,
        sql,
        (engine) => answerOf<WireResult>(engine.execute(sql, parameters)),
        ticket,
      ),
    arrow: (session, sql, parameters, ticket) =>
      this.#run(
        session,
        sql,
        (engine) => answerOf<Uint8Array>(engine.arrow(sql, parameters)),
        ticket,
      ),
    prepare: (session, statement, sql) =>
      this.#run(session, sql, (engine) => this.#prepare(session, engine, statement, sql)),
    run: (session, statement, parameters, ticket) =>
      this.#run(
        session,
        '',
        (engine) => answerOf<WireResult>(engine.run(this.#statement(statement), parameters)),
        ticket,
      ),
    cancel: (ticket) => this.#tickets.cancel(ticket),
    progress: (ticket) => this.#tickets.progress(ticket),
    finalize: (statement) => this.#finalize(statement),
    stream: (session, stream, form, sql, parameters) =>
      this.#streams.open(stream, form, (begin) =>
        this.#run(session, sql, (engine) => begin(engine, () => engine.stream(sql, parameters))),
      ),
    runStream: (session, stream, form, statement, parameters) =>
      this.#streams.open(stream, form, (begin) =>
        this.#run(session, '', (engine) =>
          begin(engine, () => engine.streamPrepared(this.#statement(statement), parameters)),
        ),
      ),
    more: (stream) => this.#streams.next(stream),
    endStream: (stream) => this.#streams.end(stream),
    load: (session, load, table, onDuplicate) =>
      this.#loads.begin(load, (begin) =>
        this.#run(session, '', (engine) => begin(() => engine.load(table, onDuplicate))),
      ),
    loadArrow: (load, bytes) => this.#loads.add(load, (engine) => engine.arrow(bytes)),
    loadColumns: (load, names, columns) =>
      this.#loads.add(load, (engine) => engine.columns(names as string[], columns as unknown[])),
    finishLoad: (load) => this.#loads.finish(load),
    dropLoad: (load) => this.#loads.drop(load),
    live: (live, sql, parameters) => this.#live.begin(live, sql, parameters),
    changes: (live, table) => this.#on(MAIN_SESSION, () => this.#live.beginChanges(live, table)),
    nextLive: (live) => this.#live.next(live),
    endLive: (live) => this.#live.end(live),
    createFunction: (definition) => this.#opened.functions.create(definition),
    dropFunction: (name) => this.#opened.database.dropFunction(name),
    export: () => this.#export(),
    inspect: () => this.#opened.database.inspect() as Answer<'inspect'>,
    storage: () => this.#storage(),
    flush: () => this.#opened.database.flush(),
    refresh: () => answerOf<boolean>(this.#opened.database.refresh()),
    lag: () => this.#lag(),
    upload: () => answerOf<void>(this.#opened.database.upload()),
    stopped: () => this.#opened.stopped,
    close: () => this.close(),
  };

  /** Runs a method. Fails with a NacreError only. */
  call<M extends ConnectionMethod>(method: M, args: Arguments<M>): Awaitable<Answer<M>> {
    try {
      if (method !== 'close') {
        this.#mustBeOpen();
      }
      const result = this.#opened.whenDurable<Answer<M>>(
        this.#handlers[method](...args),
        method === 'flush',
      );
      return result instanceof Promise ? this.#later(result) : this.#opened.whenPunctual(result);
    } catch (error) {
      throw engineError(error);
    } finally {
      this.#opened.afterCall();
    }
  }

  /**
   * Runs a method synchronously, in a session without running calls. Fails with `unavailable` if it
   * must wait.
   */
  callNow<M extends NowMethod>(method: M, args: Arguments<M>): Answer<M> {
    // Comparing `method` does not narrow the types that depend on it.
    return this.#now(
      args[0],
      (engine) =>
        (method === 'prepare'
          ? this.#prepareNow(engine, args as Arguments<'prepare'>)
          : this.#runNow(engine, args as Arguments<'run'>)) as Answer<M>,
    );
  }

  /**
   * Reads one row by a key synchronously, and answers its raw values; `undefined` without such a row,
   * and `null` if the statement has to be run instead.
   */
  getNow(
    session: number,
    statement: number,
    parameters: WireParameters,
  ): unknown[] | undefined | null {
    return this.#now(session, (engine) =>
      this.#withoutWaiting(
        () => engine.get(this.#statement(statement), parameters) as unknown[] | undefined | null,
      ),
    );
  }

  /** Does work in a session without running calls. */
  #now<T>(id: number, work: (engine: Session) => T): T {
    try {
      this.#mustBeOpen();
      if (this.#opened.store?.settled !== undefined) {
        throw nacreError('unsupported', 'a database in IndexedDB has no synchronous calls');
      }
      const session = this.#session(id);
      if (session.tail !== null) {
        throw nacreError('unavailable', 'another call runs, and a synchronous one cannot wait');
      }
      return work(session.engine);
    } catch (error) {
      throw engineError(error);
    } finally {
      this.#opened.afterCall();
    }
  }

  #prepareNow(engine: Session, [id, statement, sql]: Arguments<'prepare'>): WirePrepared {
    return this.#prepare(id, engine, statement, sql);
  }

  #runNow(engine: Session, [id, statement, parameters]: Arguments<'run'>): WireResult {
    return this.#withoutWaiting(() =>
      resultNow<WireResult>(
        engine.run(this.#statement(statement), parameters),
        () => engine.cancel(),
        (ended) => {
          const later = this.#on(id, () => ended);
          (later as Promise<unknown>).catch(() => {});
        },
      ),
    );
  }

  /** Runs a statement, unless answering it takes waiting. */
  #withoutWaiting<T>(work: () => T): T {
    if (this.#opened.holdsCommits) {
      const why =
        'with durability blob, statements wait for uploads, and are not run synchronously';
      throw nacreError('unsupported', why);
    }
    const { store } = this.#opened;
    return store === null ? work() : store.withoutPreparing(work);
  }

  #mustBeOpen(): void {
    if (this.#closing !== null) {
      throw nacreError('closed', 'the database is closed');
    }
    mustBeSound(this.#opened.instance);
    if (this.#opened.functions.isRunning) {
      throw nacreError('unsupported', 'a function cannot use the database that is calling it');
    }
  }

  async #later<T>(result: Promise<T>): Promise<T> {
    try {
      return await result;
    } catch (error) {
      throw engineError(error);
    } finally {
      this.#opened.afterCall();
    }
  }

  /** Waits for running statements, then closes. Open transactions are rolled back. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Cancels what runs and what waits for its turn, then closes: the client is gone. */
  abandon(): Promise<void> {
    this.#isAbandoned = true;
    if (isSound(this.#opened.instance)) {
      this.#sessions.forEach(({ engine }) => engine.cancel());
      this.#streams.endAll();
      this.#loads.cancelAll();
    }
    return this.close();
  }

  async #close(): Promise<void> {
    if (this.#owns) {
      this.#opened.stopUpkeep();
    }
    try {
      await Promise.all([...this.#sessions.values()].map((session) => session.tail));
      await this.#live.endAll();
      if (isSound(this.#opened.instance)) {
        this.#streams.endAll();
        this.#loads.dropAll();
        this.#statements.forEach(({ prepared }) => prepared.free());
        this.#sessions.forEach(({ engine }) => engine.free());
      }
    } finally {
      this.#opened.forget(this.#live);
      if (this.#owns) {
        await this.#opened.close();
      }
    }
  }

  /**
   * Does work in a session once its earlier statements have finished: at once when the session is
   * idle.
   */
  #on<T>(id: number, work: (engine: Session) => Awaitable<T>): Awaitable<T> {
    const session = this.#session(id);
    const result =
      session.tail === null
        ? work(session.engine)
        : session.tail.then(() => {
            // The engine or the session may have ended while this call waited.
            mustBeSound(this.#opened.instance);
            if (this.#isAbandoned) {
              throw nacreError('cancelled', 'the client of the call is gone');
            }
            return work(this.#session(id).engine);
          });
    if (result instanceof Promise) {
      // The next statement runs even if this one fails.
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

  /**
   * Runs a statement in a session. In a transaction's session, a statement neither ends the
   * transaction nor runs without it.
   */
  #run<T>(
    id: number,
    sql: string,
    work: (engine: Session) => Awaitable<T>,
    ticket?: number,
  ): Awaitable<T> {
    if (ticket !== undefined) {
      return this.#tickets.run(ticket, (started) =>
        this.#run(id, sql, (engine) => {
          started(engine);
          return work(engine);
        }),
      );
    }
    return this.#on(id, (engine) => {
      const { transaction, isCancelled } = this.#session(id);
      if (isCancelled) {
        throw nacreError('cancelled', 'the transaction was cancelled');
      }
      if (transaction && (endsTransaction(sql) || !engine.inTransaction())) {
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

  #begin(id: number): Awaitable<void> {
    const engine = this.#opened.database.session();
    this.#sessions.set(id, { engine, transaction: true, isCancelled: false, tail: null });
    return settle(
      () => this.#on(id, () => answerOf(engine.execute('begin', undefined))),
      (ended) => {
        if (ended === 'failed') {
          this.#drop(id);
        }
      },
    );
  }

  #end(id: number, how: 'commit' | 'rollback' | 'cancel'): Awaitable<void> {
    if (how === 'cancel') {
      const session = this.#session(id);
      session.isCancelled = true;
      session.engine.cancel();
    }
    return settle(
      () =>
        this.#on(id, (engine) => {
          if (!engine.inTransaction()) {
            throw endedBySql();
          }
          return answerOf(engine.execute(how === 'commit' ? how : 'rollback', undefined));
        }),
      () => this.#drop(id),
    );
  }

  #drop(id: number): void {
    for (const [statement, { session }] of this.#statements) {
      if (session === id) {
        this.#free(statement);
      }
    }
    // After a trap the instance's memory is released as a whole.
    if (isSound(this.#opened.instance)) {
      this.#sessions.get(id)?.engine.free();
    }
    this.#sessions.delete(id);
  }

  #prepare(session: number, engine: Session, statement: number, sql: string): WirePrepared {
    const prepared = engine.prepare(sql);
    this.#free(statement);
    this.#statements.set(statement, { session, prepared });
    return {
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

  /** Frees a statement once the calls made before have run. */
  #finalize(id: number): Awaitable<void> {
    const statement = this.#statements.get(id);
    return statement && this.#on(statement.session, () => this.#free(id));
  }

  #free(id: number): void {
    if (isSound(this.#opened.instance)) {
      this.#statements.get(id)?.prepared.free();
    }
    this.#statements.delete(id);
  }

  /** Between two calls the files are what they would be if the process ended now. */
  #export(): Blob {
    if (this.#opened.hasBlobs) {
      throw nacreError(
        'unsupported',
        'exporting a database with blobs is not supported: not all of its files are here',
      );
    }
    this.#opened.database.flush();
    const names = this.#opened.database.fileNames().filter((name) => !name.startsWith(TEMPORARY));
    const read = (name: string): ArchivedFile => ({
      name,
      bytes: this.#opened.database.readFile(name) as Uint8Array<ArrayBuffer>,
    });
    return archiveOf(
      (function* () {
        for (const name of names) {
          yield read(name);
        }
      })(),
    );
  }

  #lag(): LagReport | null {
    const lag = this.#opened.database.lag();
    if (lag === undefined) {
      return null;
    }
    const [position, uploaded, uploadedMs, sinceMs, lease, failure] = lag as unknown as [
      number,
      number,
      number,
      number,
      LagReport['lease'],
      string | undefined,
    ];
    return { position, uploaded, uploadedAt: new Date(uploadedMs), sinceMs, lease, failure };
  }

  async #storage(): Promise<StorageReport> {
    const manager = typeof navigator === 'undefined' ? undefined : navigator.storage;
    const inOrigin = this.#opened.store !== null && manager !== undefined;
    return {
      place: this.#opened.store?.place ?? 'memory',
      bytes: this.#opened.store?.bytes() ?? 0,
      quota: inOrigin ? ((await manager.estimate()).quota ?? null) : null,
      persisted: this.#opened.store !== null && (!inOrigin || (await manager.persisted())),
      losses: this.#opened.database.losses(),
    };
  }
}

/**
 * Runs `after` once `work` has ended, either way; synchronously when `work` is synchronous. Answers
 * nothing.
 */
function settle(
  work: () => Awaitable<unknown>,
  after: (ended: 'done' | 'failed') => void,
): Awaitable<void> {
  const failed = (error: unknown): never => {
    after('failed');
    throw error;
  };
  let result: unknown;
  try {
    result = work();
  } catch (error) {
    return failed(error);
  }
  return result instanceof Promise ? result.then(() => after('done'), failed) : after('done');
}

function endedBySql(): NacreError {
  return nacreError(
    'closed',
    'COMMIT and ROLLBACK in SQL cannot end a transaction that db.transaction began: return from the function to commit; throw or call rollback() to roll back',
  );
}
