/**
 * What travels between a page and the worker that runs the engine. Calls made in one task travel in one
 * message, and so do their answers. Results cross as columns, whose buffers are transferred, not copied.
 */

import type { ErrorData } from './errors.js';

/** A method and its arguments; `id` is chosen by the caller and comes back with the answer. */
export interface Call {
  id: number;
  method: string;
  args: unknown[];
}

/** An answer. */
export type Reply = { id: number; result: unknown } | { id: number; error: ErrorData };

/** When a commit is answered. */
export type Durability = 'strict' | 'relaxed';

/** Engine options; what is left out has the engine's default. */
export interface EngineOptions {
  durability?: Durability | undefined;
  /** Bytes one statement may use. */
  memoryLimit?: number | undefined;
  /** Bytes of decoded blocks to keep. */
  cacheBytes?: number | undefined;
}

/** First call on a worker. */
export interface OpenRequest {
  url: string;
  options: EngineOptions;
  wasmUrl?: string | undefined;
  wasmModule?: WebAssembly.Module | undefined;
}

/** How a column's values are to be read; `bindings/wasm/src/wire.rs` has the same numbers. */
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
} as const;
/** One of the codes. */
export type Code = (typeof Code)[keyof typeof Code];

/** A result column's description. */
export interface WireField {
  name: string;
  /** As SQL writes it: `DECIMAL(12,2)`. */
  type: string;
  code: Code;
  /** Digits after the point of a decimal. */
  scale: number;
}

/**
 * Values of one column. Large results are typed arrays: one element a row, two 64-bit halves (low, high) a
 * row for 128-bit codes, and bytes with `offsets` for text and binary. Small results are plain arrays of
 * the same things as single values, `null` included, which is cheaper to send than many tiny buffers.
 */
export interface WireColumn {
  values: unknown[] | Uint8Array | Int32Array | Float64Array | BigInt64Array;
  /** Byte positions of text and binary, one more than rows. */
  offsets?: Uint32Array;
  /** One bit a row, 1 = not null; absent when nothing is null. */
  validity?: Uint8Array;
}

/** What a statement did. */
export interface Statistics {
  /** Rows looked at. */
  rowsRead: number;
  /** Bytes of the blocks touched, about. */
  bytesRead: number;
  segmentsRead: number;
  /** Segments ruled out by their metadata. */
  segmentsSkipped: number;
  blocksRead: number;
  /** Blocks ruled out by their zone maps. */
  blocksSkipped: number;
  /** Rows found by primary key instead of scanning. */
  pointReads: number;
  /** Time inside the engine. */
  elapsedMs: number;
}

/** A statement's result. */
export interface WireResult {
  kind: string;
  /** Left out for a prepared statement whose columns are as they were. */
  fields?: WireField[];
  columns: WireColumn[];
  rows: number;
  rowsAffected: number;
  statistics: Statistics;
}

/** A prepared statement. */
export interface WirePrepared {
  statement: number;
  fields: WireField[];
  /** Types of the parameters, as SQL writes them. */
  parameters: string[];
}

/** How the rows of a stream come. */
export type StreamForm = 'columns' | 'arrow';

/** Some rows of a stream, and whether they are the last. */
export interface WireChunk {
  /** Fields are left out; an Arrow IPC stream of its own in the form `arrow`. */
  chunk: WireResult | Uint8Array;
  done: boolean;
}

/** A stream that has been opened, with its first rows. */
export interface WireStream extends WireChunk {
  fields: WireField[];
}

/** What `storage()` answers. */
export interface StorageReport {
  /** Bytes of this database's files. */
  bytes: number;
  /** Bytes this origin may store, where the platform says so. */
  quota: number | null;
  /** Whether the platform promised not to evict the files when space runs out. */
  persisted: boolean;
}

/** Buffers of an answer that can be transferred. */
export function transferables(answer: unknown): ArrayBuffer[] {
  if (answer instanceof Uint8Array) {
    return [answer.buffer as ArrayBuffer];
  }
  const { columns, chunk } = (answer ?? {}) as Partial<WireResult & WireChunk>;
  if (chunk !== undefined) {
    return transferables(chunk);
  }
  const buffers: ArrayBuffer[] = [];
  for (const column of Array.isArray(columns) ? columns : []) {
    for (const part of [column.values, column.offsets, column.validity]) {
      if (ArrayBuffer.isView(part)) {
        buffers.push(part.buffer as ArrayBuffer);
      }
    }
  }
  return buffers;
}
