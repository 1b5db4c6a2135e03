/** Medians, ratios and equal results, for `npm run bench -- browser`. */

import { Failure } from '../lib.mjs';

/** The middle of some measurements. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const geomean = (values) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

/** Measurements by system, in the order in which the systems came. */
export class Times {
  #of = new Map();
  #processor = new Map();

  /** Adds a time and, if it was measured, what processors worked meanwhile. */
  add(system, ms, processorMs) {
    this.#of.set(system, [...(this.#of.get(system) ?? []), ms]);
    if (processorMs !== undefined) {
      this.#processor.set(system, [...(this.#processor.get(system) ?? []), processorMs]);
    }
  }

  median(system) {
    return median(this.#of.get(system) ?? [NaN]);
  }

  /** A line with the median of each system, and one with its processor time. */
  print(what, show = milliseconds) {
    const line = (name, of, shown) => {
      const each = [...of].map(([system, times]) => `${system} ${shown(median(times))}`);
      console.log(`${name.padEnd(24)} ${each.join('  ')}`);
    };
    line(what, this.#of, show);
    if (this.#processor.size > 0) {
      line('  processor', this.#processor, milliseconds);
    }
  }
}

export const milliseconds = (ms) => `${ms < 100 ? ms.toFixed(2) : ms.toFixed(0)} ms`;

/** Shows the time of `count` operations as a rate. */
export const rate = (count) => (ms) => `${Math.round((count * 1000) / ms)}/s`;

/** Sums differ in their last digits by the order of rows, and averages of decimals are rounded. */
function sameValue(a, b) {
  if (typeof a === 'number' && typeof b === 'number') {
    return Math.abs(a - b) <= Math.max(1e-6, 1e-9 * Math.max(Math.abs(a), Math.abs(b)));
  }
  return a === b;
}

function sameRow(a, b) {
  return a.length === b.length && a.every((value, at) => sameValue(value, b[at]));
}

/** Whether two results have the same rows, in any order if `ordered` is false. */
export function sameRows(a, b, ordered = true) {
  if (a.length !== b.length) {
    return false;
  }
  if (ordered) {
    return a.every((row, at) => sameRow(row, b[at]));
  }
  const left = [...b];
  return a.every((row) => {
    const at = left.findIndex((other) => sameRow(row, other));
    return at !== -1 && left.splice(at, 1).length === 1;
  });
}

/** Fails if a system answered something else than the first one. */
export function mustEqual(what, results, ordered = true) {
  const [[first, rows], ...others] = results;
  for (const [name, other] of others) {
    if (!sameRows(rows, other, ordered)) {
      const at = rows.findIndex((row, i) => other[i] === undefined || !sameRow(row, other[i]));
      const shown = [rows, other].map((each) => JSON.stringify(each[at] ?? null));
      throw new Failure(
        `${what}: ${name} answers ${other.length} rows, ${first} ${rows.length}; row ${at + 1} is ${shown[1]} instead of ${shown[0]}`,
      );
    }
  }
}
