// Results are equal across systems up to the rounding of doubles.

import { expect, test } from 'vitest';

import { different, median, sameRows, sameValue } from './compare';

test('numbers are equal up to rounding', () => {
  expect(sameValue(123_456_789.01, 123_456_789.010_000_01)).toBe(true);
  expect(sameValue(1, 1.001)).toBe(false);
  expect(sameValue(null, 0)).toBe(false);
  expect(sameValue('1995-03-15', '1995-03-15')).toBe(true);
  expect(sameValue('1', 1)).toBe(false);
});

test('rows are compared in their order', () => {
  expect(
    sameRows(
      [
        [1, 'a'],
        [2, 'b'],
      ],
      [
        [2, 'b'],
        [1, 'a'],
      ],
    ),
  ).toBe(false);
  expect(sameRows([[1]], [[1, 2]])).toBe(false);
  expect(sameRows([[1]], [[1], [1]])).toBe(false);
});

test('a system that differs from most is named', () => {
  const results = new Map([
    ['a', [[1]]],
    ['b', [[2]]],
    ['c', [[1]]],
  ]);
  expect(different(results)).toEqual(['b']);
  results.set('b', [[1]]);
  expect(different(results)).toEqual([]);
  expect(
    different(
      new Map([
        ['a', [[1]]],
        ['b', [[2]]],
      ]),
    ),
  ).toEqual(['b']);
});

test('the median of an even number of values lies between the middle two', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});
