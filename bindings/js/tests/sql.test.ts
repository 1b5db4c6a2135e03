import { expect, test } from 'vitest';
import { isSqlQuery, sql } from '../src/sql.js';

test('values become parameters', () => {
  const query = sql`select * from t where id = ${1} and name = ${"o'brien"}`;
  expect(query.text).toBe('select * from t where id = ? and name = ?');
  expect(query.parameters).toEqual([1, "o'brien"]);
});

test('queries nest, and names are quoted', () => {
  const filter = sql`a > ${1}`;
  const query = sql`select * from ${sql.identifier('odd "name"')} where ${filter} or b = ${2}`;
  expect(query.text).toBe('select * from "odd ""name""" where a > ? or b = ?');
  expect(query.parameters).toEqual([1, 2]);
});

test('values and queries are joined with commas', () => {
  expect(sql`select * from t where id in (${sql.join([1, [2], 'c'])}) and b = ${4}`).toMatchObject({
    text: 'select * from t where id in (?, ?, ?) and b = ?',
    parameters: [1, [2], 'c', 4],
  });
  const rows = [1, 2].map((id) => sql`(${id}, ${`n${id}`})`);
  const query = sql`insert into t (${sql.join([sql.identifier('id'), sql`name`])}) values ${sql.join(rows)}`;
  expect(query.text).toBe('insert into t ("id", name) values (?, ?), (?, ?)');
  expect(query.parameters).toEqual([1, 'n1', 2, 'n2']);
});

test('lists may be long', () => {
  const ids = Array.from({ length: 200_000 }, (_, id) => id);
  expect(sql`select * from t where id in (${sql.join(ids)})`.parameters).toHaveLength(200_000);
});

test('an empty list is refused, and so is a value that is not a list', () => {
  expect(() => sql.join([])).toThrow(expect.objectContaining({ kind: 'type' }));
  expect(() => sql.join('abc' as never)).toThrow(expect.objectContaining({ kind: 'type' }));
});

test('an invalid escape sequence is refused, not dropped', () => {
  const refused = expect.objectContaining({
    kind: 'syntax',
    hint: expect.stringContaining('double'),
  });
  expect(() => sql`delete from t where id = ${1} and path like 'C:\uploads\%'`).toThrow(refused);
  expect(() => sql`\x where id = ${1}`).toThrow(refused);
  expect(sql`path like ${String.raw`C:\uploads\%`} and name = 'C:\\uploads'`).toMatchObject({
    text: "path like ? and name = 'C:\\uploads'",
    parameters: [String.raw`C:\uploads\%`],
  });
});

test('only the tag makes queries', () => {
  expect(isSqlQuery(sql`x`)).toBe(true);
  expect(isSqlQuery({ text: 'x', parameters: [] })).toBe(false);
  expect(isSqlQuery('x')).toBe(false);
});
