// Asking for a plan must not change anything.

import { expect, test } from 'vitest';

import { explained } from './explain';

test('a statement is asked about', () => {
  expect(explained('select 1')).toBe('explain select 1');
  expect(explained('delete from profiles')).toBe('explain delete from profiles');
});

test('words that would run it, or ask twice, are left out', () => {
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
