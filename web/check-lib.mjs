/** What the steps of `check.mjs` share: expectations, the line of a step, and sizes of windows. */

import * as path from 'node:path';
import { Failure, root } from '../tools/lib.mjs';

/** Where screenshots go. */
export const RESULTS = path.join(root, 'test-results');
export const DESKTOP = { width: 1440, height: 900 };
export const PHONE = { width: 375, height: 812 };

/** Fails unless a value is the wanted one, or passes the wanted test. */
export function expect(what, actual, wanted) {
  const same = typeof wanted === 'function' ? wanted(actual) : actual === wanted;
  if (!same) {
    const expected = typeof wanted === 'function' ? '' : `, expected ${JSON.stringify(wanted)}`;
    throw new Failure(`${what}: ${JSON.stringify(actual)}${expected}`);
  }
}

export const count = (number) => number.toLocaleString('en-US');

/** `point read      1 row(s)  0.2 ms in the engine …` */
export function report(step, ...parts) {
  console.log(`${step.padEnd(16)} ${parts.join('  ')}`);
}
