// Types of columns are inferred from all their values.

import { expect, test } from 'vitest';

import { columnNames, convert, convertJson, tableName, TypeGuess } from './infer';

function typeOf(...values: (string | null)[]): string {
  const guess = new TypeGuess();
  for (const value of values) guess.text(value);
  return guess.type;
}

function jsonType(...values: unknown[]): string {
  const guess = new TypeGuess();
  for (const value of values) guess.json(value);
  return guess.type;
}

test('types of text', () => {
  expect(typeOf('1', null, '-20')).toBe('bigint');
  expect(typeOf('1', '2.50', '-13.1')).toBe('decimal(4, 2)');
  expect(typeOf('1', '2e3')).toBe('double');
  expect(typeOf('1.123456789', '12345678901.1')).toBe('double');
  expect(typeOf('true', 'FALSE')).toBe('boolean');
  expect(typeOf('2024-02-29')).toBe('date');
  expect(typeOf('2024-02-29', '2024-02-29T10:11:12.5Z')).toBe('timestamp(6)');
  expect(typeOf('x', '1')).toBe('text');
  expect(typeOf()).toBe('text');
});

test('what only looks like a number or a date is text', () => {
  expect(typeOf('007')).toBe('text');
  expect(typeOf('2024-02-30')).toBe('text');
  expect(typeOf('2024-01-01 25:00')).toBe('text');
  expect(typeOf('')).toBe('text');
  expect(typeOf('1', '1999-01-01')).toBe('text');
});

test('types of JSON values', () => {
  expect(jsonType(1, null, 2)).toBe('bigint');
  expect(jsonType(1, 2.5)).toBe('double');
  expect(jsonType('2024-02-29')).toBe('date');
  expect(jsonType('1', '2')).toBe('text');
  expect(jsonType({ a: 1 }, 'x')).toBe('json');
  expect(jsonType(1, true)).toBe('json');
  expect(jsonType(1, 'x')).toBe('text');
});

test('values are converted to their type', () => {
  expect(convert('9007199254740993', 'bigint')).toBe(9007199254740993n);
  expect(convert('2024-02-29T10:11:12Z', 'timestamp(6)')).toBe('2024-02-29 10:11:12');
  expect(convert('2.50', 'decimal(4, 2)')).toBe('2.50');
  expect(convertJson([1], 'json')).toBe('[1]');
  expect(convertJson(1, 'text')).toBe('1');
});

test('names of columns and tables are distinct', () => {
  expect(columnNames(['a', 'A', '', 'a'])).toEqual(['a', 'A_2', 'column_3', 'a_3']);
  expect(tableName('My Orders (1).csv', [])).toBe('my_orders_1');
  expect(tableName('2024.csv', ['t_2024'])).toBe('t_2024_2');
});
