/** Arrow data into a table, by the bulk path. */

import { nacreError } from '../../../worker/shared/errors.js';
import type { Client } from './client.js';
import { load, type InsertOptions } from './load.js';

/** Arrow IPC streams: all bytes, or pieces of any size. */
export type ArrowSource =
  | Uint8Array
  | ArrayBuffer
  | Iterable<Uint8Array>
  | AsyncIterable<Uint8Array>
  | ReadableStream<Uint8Array>;

/** Bytes that are sent in one message. */
const PIECE_BYTES = 4 << 20;

/** Inserts the rows of Arrow IPC streams; answers the number of rows inserted or replaced. */
export function insertArrow(
  client: Client,
  table: string,
  source: ArrowSource,
  options: InsertOptions = {},
): Promise<number> {
  const pieces = piecesOf(source);
  const total =
    source instanceof ArrayBuffer || source instanceof Uint8Array ? source.byteLength : undefined;
  return load(client, table, options, total, async (take) => {
    let total = 0;
    for await (const bytes of pieces) {
      if (!(bytes instanceof Uint8Array)) {
        throw nacreError('type', 'Arrow data must come as Uint8Arrays');
      }
      total += bytes.length;
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.slice(at, at + PIECE_BYTES);
        await take('loadArrow', piece.length, piece);
      }
    }
    if (total === 0) {
      throw nacreError('corrupt', 'the Arrow stream is empty');
    }
  });
}

function piecesOf(source: ArrowSource): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  if (source instanceof ArrayBuffer) {
    return [new Uint8Array(source)];
  }
  if (source instanceof Uint8Array) {
    return [source];
  }
  if (typeof source === 'object' && source !== null) {
    if (Symbol.asyncIterator in source || Symbol.iterator in source) {
      return source as AsyncIterable<Uint8Array>;
    }
    if ('getReader' in source) {
      return readAll(source as ReadableStream<Uint8Array>);
    }
  }
  throw nacreError('type', 'Arrow data must be bytes, or an iterable or a stream of bytes');
}

/** For browsers whose streams cannot be iterated. */
async function* readAll(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    // Tells the source of a load that failed that no more is wanted.
    await reader.cancel().catch(() => {});
  }
}
