/**
 * The clock at the edge. Workers stop theirs while a request computes, so that nothing can be timed: it moves
 * on only when something was waited for. A loop that ends after some milliseconds would not end. This one
 * goes on by a little with each look at it, once it was looked at several times without having moved, and
 * is never behind the platform's.
 *
 * It takes the place of `performance` in the script for the edge (`tools/build.mjs`).
 */

/** Looks at a clock that stands, after which it is taken for stopped. */
const STILL = 32;
/** What a look then counts for: about what the engine does between two. */
const STEP_MS = 0.01;

const real = (): number => globalThis.performance?.now() ?? Date.now();

/** Makes a clock from one that may stand still. */
export function going(now: () => number): { now(): number } {
  let [seen, looks, shown] = [-Infinity, 0, -Infinity];
  return {
    now() {
      const time = now();
      looks = time > seen ? 0 : looks + 1;
      seen = Math.max(seen, time);
      shown = Math.max(seen, looks > STILL ? shown + STEP_MS : shown);
      return shown;
    },
  };
}

/** Milliseconds since an origin of the runtime's. */
export const clock = going(real);
