// Explaining a statement must not run it.

import { expect, test } from 'vitest';

import { explained, profiled } from './explain';

test('a statement is explained', () => {
  expect(explained('select 1')).toBe('explain select 1');
  expect(explained('delete from profiles')).toBe('explain delete from profiles');
});

test('words that would run it, or explain it twice, are removed', () => {
  for (const words of [
    'explain',
    'EXPLAIN ANALYZE',
    'profile',
    'analyze',
    'explain /* all */ analyze',
    'explain -- all\n analyze\n',
    'describe analyze',
  ]) {
    expect(explained(`${words} delete from t`)).toBe('explain delete from t');
  }
});

test('a statement is profiled once', () => {
  expect(profiled('select 1')).toBe('profile select 1');
  expect(profiled('explain analyze select 1')).toBe('profile select 1');
});
