// The rows of PROFILE become operators with their own times.

import { expect, test } from 'vitest';

import { isProfile, planNodes } from './plan';

const column = (name: string) => ({ name, type: 'TEXT' });
const answer = {
  columns: ['plan', 'rows', 'time_us', 'access', 'filters'].map(column),
  rows: [
    ['Limit 5', 5n, 100n, null, null],
    ['  InnerJoin 1 on g = g', 20n, 95n, 'build_rows=10', null],
    ['    Scan t [id, g]', 1000n, 60n, 'rows_read=1000 segments_read=1', '[s: encoded]'],
    ['    Scan u', 10n, 50n, null, null],
    ['  Values []', null, null, null, null],
  ],
  rowsAffected: 0,
  figures: { rowsRead: 0, bytesRead: 0, segmentsRead: 0, segmentsSkipped: 0, elapsedMs: 0 },
};

test('operators have depth, name, own time, and what they read', () => {
  const nodes = planNodes(answer);
  expect(nodes.map(({ operator, depth }) => `${depth} ${operator}`)).toEqual([
    '0 Limit',
    '1 InnerJoin',
    '2 Scan',
    '2 Scan',
    '1 Values',
  ]);
  expect(nodes.map(({ ownUs }) => ownUs)).toEqual([5, 0, 60, 50, 0]);
  expect(nodes[2]!.access).toEqual([
    ['rows read', '1000'],
    ['segments read', '1'],
  ]);
  expect(nodes[4]!.rows).toBeUndefined();
});

test('only a result of PROFILE is one', () => {
  expect(isProfile(answer)).toBe(true);
  expect(isProfile({ ...answer, columns: answer.columns.slice(0, 1) })).toBe(false);
});
