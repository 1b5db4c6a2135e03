// Compares results across systems. Numbers are equal up to rounding, because SQLite computes decimals
// as doubles; everything else must be the same.

import type { Value } from './protocol';

const TOLERANCE = 1e-9;

export function sameValue(a: Value, b: Value): boolean {
  if (typeof a === 'number' && typeof b === 'number') {
    return Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a), Math.abs(b));
  }
  return a === b;
}

/** Whether two results have the same rows in the same order. */
export function sameRows(a: Value[][], b: Value[][]): boolean {
  return (
    a.length === b.length &&
    a.every(
      (row, at) =>
        row.length === b[at]!.length && row.every((value, i) => sameValue(value, b[at]![i]!)),
    )
  );
}

/**
 * The systems whose results differ from those of most. With no majority, that is every system that
 * differs from the first.
 */
export function different(results: Map<string, Value[][]>): string[] {
  const all = [...results];
  let best: string[] = [];
  for (const [, rows] of all) {
    const equal = all.filter(([, other]) => sameRows(rows, other)).map(([name]) => name);
    if (equal.length > best.length) best = equal;
  }
  return all.map(([name]) => name).filter((name) => !best.includes(name));
}

/** The middle of some measurements. */
export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
