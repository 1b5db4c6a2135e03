/**
 * The bulk loads of a connection: rows that the client sends piece by piece, and that become visible
 * together at the end. A load ends with its first failure, or when the client ends it.
 */

import { answerOf, currentInstance, isSound, type Load } from './engine.js';
import { nacreError } from './errors.js';
import type { Awaitable } from './protocol.js';

/** The loads of one connection. */
export class Loads {
  /** Null until a load's turn in its session has come. */
  readonly #open = new Map<number, Load | null>();
  readonly #instance = currentInstance();

  /**
   * Begins a load under a number the client chose. `schedule` calls `begin` when it is the load's
   * turn.
   */
  begin(
    id: number,
    schedule: (begin: (engine: () => unknown) => Awaitable<void>) => Awaitable<void>,
  ): Awaitable<void> {
    this.#open.set(id, null);
    return this.#guard(id, () =>
      schedule((begin) => {
        const opened = (load: Load): void => {
          if (!this.#open.has(id)) {
            load.free();
            throw ended();
          }
          this.#open.set(id, load);
        };
        const load = answerOf<Load>(begin());
        return load instanceof Promise ? load.then(opened) : opened(load);
      }),
    );
  }

  /** Adds rows. */
  add(id: number, work: (load: Load) => unknown): Awaitable<void> {
    return this.#guard(id, () => answerOf<void>(work(this.#load(id))));
  }

  /** Makes all rows visible, or none; answers their number. */
  finish(id: number): Awaitable<number> {
    const done = ([rows]: [number]): number => {
      this.#free(id);
      return rows;
    };
    return this.#guard(id, () => {
      const answer = answerOf<[number]>(this.#load(id).finish());
      return answer instanceof Promise ? answer.then(done) : done(answer);
    });
  }

  /**
   * Ends a load, which then loads nothing unless its rows are published: `finish` answers which.
   * Ending it twice does nothing.
   */
  drop(id: number): void {
    if (isSound(this.#instance)) {
      this.#open.get(id)?.cancel();
    }
    this.#free(id);
  }

  /** Ends every load, also those whose rows are being published. */
  cancelAll(): void {
    [...this.#open.keys()].forEach((id) => this.drop(id));
  }

  /** Ends every load, except those whose rows are being published. */
  dropAll(): void {
    [...this.#open.keys()].forEach((id) => this.#free(id));
  }

  #free(id: number): void {
    // After a trap the instance's memory is released as a whole.
    if (isSound(this.#instance)) {
      this.#open.get(id)?.free();
    }
    this.#open.delete(id);
  }

  #load(id: number): Load {
    const load = this.#open.get(id);
    if (load === undefined || load === null) {
      throw ended();
    }
    return load;
  }

  /** Runs a part of a load, which ends when it fails. */
  #guard<T>(id: number, work: () => Awaitable<T>): Awaitable<T> {
    const failed = (error: unknown): never => {
      this.#free(id);
      throw error;
    };
    try {
      const result = work();
      return result instanceof Promise ? result.catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  }
}

function ended(): Error {
  return nacreError('closed', 'the load has ended');
}
