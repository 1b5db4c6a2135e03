/**
 * The data that calls and answers carry. A result crosses as columns, whose buffers are transferred
 * instead of copied. `bindings/wasm/src/wire.rs` produces these shapes.
 */

import type { WireBlobs } from './blobs/options.js';

/** When a commit is answered. */
export type Durability = 'strict' | 'relaxed' | 'blob';

/** Engine options. A missing option takes the engine's default. */
export interface EngineOptions {
  durability?: Durability | undefined;
  /** Memory of the whole database, in bytes. */
  memoryBytes?: number | undefined;
  /** Memory limit of one statement, in bytes. */
  memoryLimit?: number | undefined;
  /** Size of the cache of column blocks, in bytes. */
  cacheBytes?: number | undefined;
  /** Whether to give up commits that are missing at the end of the log. */
  acceptLoss?: boolean | undefined;
  /** Whether to open the database only to read it. */
  readOnly?: boolean | undefined;
  /** With blobs, how many bytes of segments and fetched blocks may be kept locally. */
  diskLimit?: number | undefined;
  /** With blobs, milliseconds from a commit to its upload. */
  blobLag?: number | undefined;
  /** With blobs, milliseconds for which a call waits for a blob store that is away. */
  blobPatience?: number | undefined;
  /** Of a database that is only read, milliseconds between two looks for what was uploaded since. */
  followMs?: number | undefined;
}

/** What keeps a database that cannot be where its URL says. */
export type Fallback = 'none' | 'memory' | 'indexeddb';

/** What keeps a database. */
export type Place = 'folder' | 'opfs' | 'indexeddb' | 'durable-object' | 'memory';

/** What `open` needs to know. */
export interface OpenRequest {
  /** The page's version of the package: a worker of another one refuses. */
  version?: string | undefined;
  /** A Web Lock that the worker holds as long as it lives. */
  lifeLock?: string | undefined;
  url: string;
  options: EngineOptions;
  /** Address of the WebAssembly file; by default it is beside the worker's script. */
  wasmUrl?: string | undefined;
  /** A compiled module, which takes precedence over `wasmUrl`. */
  wasmModule?: WebAssembly.Module | undefined;
  /** Address of the second WebAssembly file; by default it is beside the first one. */
  moreWasmUrl?: string | undefined;
  /** The second module, compiled, which takes precedence over `moreWasmUrl`. */
  moreWasmModule?: WebAssembly.Module | undefined;
  /** Whether to fetch the second file before it is needed. */
  preload?: boolean | undefined;
  /** The exported database to begin with; `archive.ts` defines its format. */
  import?: Blob | undefined;
  /** The term of a tab that leads; without one, the database is not shared with other tabs. */
  term?: string | undefined;
  /** How long to try again while files are held elsewhere, in milliseconds. */
  patienceMs?: number | undefined;
  /** Where to keep the database if the browser has no private file system. */
  fallback?: Fallback | undefined;
  /** Where the files are kept beside the local ones, or instead of them. */
  blobs?: WireBlobs | undefined;
  /** Address of the script of blob stores; by default it is beside the worker's script. */
  blobsUrl?: string | undefined;
}

/**
 * Parameters by position or by name. JSON travels as a `String` object, so that it is not mistaken
 * for text.
 */
export type WireParameters = readonly unknown[] | Readonly<Record<string, unknown>> | undefined;

/** What a bulk load does with a row whose key is there already. */
export type OnDuplicate = 'error' | 'skip' | 'replace';

/** Texts on their way into a table: one after another in UTF-8, and their lengths in bytes, -1 for null. */
export interface WireTexts {
  bytes: Uint8Array;
  lengths: Int32Array;
}

/** The values of a column on their way into a table: as parameters have them, typed, or packed texts. */
export type WireValues = readonly unknown[] | ArrayBufferView | WireTexts;

/** How to read the values of a column. `bindings/wasm/src/wire.rs` has the same numbers. */
export const Code = {
  Null: 0,
  Boolean: 1,
  Int: 2,
  BigInt: 3,
  UBigInt: 4,
  Float: 5,
  Decimal64: 6,
  Decimal128: 7,
  Text: 8,
  Binary: 9,
  Date: 10,
  Time: 11,
  Timestamp: 12,
  Json: 13,
  TimestampTz: 14,
} as const;
/** One of the codes. */
export type Code = (typeof Code)[keyof typeof Code];

/** Name and type of a result column. */
export interface WireField {
  name: string;
  /** As SQL writes it: `DECIMAL(12,2)`. */
  type: string;
  code: Code;
  /** Digits after the decimal point; 0 for every type but decimals. */
  scale: number;
}

/**
 * The values of one column. A large result uses typed arrays: one element per row, two 64-bit
 * halves (low, high) per row for 128-bit codes, and bytes with `offsets` for text and binary. A
 * small result uses plain arrays of single values, `null` included: sending one is cheaper than
 * transferring many tiny buffers.
 */
export interface WireColumn {
  values: unknown[] | Uint8Array | Int32Array | Float64Array | BigInt64Array;
  /** Byte positions of text and binary values, one more than there are rows. */
  offsets?: Uint32Array;
  /** One bit per row, 1 = not null. Absent when no value is null. */
  validity?: Uint8Array;
}

/** What the engine read to answer a statement. */
export interface Statistics {
  /** Rows examined. */
  rowsRead: number;
  /** Approximate size of the blocks read, in bytes. */
  bytesRead: number;
  /** Segments from which at least one block was read. */
  segmentsRead: number;
  /** Segments ruled out by their metadata. */
  segmentsSkipped: number;
  /** Column blocks read. */
  blocksRead: number;
  /** Column blocks ruled out by their zone maps. */
  blocksSkipped: number;
  /** Rows found by primary key instead of a scan. */
  pointReads: number;
  /** Time spent inside the engine, in milliseconds. */
  elapsedMs: number;
}

/** The result of a statement. */
export interface WireResult {
  kind: string;
  /** Absent when the columns of a prepared statement have not changed since it was prepared. */
  fields?: WireField[];
  columns: WireColumn[];
  rows: number;
  rowsAffected: number;
  statistics: Statistics;
}

/** A prepared statement. */
export interface WirePrepared {
  fields: WireField[];
  /** Types of the parameters, as SQL writes them. */
  parameters: string[];
}

/** Representation of a stream's rows. */
export type StreamForm = 'columns' | 'arrow';

/** One chunk of a stream's rows. */
export interface WireChunk {
  /** A result without fields, or a complete Arrow IPC stream for the form `arrow`. */
  chunk: WireResult | Uint8Array;
  /** Whether this chunk is the last. */
  done: boolean;
}

/** The answer to opening a stream: its columns and its first chunk. */
export interface WireStream extends WireChunk {
  fields: WireField[];
}

/** The answer to beginning a live query: its columns and its first result. */
export interface WireLive {
  fields: WireField[];
  result: WireResult;
}

/** Which JavaScript types SQL values have; the default of each is the first. */
export interface WireTypes {
  bigint?: 'bigint' | 'number';
  decimal?: 'string' | 'number';
  date?: 'date' | 'string';
  json?: 'value' | 'string';
}

/** A function of the application, or where a worker finds it. */
export type FunctionSource =
  ((...values: never[]) => unknown) | AggregateSteps | { module: string; name: string };

/** An aggregate of the application. */
export interface AggregateSteps {
  /** Answers the state of a group without rows. */
  start: () => unknown;
  /** Answers the state with one more row. */
  step: (state: never, ...values: never[]) => unknown;
  /** Answers the value of a state, which may change later. */
  finish: (state: never) => unknown;
}

/** A function to create. */
export interface WireFunction {
  name: string;
  kind: 'scalar' | 'aggregate';
  /** Names of SQL types. */
  parameters: readonly string[];
  returns: string;
  isVolatile: boolean;
  takesNulls: boolean;
  /** The value of an aggregate over no rows. */
  overNothing: unknown;
  types: WireTypes;
  source: FunctionSource;
}

/** How far a running statement is. */
export interface WireProgress {
  /** Rows examined. */
  rows: number;
  /** About how many it may examine. */
  total: number;
}

/** What is known of the newest upload of a database with blobs. */
export interface LagReport {
  /**
   * How much of the log this database shows: its end or, of a database that is only read, how far that was
   * followed. Positions count bytes, and grow.
   */
  position: number;
  /** How much of the log is in the blobs. */
  uploaded: number;
  /** When that was uploaded, by the clock of the writer. */
  uploadedAt: Date;
  /** How many milliseconds ago it was known to be the newest upload; 0 for the writer. */
  sinceMs: number;
  /**
   * Whether what a database shows that is only read stays in the blobs: `held` while its lease is, `lost` after
   * it was not renewed in time, until the next refresh, `refused` by the blob store, or `none`.
   */
  lease: 'none' | 'held' | 'lost' | 'refused';
  /** Why the last attempt to upload has failed, unless a later one has not. */
  failure: string | undefined;
}

/** How much storage the database uses, and how safe it is from eviction. */
export interface StorageReport {
  /** What keeps the database. In a browser, the option `fallback` has a part in it. */
  place: Place;
  /** Size of this database's files, in bytes. */
  bytes: number;
  /** Storage available to this origin, in bytes; `null` where the platform does not say. */
  quota: number | null;
  /** Whether the platform promises not to evict the files when space runs out. */
  persisted: boolean;
  /** What `acceptLoss` gave up when the database was opened; empty if nothing was missing. */
  losses: string[];
}
