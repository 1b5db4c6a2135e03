/**
 * The open streams of a connection: queries whose rows the client asks for chunk by chunk. The
 * engine computes nothing that was not asked for. A stream ends, and frees what it holds, with its
 * last chunk, with its first failure, or when the client ends it, which may be before it is open.
 */

import { answerOf, currentInstance, isSound, type Rows, type Session } from './engine.js';
import { nacreError, type NacreError } from './errors.js';
import type { Awaitable } from './protocol.js';
import type { StreamForm, WireChunk, WireField, WireResult, WireStream } from './wire.js';

/**
 * The first chunk is small, so that it comes soon; later ones are large, because each message
 * costs.
 */
const FIRST_ROWS = 1024;
const MAX_ROWS = 16_384;

interface OpenStream {
  /** Null until the stream's statement has run. */
  rows: Rows | null;
  /** The session, while the statement runs in it. */
  opening: Session | null;
  form: StreamForm;
  /** Approximate number of rows of the next chunk. */
  nextRows: number;
}

/** Runs the statement of a stream when its session is ready for it, and answers the first chunk. */
type Begin = (session: Session, statement: () => unknown) => Awaitable<WireStream>;

/** The streams of one connection. */
export class Streams {
  readonly #open = new Map<number, OpenStream>();
  readonly #instance = currentInstance();

  /**
   * Opens a stream under a number the client chose, and answers its first chunk. `schedule` calls
   * `begin` with the statement when it is the statement's turn. A stream that was ended before that
   * does not run its statement.
   */
  open(
    id: number,
    form: StreamForm,
    schedule: (begin: Begin) => Awaitable<WireStream>,
  ): Awaitable<WireStream> {
    const stream: OpenStream = { rows: null, opening: null, form, nextRows: FIRST_ROWS };
    this.#open.set(id, stream);
    const failed = (error: unknown): never => {
      stream.opening = null;
      this.#open.delete(id);
      throw error;
    };
    try {
      const answer = schedule((session, statement) => {
        if (this.#open.get(id) !== stream) {
          throw endedEarly();
        }
        stream.opening = session;
        const rows = answerOf<Rows>(statement());
        return rows instanceof Promise
          ? rows.then((opened) => this.#first(id, stream, opened))
          : this.#first(id, stream, rows);
      });
      return answer instanceof Promise ? answer.catch(failed) : answer;
    } catch (error) {
      return failed(error);
    }
  }

  /** Answers the next chunk. */
  next(id: number): Awaitable<WireChunk> {
    const stream = this.#open.get(id);
    if (stream === undefined || stream.rows === null) {
      throw nacreError('closed', 'the stream has ended');
    }
    return this.#chunk(id, stream, stream.rows);
  }

  /**
   * Ends a stream, also in the middle of its statement, and frees what it holds. Ending it twice
   * does nothing.
   */
  end(id: number): void {
    const stream = this.#open.get(id);
    // After a trap the instance's memory is released as a whole.
    if (isSound(this.#instance)) {
      stream?.opening?.cancel();
      stream?.rows?.cancel();
      stream?.rows?.free();
    }
    this.#open.delete(id);
  }

  /** Ends every stream. */
  endAll(): void {
    [...this.#open.keys()].forEach((id) => this.end(id));
  }

  #first(id: number, stream: OpenStream, rows: Rows): Awaitable<WireStream> {
    stream.opening = null;
    if (this.#open.get(id) !== stream) {
      rows.free();
      throw endedEarly();
    }
    stream.rows = rows;
    const fields = rows.fields() as WireField[];
    const chunk = this.#chunk(id, stream, rows);
    return chunk instanceof Promise
      ? chunk.then((first) => ({ ...first, fields }))
      : { ...chunk, fields };
  }

  #chunk(id: number, stream: OpenStream, rows: Rows): Awaitable<WireChunk> {
    const wanted = stream.nextRows;
    stream.nextRows = Math.min(wanted * 2, MAX_ROWS);
    const answered = (chunk: WireResult | Uint8Array): WireChunk => {
      if (this.#open.get(id) !== stream) {
        throw nacreError('cancelled', 'the stream was ended');
      }
      const done = rows.ended();
      if (done) {
        this.end(id);
      }
      return { chunk, done };
    };
    const failed = (error: unknown): never => {
      this.end(id);
      throw error;
    };
    try {
      const chunk = answerOf<WireResult | Uint8Array>(
        stream.form === 'arrow' ? rows.arrow(wanted) : rows.next(wanted),
      );
      return chunk instanceof Promise ? chunk.then(answered).catch(failed) : answered(chunk);
    } catch (error) {
      return failed(error);
    }
  }
}

function endedEarly(): NacreError {
  return nacreError('cancelled', 'the stream was ended before it began');
}
