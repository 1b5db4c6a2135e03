// The drawings follow the figures: larger is thicker, and nothing leaves its frame.

import { expect, test } from 'vitest';

import { bands, bottom, outline, pits, scaleFor } from './geometry';

const segment = (deleted: number, bytes: number[]) => ({
  id: 1,
  name: 'one',
  run: 1,
  level: 0,
  rows: 1000,
  deleted,
  bytes: bytes.reduce((sum, each) => sum + each, 0),
  minKey: '1',
  maxKey: '1000',
  columns: bytes.map((each, index) => ({ name: `c${index}`, encoding: 'plain', bytes: each })),
});

test('layers are stacked, and the thickest has the most bytes', () => {
  const stack = bands(segment(0, [400, 10_000, 0]), 0.1, 5);
  expect(stack.map(({ y }) => y)).toEqual([...stack.map(({ y }) => y)].sort((a, b) => a - b));
  expect(stack[0]!.y).toBe(5);
  expect(stack[1]!.thickness).toBeCloseTo(10);
  expect(stack[2]!.thickness).toBeGreaterThan(1);
  expect(bottom(stack)).toBeCloseTo(stack[2]!.y + stack[2]!.thickness);
});

test('a table without segments has a scale', () => {
  const table = {
    name: 't',
    rows: 0,
    rowstoreRows: 0,
    rowstoreBytes: 0,
    primaryKey: [],
    columns: [],
    segments: [],
  };
  expect(scaleFor(table, 100)).toBe(100);
});

test('an outline is closed and stays inside its width', () => {
  const path = outline({ width: 300, amplitude: 3, seed: 1 }, 10, 20);
  expect(path).toMatch(/^M0\.0 .*Z$/);
  const xs = [...path.matchAll(/([\d.]+) -?[\d.]+/g)].map(([, x]) => Number(x));
  expect(Math.max(...xs)).toBe(300);
});

test('pits are to scale, but wide enough to be visible', () => {
  expect(pits(segment(0, [1]), 300, 1)).toEqual([]);
  expect(pits(segment(1, [1]), 300, 1)[0]!.width).toBeGreaterThan(1);
  const half = pits(segment(500, [1]), 300, 1).reduce((sum, pit) => sum + pit.width, 0);
  expect(half).toBeCloseTo(150, 0);
  for (const { x, width } of pits(segment(1000, [1]), 300, 1))
    expect(x + width).toBeLessThanOrEqual(300.001);
});
