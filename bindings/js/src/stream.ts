/**
 * The rows of a query, read while it runs. The engine computes only what is asked for: while the
 * reader handles one chunk, the worker computes the next, and no more. Leaving a loop early ends
 * the query and frees what it holds.
 */

/// <reference lib="esnext.disposable" preserve="true" />

import { nacreError } from '../../../worker/shared/errors.js';
import type { StreamForm, WireChunk, WireField, WireStream } from '../../../worker/shared/wire.js';
import { Aborting } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';
import { QueryResult } from './result.js';
import type { Row } from './types.js';

/** Opens the stream under the given number. */
type Open = (stream: number, form: StreamForm) => Promise<WireStream>;

interface Chunk extends WireChunk {
  fields: readonly WireField[];
}

/** Number of the newest stream of this thread. */
let lastStream = 0;

/**
 * A query whose rows are read while it runs, made by `db.stream`. The query starts with the first
 * read and shows the rows as they are at that moment. A stream is read once, in one of three ways:
 * `rows()`, `batches()`, or, iterating the stream itself, as Arrow.
 */
export class ResultStream<R = Row> implements AsyncIterable<Uint8Array> {
  readonly #client: Client;
  readonly #open: Open;
  readonly #options: CallOptions | undefined;
  #read = false;
  /** Ends the query if it runs. */
  #end: () => Promise<void> = async () => {};

  /** @internal */
  constructor(client: Client, options: CallOptions | undefined, open: Open) {
    this.#client = client;
    this.#open = open;
    this.#options = options;
  }

  /**
   * Yields Arrow IPC streams, each complete with its schema and some of the rows. The last one may
   * have no rows.
   *
   * @example
   * ```ts
   * import { tableFromIPC } from 'apache-arrow';
   *
   * for await (const ipc of db.stream('select page from visit')) {
   *   console.log(tableFromIPC(ipc).numRows); // 3
   * }
   * ```
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const { chunk } of this.#chunks('arrow')) {
      yield chunk as Uint8Array;
    }
  }

  /**
   * Yields results of some thousand rows each, which is faster than row by row. The last one may
   * have no rows.
   *
   * @example
   * ```ts
   * for await (const batch of db.stream('select id, page from visit order by id').batches()) {
   *   console.log(batch.values(0)); // [ 1n, 'home' ]
   * }
   * ```
   */
  async *batches(): AsyncGenerator<QueryResult<R>, void, undefined> {
    for await (const { chunk, fields } of this.#chunks('columns')) {
      yield new QueryResult<R>(
        chunk as Exclude<typeof chunk, Uint8Array>,
        this.#client.types,
        fields,
      );
    }
  }

  /**
   * Yields row by row.
   *
   * @example
   * ```ts
   * for await (const row of db.stream('select * from visit order by ms').rows()) {
   *   console.log(row); // { id: 2n, page: 'docs', ms: 80 }
   *   break; // ends the query
   * }
   * ```
   */
  async *rows(): AsyncGenerator<R, void, undefined> {
    for await (const batch of this.batches()) {
      yield* batch;
    }
  }

  /**
   * Ends the query at the end of an `await using` block, also where nothing was read.
   *
   * @example
   * ```ts
   * await using ids = db.stream('select id from visit order by id');
   * const { value } = await ids.rows().next();
   * console.log(value); // { id: 1n }
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#read = true;
    await this.#end();
  }

  async *#chunks(form: StreamForm): AsyncGenerator<Chunk, void, undefined> {
    if (this.#read) {
      throw nacreError('closed', 'a stream can be read only once');
    }
    this.#read = true;
    const { transport } = this.#client;
    const aborting = new Aborting(this.#options?.signal, 'the stream was cancelled');
    const stream = ++lastStream;
    let ended = false;
    // Ending a stream that has ended does nothing; if the database is closed, the stream has ended.
    const end = () => transport.call('endStream', stream).catch(() => {});
    this.#end = async () => {
      if (!ended) {
        ended = true;
        await end();
      }
    };
    // On abort, ends the stream at once: the reader may never ask for another chunk.
    const forget = aborting.on(() => void (ended || end()));
    try {
      aborting.check('the call was cancelled before it started');
      const opened = await aborting.or(this.#open(stream, form));
      const { fields } = opened;
      let chunk: WireChunk = opened;
      for (;;) {
        ended = chunk.done;
        const next = chunk.done || !transport.ahead ? null : transport.call('more', stream);
        // A failure is reported when the reader gets there.
        next?.catch(() => {});
        yield { ...chunk, fields };
        if (chunk.done) {
          return;
        }
        aborting.check();
        chunk = await aborting.or(next ?? transport.call('more', stream));
      }
    } finally {
      forget();
      // An aborted stream has been ended already, and an abort does not wait for the worker.
      if (!ended && !aborting.aborted) {
        await end();
      }
    }
  }
}
