/** An `AbortSignal` applied to the calls of a stream or a load. */

import { nacreError, type NacreError } from '../../../worker/shared/errors.js';

/** Cancels calls when a signal aborts. Without a signal, nothing is ever cancelled. */
export class Aborting {
  readonly #signal: AbortSignal | undefined;
  readonly #message: string;

  constructor(signal: AbortSignal | undefined, message: string) {
    this.#signal = signal;
    this.#message = message;
  }

  /** Whether the signal has aborted. */
  get aborted(): boolean {
    return this.#signal?.aborted ?? false;
  }

  /** Throws `cancelled` if the signal has aborted. */
  check(message: string = this.#message): void {
    if (this.aborted) {
      throw this.#error(message);
    }
  }

  /** Calls the listener on abort. Returns a function that removes it. */
  on(listener: () => void): () => void {
    this.#signal?.addEventListener('abort', listener);
    return () => this.#signal?.removeEventListener('abort', listener);
  }

  /** Settles as the call does, or fails with `cancelled` if the signal aborts first. */
  or<T>(call: Promise<T>): Promise<T> {
    if (this.#signal === undefined) {
      return call;
    }
    return new Promise<T>((resolve, reject) => {
      const forget = this.on(() => reject(this.#error(this.#message)));
      call.then(resolve, reject).finally(forget);
    });
  }

  #error(message: string): NacreError {
    return nacreError('cancelled', message, this.#signal?.reason);
  }
}

/** Throws `cancelled` if the signal of a call has aborted before the call. */
export function mustNotBeAborted(options: { signal?: AbortSignal } | undefined): void {
  const signal = options?.signal;
  if (signal?.aborted) {
    throw nacreError('cancelled', 'the call was cancelled before it started', signal.reason);
  }
}
