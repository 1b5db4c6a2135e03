/**
 * The rows of a query while it runs. The engine computes what is asked for: while one part is being looked at, the
 * next is fetched from the worker, and no more. Leaving a loop early ends the query and gives back what it keeps.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import type {
  StreamForm,
  WireChunk,
  WireField,
  WireStream,
} from '../../../worker/shared/protocol.js';
import type { CallOptions, Shared } from './queries.js';
import { QueryResult } from './result.js';
import type { Row } from './types.js';

/** Sends what opens the stream under this number. */
type Opening = (stream: number, form: StreamForm) => Promise<WireStream>;

interface Part extends WireChunk {
  fields: readonly WireField[];
}

let streams = 0;

/**
 * A query whose rows come while it runs. It begins when the first are asked for, shows the rows as they were then, and
 * can be read once: as Arrow, in batches, or row by row.
 */
export class ResultStream<R = Row> implements AsyncIterable<Uint8Array> {
  readonly #shared: Shared;
  readonly #open: Opening;
  readonly #options: CallOptions | undefined;
  #read = false;

  /** @internal */
  constructor(shared: Shared, options: CallOptions | undefined, open: Opening) {
    this.#shared = shared;
    this.#open = open;
    this.#options = options;
  }

  /** Arrow IPC streams, each complete with its schema and some of the rows; the last may be without rows. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const { chunk } of this.#parts('arrow')) {
      yield chunk as Uint8Array;
    }
  }

  /** Results of some rows each; the last may be without rows. */
  async *batches(): AsyncGenerator<QueryResult<R>, void, undefined> {
    for await (const { chunk, fields } of this.#parts('columns')) {
      yield new QueryResult<R>(
        chunk as Exclude<typeof chunk, Uint8Array>,
        this.#shared.types,
        fields,
      );
    }
  }

  /** Row by row. */
  async *rows(): AsyncGenerator<R, void, undefined> {
    for await (const batch of this.batches()) {
      yield* batch;
    }
  }

  async *#parts(form: StreamForm): AsyncGenerator<Part, void, undefined> {
    if (this.#read) {
      throw nacreError('closed', 'a stream is read once');
    }
    this.#read = true;
    const { transport } = this.#shared;
    const aborting = new Aborting(this.#options?.signal);
    const stream = ++streams;
    let ended = false;
    // Whoever ends a stream that has ended does no harm, and one that is closed has ended.
    const end = () => transport.call('endStream', stream).catch(() => {});
    // At once, though the reader may never come back.
    const forget = aborting.on(() => void (ended || end()));
    try {
      aborting.check('the call was cancelled before it started');
      const opened = await aborting.or(this.#open(stream, form));
      const { fields } = opened;
      let part: WireChunk = opened;
      for (;;) {
        ended = part.done;
        const following = part.done || !transport.ahead ? null : transport.call('more', stream);
        // Should it fail, that is told when it is its turn.
        following?.catch(() => {});
        yield { ...part, fields };
        if (part.done) {
          return;
        }
        aborting.check();
        part = await aborting.or(following ?? transport.call('more', stream));
      }
    } finally {
      forget();
      // After an abort it was ended at once, and whoever aborts is not kept waiting.
      if (!ended && !aborting.aborted) {
        await end();
      }
    }
  }
}

/** A signal as something that calls are made under. */
class Aborting {
  readonly #signal: AbortSignal | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Whether it has happened. */
  get aborted(): boolean {
    return this.#signal?.aborted ?? false;
  }

  /** Throws when it has happened. */
  check(message = 'the stream was cancelled'): void {
    if (this.aborted) {
      throw this.#error(message);
    }
  }

  /** Does something when it happens; answers how to stop listening. */
  on(listener: () => void): () => void {
    this.#signal?.addEventListener('abort', listener);
    return () => this.#signal?.removeEventListener('abort', listener);
  }

  /** The answer of a call, or the end if that comes first. */
  or<T>(call: Promise<T>): Promise<T> {
    if (this.#signal === undefined) {
      return call;
    }
    return new Promise<T>((resolve, reject) => {
      const forget = this.on(() => reject(this.#error('the stream was cancelled')));
      call.then(resolve, reject).finally(forget);
    });
  }

  #error(message: string): Error {
    return nacreError('cancelled', message, this.#signal?.reason);
  }
}
