// CSV is read the same however it is cut into pieces.

import { expect, test } from 'vitest';

import { CsvError, CsvParser, delimiterOf, isHeader, type Record } from './csv';

function read(text: string, size: number): Record[] {
  const parser = new CsvParser(',');
  const records: Record[] = [];
  for (let at = 0; at < text.length; at += size)
    records.push(...parser.push(text.slice(at, at + size)));
  records.push(...parser.end());
  return records;
}

const TEXT = 'a,b\r\n1,"x ""y"", z"\n\n,""\n"two\nlines",\r\nlast,1';
const RECORDS = [
  ['a', 'b'],
  ['1', 'x "y", z'],
  [null, ''],
  ['two\nlines', null],
  ['last', '1'],
];

test('quotes, line ends and empty fields, in pieces of any size', () => {
  for (let size = 1; size <= TEXT.length; size += 1) expect(read(TEXT, size)).toEqual(RECORDS);
});

test('a mistake has its line', () => {
  const parser = new CsvParser(',');
  parser.push('a\n"b\nc"\n');
  expect(() => parser.push('"d"e\n')).toThrow(CsvError);
  expect(parser.line).toBe(4);
  expect(() => read('a\n"b', 10)).toThrow('no end');
});

test('the delimiter splits the first lines evenly', () => {
  expect(delimiterOf('a;b;c\n1,5;2;3\n')).toBe(';');
  expect(delimiterOf('a\tb\n1\t2\n')).toBe('\t');
  expect(delimiterOf('a,"b;c;d",e\n1,2,3\n')).toBe(',');
  expect(delimiterOf('one column\nof text\n')).toBe(',');
});

test('a header has only names', () => {
  expect(isHeader(['id', 'name 2'])).toBe(true);
  expect(isHeader(['id', '2'])).toBe(false);
  expect(isHeader(['1995-03-15', 'x'])).toBe(false);
  expect(isHeader(['id', null])).toBe(false);
});
