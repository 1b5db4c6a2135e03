// The types of the columns decide how a result is drawn.

import { expect, test } from 'vitest';

import { chartOf, measures, ticks } from './chart';

function answer(columns: [string, string][], rows: unknown[][]) {
  return {
    columns: columns.map(([name, type]) => ({ name, type })),
    rows,
    rowsAffected: 0,
    figures: { rowsRead: 0, bytesRead: 0, segmentsRead: 0, segmentsSkipped: 0, elapsedMs: 0 },
  };
}

test('names and numbers are bars', () => {
  const result = answer(
    [
      ['flag', 'CHAR(1)'],
      ['n', 'BIGINT'],
      ['price', 'DECIMAL(15,2)'],
    ],
    [
      ['A', 2n, '1.50'],
      ['B', 3n, null],
      [null, 4n, '2.00'],
    ],
  );
  expect(measures(result)).toEqual([1, 2]);
  expect(chartOf(result, 2)).toEqual({
    kind: 'bars',
    label: 'price',
    bars: [
      { name: 'A', value: 1.5 },
      { name: 'null', value: 2 },
    ],
  });
});

test('times and numbers are a line, in the order of time', () => {
  const result = answer(
    [
      ['day', 'DATE'],
      ['n', 'INTEGER'],
    ],
    [
      [new Date('2024-01-02'), 2],
      [new Date('2024-01-01'), 1],
    ],
  );
  expect(chartOf(result, 1)).toMatchObject({
    kind: 'line',
    time: true,
    points: [{ y: 1 }, { y: 2 }],
  });
});

test('numbers alone are a line over distinct ones, and points otherwise', () => {
  const columns: [string, string][] = [
    ['x', 'INTEGER'],
    ['y', 'DOUBLE'],
  ];
  const line = answer(columns, [
    [1, 5],
    [2, 6],
  ]);
  const points = answer(columns, [
    [1, 5],
    [1, 6],
  ]);
  expect(measures(line)).toEqual([1]);
  expect(chartOf(line, 1)?.kind).toBe('line');
  expect(chartOf(points, 1)?.kind).toBe('points');
});

test('one row, or only texts, are not drawn', () => {
  expect(chartOf(answer([['n', 'BIGINT']], [[1n]]), 0)).toBeUndefined();
  expect(measures(answer([['a', 'TEXT']], [['x']]))).toEqual([]);
});

test('ticks are round', () => {
  expect(ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(ticks(0.03, 0.11, 4)).toEqual([0.04, 0.06, 0.08, 0.1]);
  expect(ticks(3, 3, 4)).toEqual([3]);
});
