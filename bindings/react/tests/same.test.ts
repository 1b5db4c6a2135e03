import { expect, test } from 'vitest';
import { isSame } from '../src/same.js';

test('parameters are compared by value', () => {
  const make = () => [1, 2n, 'a', null, new Date(5), Uint8Array.of(1, 2), { a: [NaN] }, true];
  expect(isSame(make(), make())).toBe(true);
  expect(isSame({ id: 1 }, { id: 1 })).toBe(true);
  expect(isSame(undefined, undefined)).toBe(true);
  expect(isSame(Uint8Array.of(1).buffer, Uint8Array.of(1).buffer)).toBe(true);
  const different: [unknown, unknown][] = [
    [[1], ['1']],
    [[1], [1n]],
    [[1], [1, 2]],
    [[], undefined],
    [[null], [undefined]],
    [[new Date(5)], [new Date(6)]],
    [[Uint8Array.of(1)], [Uint8Array.of(2)]],
    [[Uint8Array.of(1)], [[1]]],
    [Uint8Array.of(1).buffer, Uint8Array.of(2).buffer],
    [{ a: 1 }, { b: 1 }],
    [{ a: undefined }, { b: 1 }],
    [[{ a: [1] }], [{ a: [2] }]],
    [0, -0],
  ];
  expect(different.filter(([a, b]) => isSame(a, b) || isSame(b, a))).toEqual([]);
});
