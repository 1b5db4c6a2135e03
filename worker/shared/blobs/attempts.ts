/**
 * Repeats a call that failed in a way that may pass, with longer and longer pauses of random length, until
 * its time is over; and once at once with new credentials, when those it used were refused.
 */

import { NacreError, nacreError } from '../errors.js';
import { type Call, Failure, blobError } from './failure.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/** The attempts of one call. */
export class Attempts {
  readonly #untilMs: number;
  readonly #signal: AbortSignal | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #hasRenewed = false;
  #count = 1;

  constructor(retryForMs: number, signal: AbortSignal | undefined) {
    this.#untilMs = performance.now() + retryForMs;
    this.#signal = signal;
  }

  /** Waits for the time of the next attempt. Throws the error if there is none. */
  async after(failure: Failure): Promise<void> {
    if (failure.is.renewable && !this.#hasRenewed) {
      this.#hasRenewed = true;
      this.#count++;
      return;
    }
    if (!failure.is.passing) {
      throw failure.error;
    }
    // Between a half and the whole, so that clients that failed together do not come together again.
    const pauseMs = Math.max(this.#pauseMs * (0.5 + Math.random() / 2), failure.retryAfterMs);
    if (performance.now() + pauseMs > this.#untilMs) {
      const { kind, message, hint } = failure.error;
      const after = this.#count === 1 ? '' : `; gave up after ${this.#count} attempts`;
      throw new NacreError({ kind, message: `${message}${after}`, hint }, { cause: failure.error });
    }
    await pause(pauseMs, this.#signal);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#count++;
  }
}

/** Runs attempts until one succeeds. What is no failure of a request is thrown at once. */
export async function repeat<T>(attempts: Attempts, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof Failure)) {
        throw thrown;
      }
      await attempts.after(thrown);
    }
  }
}

/**
 * Runs attempts of a change, which are told whether an earlier one may have taken effect. Such a change ends as
 * `unavailable`, whatever its last attempt met.
 */
export async function change<T>(
  attempts: Attempts,
  call: Call,
  attempt: (isUncertain: boolean) => Promise<T>,
): Promise<T> {
  let isUncertain = false;
  try {
    return await repeat(attempts, async () => {
      try {
        return await attempt(isUncertain);
      } catch (thrown) {
        isUncertain ||= thrown instanceof Failure && thrown.is.uncertain === true;
        throw thrown;
      }
    });
  } catch (thrown) {
    const error = thrown as NacreError;
    if (isUncertain && error.kind !== 'unavailable' && error.kind !== 'cancelled') {
      const what = `an earlier attempt may have taken effect: ${error.message}`;
      throw blobError('unavailable', call, what, error.hint, error);
    }
    throw error;
  }
}

/** The error of a call that its caller gave up. */
export function cancelled(): NacreError {
  return nacreError('cancelled', 'the call of the blob store was cancelled');
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(cancelled());
      return;
    }
    const end = () => {
      clearTimeout(timer);
      reject(cancelled());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
