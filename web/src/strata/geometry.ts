// Geometry of the layers: thickness from size, and the slow wave that all layers of a stack share.
// Arithmetic only.

import type { SegmentReport, TableReport } from 'nacredb';

/** One column of a segment as a layer of the drawing. */
export interface Band {
  column: SegmentReport['columns'][number];
  /** Top edge before the wave is added. */
  y: number;
  thickness: number;
}

/** Minimum thickness of a layer, and the gap between two. */
export interface Grain {
  least: number;
  gap: number;
}

export const COARSE: Grain = { least: 1.6, gap: 0.9 };
export const FINE: Grain = { least: 1, gap: 0.55 };

/**
 * Thickness grows with the square root of the size, so that a few bytes stay visible beside
 * megabytes.
 */
export function bands(segment: SegmentReport, scale: number, top: number, grain = COARSE): Band[] {
  let y = top;
  return segment.columns.map((column) => {
    const thickness = Math.max(grain.least, scale * Math.sqrt(column.bytes));
    const band = { column, y, thickness };
    y += thickness + grain.gap;
    return band;
  });
}

export const bottom = (stack: Band[]): number => {
  const last = stack.at(-1);
  return last ? last.y + last.thickness : 0;
};

/** The scale at which a table's largest segment has the given height. */
export function scaleFor(table: TableReport, height: number): number {
  const largest = Math.max(1, ...table.segments.map(rootBytes));
  return height / largest;
}

export const rootBytes = (segment: SegmentReport): number =>
  segment.columns.reduce((sum, column) => sum + Math.sqrt(column.bytes), 0);

/**
 * The wave of one stack: two sines whose phase drifts with depth, as growth lines in a shell do.
 */
export interface Wave {
  width: number;
  amplitude: number;
  seed: number;
}

export function lift({ width, amplitude, seed }: Wave, x: number, y: number): number {
  const turn = (2 * Math.PI * x) / width;
  return (
    amplitude *
    (Math.sin(turn * 1.15 + seed + y * 0.016) +
      0.45 * Math.sin(turn * 2.7 + seed * 2.3 - y * 0.027))
  );
}

/** The outline of a layer between two depths. */
export function outline(wave: Wave, top: number, end: number): string {
  const steps = Math.max(12, Math.round(wave.width / 12));
  const points: string[] = [];
  const point = (index: number, y: number) => {
    const x = (wave.width * index) / steps;
    points.push(`${x.toFixed(1)} ${(y + lift(wave, x, y)).toFixed(2)}`);
  };
  for (let index = 0; index <= steps; index += 1) point(index, top);
  for (let index = steps; index >= 0; index -= 1) point(index, end);
  return `M${points.join('L')}Z`;
}

/** A hash of a name, from 0 to 1. */
export function hash(name: string, salt = 0): number {
  let value = 2166136261 ^ salt;
  for (let index = 0; index < name.length; index += 1) {
    value = Math.imul(value ^ name.charCodeAt(index), 16777619);
  }
  value ^= value >>> 15;
  value = Math.imul(value, 2246822519);
  value ^= value >>> 13;
  return (value >>> 0) / 4294967296;
}

/**
 * A pit in a segment, for deleted rows. Their positions are not known, so pits are spread evenly;
 * widths are to scale.
 */
export interface Pit {
  x: number;
  width: number;
}

/** Width from which a pit is drawn as a faded area instead of a slit. */
export const WIDE_PIT = 4;

const MAX_PITS = 48;

export function pits({ id, rows, deleted }: SegmentReport, width: number, seed: number): Pit[] {
  const count = Math.min(deleted, MAX_PITS);
  if (count === 0 || rows === 0) return [];
  const each = Math.max(1.6, (width * deleted) / rows / count);
  return Array.from({ length: count }, (_, index) => ({
    x: Math.min(
      width - each,
      width * ((index + 0.15 + 0.7 * hash(`${id}/${seed}`, index + 1)) / count),
    ),
    width: Math.min(each, width),
  }));
}
