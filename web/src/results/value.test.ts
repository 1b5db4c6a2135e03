// Values as text in cells and in CSV.

import { expect, test } from 'vitest';

import { isNumeric, toCsv, toText } from './value';

test('values as text', () => {
  expect(toText(9007199254740993n, 'BIGINT')).toBe('9007199254740993');
  expect(toText('12.30', 'DECIMAL(15,2)')).toBe('12.30');
  expect(toText(new Date('1996-01-02T00:00:00Z'), 'DATE')).toBe('1996-01-02');
  expect(toText(new Date('1996-01-02T03:04:05.600Z'), 'TIMESTAMP(6)')).toBe(
    '1996-01-02 03:04:05.600',
  );
  expect(toText(new Date('1996-01-02T03:04:05Z'), 'TIMESTAMP(6)')).toBe('1996-01-02 03:04:05');
  expect(toText(new Uint8Array([0, 171]), 'BLOB')).toBe("x'00ab'");
  expect(toText({ a: [1] }, 'JSON')).toBe('{"a":[1]}');
});

test('numeric types are recognised', () => {
  const numeric = (type: string) => isNumeric({ name: 'c', type });
  expect(['INTEGER', 'BIGINT UNSIGNED', 'DECIMAL(15,2)', 'DOUBLE'].every(numeric)).toBe(true);
  expect(['VARCHAR(25)', 'DATE', 'BOOLEAN', 'INTERVAL'].some(numeric)).toBe(false);
});

test('CSV quotes where necessary, and distinguishes null from empty text', () => {
  const answer = {
    columns: [
      { name: 'id', type: 'INTEGER' },
      { name: 'a,b', type: 'TEXT' },
    ],
    rows: [
      [1, 'say "hi"'],
      [2, null],
      [3, ''],
      [4, 'two\nlines'],
    ],
    rowsAffected: 0,
    figures: { rowsRead: 0, bytesRead: 0, segmentsRead: 0, segmentsSkipped: 0, elapsedMs: 0 },
  };
  expect(toCsv(answer)).toBe('id,"a,b"\r\n1,"say ""hi"""\r\n2,\r\n3,""\r\n4,"two\nlines"\r\n');
});
