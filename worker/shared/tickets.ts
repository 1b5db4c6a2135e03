/**
 * Calls that can be cancelled. A statement that runs for long gives way now and then, so that a
 * cancellation can arrive: it then ends with `cancelled`, and what it changed is undone. One that
 * still waits for its turn does not begin.
 */

import type { Session } from './engine.js';
import { nacreError } from './errors.js';
import type { Awaitable } from './protocol.js';
import type { WireProgress } from './wire.js';

interface Call {
  /** The session in which the statement runs; null before its turn. */
  engine: Session | null;
  isCancelled: boolean;
}

/** The calls of a connection that can be cancelled, by their tickets. */
export class Tickets {
  readonly #calls = new Map<number, Call>();

  /** Runs a call, which says when its statement starts. */
  run<T>(ticket: number, work: (started: (engine: Session) => void) => Awaitable<T>): Awaitable<T> {
    const call: Call = { engine: null, isCancelled: false };
    this.#calls.set(ticket, call);
    const end = (): void => {
      this.#calls.delete(ticket);
    };
    let result: Awaitable<T>;
    try {
      result = work((engine) => {
        if (call.isCancelled) {
          throw nacreError('cancelled', 'the call was cancelled before its statement started');
        }
        call.engine = engine;
      });
    } catch (error) {
      end();
      throw error;
    }
    if (result instanceof Promise) {
      return result.finally(end);
    }
    end();
    return result;
  }

  /** How far the statement of a call is; null before it has reported it. */
  progress(ticket: number): WireProgress | null {
    const [rows = 0, total = 0] = this.#calls.get(ticket)?.engine?.progress() ?? [];
    return total === 0 ? null : { rows, total };
  }

  /** Cancels a call. One that has ended stays as it is. */
  cancel(ticket: number): void {
    const call = this.#calls.get(ticket);
    if (call !== undefined) {
      call.isCancelled = true;
      call.engine?.cancel();
    }
  }
}
