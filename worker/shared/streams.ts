/**
 * The streams of a connection: queries whose rows are asked for some at a time. Nothing is computed that was not asked
 * for. A stream is over, and gives back what it keeps, when its last rows were answered, when it failed, and when the
 * other side ends it, which it may do at any time: before it is open, too.
 */

import { answerOf, currentInstance, isSound, type Rows } from './engine.js';
import { nacreError } from './errors.js';
import type { StreamForm, WireChunk, WireField, WireResult, WireStream } from './protocol.js';

/** The first rows should come soon, later ones in good numbers: each message costs. */
const FIRST_ROWS = 1024;
const MOST_ROWS = 16_384;

interface Open {
  /** None until its statement has had its turn. */
  rows: Rows | null;
  form: StreamForm;
  /** Rows of the next chunk, about. */
  next: number;
}

export class Streams {
  readonly #open = new Map<number, Open>();
  readonly #instance = currentInstance();

  /**
   * Opens a stream under a number that the other side chose, and answers its first rows. `begin` hands its statement
   * over when it is its turn; if the stream was ended before, it does not run.
   */
  open(
    id: number,
    form: StreamForm,
    begin: (opened: (statement: () => unknown) => WireStream | Promise<WireStream>) => unknown,
  ): unknown {
    const stream: Open = { rows: null, form, next: FIRST_ROWS };
    this.#open.set(id, stream);
    const failed = (error: unknown): never => {
      this.#open.delete(id);
      throw error;
    };
    try {
      const answer = begin((statement) => {
        if (this.#open.get(id) !== stream) {
          throw endedEarly();
        }
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

  /** The next rows. */
  next(id: number): WireChunk | Promise<WireChunk> {
    const stream = this.#open.get(id);
    if (stream === undefined || stream.rows === null) {
      throw nacreError('closed', 'the stream has ended');
    }
    return this.#chunk(id, stream, stream.rows);
  }

  /** Gives back what it keeps. */
  end(id: number): void {
    // What a trap leaves is given back as a whole.
    if (isSound(this.#instance)) {
      this.#open.get(id)?.rows?.free();
    }
    this.#open.delete(id);
  }

  /** Ends all. */
  endAll(): void {
    [...this.#open.keys()].forEach((id) => this.end(id));
  }

  #first(id: number, stream: Open, rows: Rows): WireStream | Promise<WireStream> {
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

  #chunk(id: number, stream: Open, rows: Rows): WireChunk | Promise<WireChunk> {
    const wanted = stream.next;
    stream.next = Math.min(wanted * 2, MOST_ROWS);
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

function endedEarly(): Error {
  return nacreError('cancelled', 'the stream was ended before it began');
}
