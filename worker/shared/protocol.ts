/**
 * The protocol between a client (a page, or code in the same thread) and the engine: every method,
 * defined once.
 *
 * `Protocol` says what each method takes and answers; `TRANSFER` says which buffers of the answer
 * move instead of being copied. Everything else is derived: a client calls through `Service`, the
 * engine's side implements `Handlers`, and messages are `Call` and `Reply`. A method that is
 * missing on either side, or misspelled, fails type checking.
 *
 * The protocol knows nothing of how messages travel. `serve` (server.ts) answers calls from any
 * message port; a client in the same thread calls a `Service` directly. The engine sends nothing
 * unasked: there are no events.
 */

import type { ErrorData } from './errors.js';
import type { TableReport } from './inspect.js';
import type {
  OnDuplicate,
  OpenRequest,
  LagReport,
  StorageReport,
  StreamForm,
  WireChunk,
  WireFunction,
  WireLive,
  WireParameters,
  WirePrepared,
  WireProgress,
  WireResult,
  WireStream,
  WireValues,
} from './wire.js';

/**
 * The session of calls outside a transaction. Clients choose the numbers of other sessions, from 1.
 */
export const MAIN_SESSION = 0;

/** Every method: its arguments and its answer. */
export interface Protocol {
  /** Opens the database. The first call; other calls wait for it. */
  open(request: OpenRequest): void;
  /** Starts a session, under a number the client chose, and begins a transaction in it. */
  begin(session: number): void;
  /** Ends a session's transaction, and the session. `cancel` ends what runs in it, too, and rolls back. */
  end(session: number, how: 'commit' | 'rollback' | 'cancel'): void;
  /**
   * Runs one or more statements and answers the last one's result. A `ticket`, a number the client
   * chose, makes a call of this and the next methods one that can be cancelled.
   */
  execute(session: number, sql: string, parameters: WireParameters, ticket?: number): WireResult;
  /** Runs a query and answers an Arrow IPC stream. */
  arrow(session: number, sql: string, parameters: WireParameters, ticket?: number): Uint8Array;
  /** Parses and binds a statement, under a number the client chose. */
  prepare(session: number, statement: number, sql: string): WirePrepared;
  /** Runs a prepared statement. */
  run(session: number, statement: number, parameters: WireParameters, ticket?: number): WireResult;
  /**
   * Cancels the call with a ticket: it fails with `cancelled`, its statement undone, unless it ends
   * before. Without such a call, does nothing.
   */
  cancel(ticket: number): void;
  /** Answers how far the statement of the call with a ticket is; null before it has reported it. */
  progress(ticket: number): WireProgress | null;
  /** Frees a prepared statement. */
  finalize(statement: number): void;
  /** Opens a stream, under a number the client chose, and answers its first chunk. */
  stream(
    session: number,
    stream: number,
    form: StreamForm,
    sql: string,
    parameters: WireParameters,
  ): WireStream;
  /** As `stream`, with a prepared statement. */
  runStream(
    session: number,
    stream: number,
    form: StreamForm,
    statement: number,
    parameters: WireParameters,
  ): WireStream;
  /** Answers the next chunk of a stream. */
  more(stream: number): WireChunk;
  /** Ends a stream, also one that is not open yet. */
  endStream(stream: number): void;
  /** Begins a bulk load into a table, under a number the client chose, after earlier statements. */
  load(session: number, load: number, table: string, onDuplicate: OnDuplicate): void;
  /** Adds the next bytes of Arrow IPC streams to a load. */
  loadArrow(load: number, bytes: Uint8Array): void;
  /** Adds rows to a load: the names of columns, and their values. */
  loadColumns(load: number, names: readonly string[], columns: readonly WireValues[]): void;
  /** Makes the rows of a load visible, or none of them; answers their number. */
  finishLoad(load: number): number;
  /** Ends a load, which then loads nothing unless it has finished. */
  dropLoad(load: number): void;
  /** Begins a live query, under a number the client chose, and answers its first result. */
  live(live: number, sql: string, parameters: WireParameters): WireLive;
  /**
   * Begins with the changes of a table after earlier statements, under a number the client chose. They
   * are the results of a live query: rows with what happened to them before their columns.
   */
  changes(live: number, table: string): void;
  /** Answers the next result of a live query, once a commit has changed one of its tables. */
  nextLive(live: number): WireResult;
  /** Ends a live query. */
  endLive(live: number): void;
  /** Creates a function, or replaces one that was created before. */
  createFunction(definition: WireFunction): void;
  /** Removes a function that was created; answers whether there was one. */
  dropFunction(name: string): boolean;
  /** Answers all files of the database, as `archive.ts` packs them. */
  export(): Blob;
  /** Describes how each table is stored. */
  inspect(): TableReport[];
  /** Answers storage use and quota. */
  storage(): StorageReport;
  /** Makes every committed change durable. */
  flush(): void;
  /** Makes visible what the writer of a database that is only read has uploaded; answers whether that was anything. */
  refresh(): boolean;
  /** Answers what is known of the newest upload; null without blobs. */
  lag(): LagReport | null;
  /** Uploads every committed change to the blobs, if the database has some. */
  upload(): void;
  /** Is answered if the engine stops after an internal error: the database must be opened again. */
  stopped(): void;
  /** Waits for running statements and closes the database. */
  close(): void;
}

/** Name of a method. */
export type Method = keyof Protocol;
/** Methods of an open database. */
export type ConnectionMethod = Exclude<Method, 'open'>;
/** A method's arguments. */
export type Arguments<M extends Method> = Parameters<Protocol[M]>;
/** A method's answer. */
export type Answer<M extends Method> = ReturnType<Protocol[M]>;
/** A value, or the promise of it. Whatever is available at once stays synchronous. */
export type Awaitable<T> = T | Promise<T>;

/** One function for each method: what the engine's side implements. */
export type Handlers<M extends Method = Method> = {
  readonly [Name in M]: (...args: Arguments<Name>) => Awaitable<Answer<Name>>;
};

/** Anything that answers the protocol's calls. Fails with a NacreError only. */
export interface Service<Methods extends Method = Method> {
  call<M extends Methods>(method: M, args: Arguments<M>): Awaitable<Answer<M>>;
}

/** A call as a message. The client chooses `id`, and the reply repeats it. */
export interface Call<M extends Method = Method> {
  id: number;
  method: M;
  args: Arguments<M>;
}

/** Thrown instead of running a call of a tab whose leader closes, and rejects the call there. */
export const MOVED: unique symbol = Symbol('moved');

/**
 * A reply as a message. Both directions send arrays: calls made in one task travel together, and so
 * do replies.
 */
export type Reply =
  | { id: number; result: Answer<Method> }
  | { id: number; error: ErrorData }
  | { id: number; moved: true };

const nothing = (): ArrayBuffer[] => [];

/** The buffers of each method's answer that are transferred. */
export const TRANSFER: { readonly [M in Method]: (answer: Answer<M>) => ArrayBuffer[] } = {
  open: nothing,
  begin: nothing,
  end: nothing,
  execute: resultBuffers,
  arrow: (bytes) => [bufferOf(bytes)],
  prepare: nothing,
  run: resultBuffers,
  cancel: nothing,
  progress: nothing,
  finalize: nothing,
  stream: chunkBuffers,
  runStream: chunkBuffers,
  more: chunkBuffers,
  endStream: nothing,
  load: nothing,
  loadArrow: nothing,
  loadColumns: nothing,
  finishLoad: nothing,
  dropLoad: nothing,
  live: ({ result }) => resultBuffers(result),
  changes: nothing,
  nextLive: resultBuffers,
  endLive: nothing,
  createFunction: nothing,
  dropFunction: nothing,
  export: nothing,
  inspect: nothing,
  storage: nothing,
  flush: nothing,
  refresh: nothing,
  lag: nothing,
  upload: nothing,
  stopped: nothing,
  close: nothing,
};

function chunkBuffers({ chunk }: WireChunk): ArrayBuffer[] {
  return chunk instanceof Uint8Array ? [bufferOf(chunk)] : resultBuffers(chunk);
}

function resultBuffers({ columns }: WireResult): ArrayBuffer[] {
  return columns
    .flatMap(({ values, offsets, validity }) => [values, offsets, validity])
    .filter((part) => ArrayBuffer.isView(part))
    .map(bufferOf);
}

function bufferOf(view: ArrayBufferView): ArrayBuffer {
  return view.buffer as ArrayBuffer;
}
