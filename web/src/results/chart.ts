// Chooses how a result can be drawn, from the types of its columns.

import type { Column, StatementResult } from '../database/types';
import { isNumeric, toText } from './value';

/** Bars that are still read one by one. */
const MAX_BARS = 40;
const MAX_POINTS = 20_000;

export interface Point {
  x: number;
  y: number;
}

export type Chart =
  | { kind: 'bars'; label: string; bars: { name: string; value: number }[] }
  | { kind: 'line' | 'points'; label: string; axis: string; time: boolean; points: Point[] };

/** The numeric columns that can give the height. */
export function measures(answer: StatementResult): number[] {
  const { columns } = answer;
  const numeric = columns.flatMap((column, at) => (isNumeric(column) ? [at] : []));
  // Among numbers only, the first is what the others are drawn over.
  return names(columns).length === 0 && timeColumn(columns) < 0 ? numeric.slice(1) : numeric;
}

/** The chart of a result with one of its measures; undefined if it has none. */
export function chartOf(answer: StatementResult, measure: number): Chart | undefined {
  const { columns, rows } = answer;
  if (rows.length < 2 || !measures(answer).includes(measure)) return undefined;
  const label = columns[measure]!.name;
  const time = timeColumn(columns);
  const named = names(columns);
  const value = (row: unknown[]) => numberOf(row[measure]);
  if (named.length > 0) {
    if (rows.length > MAX_BARS) return undefined;
    const bars = rows.flatMap((row) => {
      const height = value(row);
      const name = named.map((at) => cellText(row[at], columns[at]!)).join(', ');
      return height === undefined ? [] : [{ name, value: height }];
    });
    return bars.length > 0 ? { kind: 'bars', label, bars } : undefined;
  }
  if (rows.length > MAX_POINTS) return undefined;
  const over = time >= 0 ? time : columns.findIndex(isNumeric);
  const points = rows.flatMap((row): Point[] => {
    const x = numberOf(row[over]);
    const y = value(row);
    return x === undefined || y === undefined ? [] : [{ x, y }];
  });
  if (points.length < 2) return undefined;
  const sorted = points.toSorted((a, b) => a.x - b.x);
  const distinct = new Set(points.map(({ x }) => x)).size === points.length;
  return {
    kind: distinct ? 'line' : 'points',
    label,
    axis: columns[over]!.name,
    time: time >= 0,
    points: sorted,
  };
}

const timeColumn = (columns: Column[]): number =>
  columns.findIndex(({ type }) => /^(date|timestamp)/i.test(type));

/** Columns that name a row: texts and booleans. */
const names = (columns: Column[]): number[] =>
  columns.flatMap(({ type }, at) => (/^(char|varchar|text|boolean)/i.test(type) ? [at] : []));

const cellText = (value: unknown, { type }: Column): string =>
  value === null || value === undefined ? 'null' : toText(value, type);

function numberOf(value: unknown): number | undefined {
  if (value === null || value === undefined) return undefined;
  const number = value instanceof Date ? value.getTime() : Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** Round values between two, at most about a number of them. */
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough)!;
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) {
    found.push(Number((at * step).toPrecision(12)));
  }
  return found;
}
