/** Waits until a database shows what another one has committed. */

import { nacreError } from '../../../worker/shared/errors.js';
import { Aborting } from './aborting.js';
import type { Client } from './client.js';
import type { CallOptions } from './options.js';

/** Options of `db.waitForPosition`. */
export interface WaitOptions extends CallOptions {
  /**
   * Milliseconds after which it fails with `unavailable`.
   * @default 30_000
   */
  timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
/** Shortest and longest pause between two looks at the blobs. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until a database shows a position, and refreshes it meanwhile. */
export async function waitForPosition(
  { transport }: Client,
  position: number,
  { signal, timeoutMs = TIMEOUT_MS }: WaitOptions,
): Promise<void> {
  if (!Number.isSafeInteger(position) || position < 0) {
    throw nacreError('type', `a position is a whole number, not ${String(position)}`);
  }
  if (!(timeoutMs >= 0)) {
    throw nacreError(
      'type',
      `timeoutMs must be a number of milliseconds, not ${String(timeoutMs)}`,
    );
  }
  const aborting = new Aborting(signal, 'the call was cancelled');
  const until = performance.now() + timeoutMs;
  for (let pauseMs = 0; ; pauseMs = Math.min(Math.max(MIN_PAUSE_MS, 2 * pauseMs), MAX_PAUSE_MS)) {
    const lag = await aborting.or(transport.call('lag'));
    if (lag === null) {
      throw nacreError('unsupported', 'positions of a database without blobs are not supported');
    }
    if (lag.position >= position) {
      return;
    }
    const leftMs = until - performance.now();
    if (leftMs <= 0) {
      throw nacreError(
        'unavailable',
        `the database shows position ${lag.position}, not ${position} yet`,
      );
    }
    await aborting.or(pause(Math.min(pauseMs, leftMs)));
    await aborting.or(transport.call('refresh'));
  }
}
