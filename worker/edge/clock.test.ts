import { expect, test } from 'vitest';
import { going } from './clock.js';

test('a clock that moves is shown as it is', () => {
  let time = 0;
  const clock = going(() => (time += 0.5));
  expect(Array.from({ length: 100 }, () => clock.now())).toEqual(
    Array.from({ length: 100 }, (_, n) => (n + 1) / 2),
  );
});

test('a loop of some milliseconds ends beside a clock that stands', () => {
  let time = 7;
  const clock = going(() => time);
  const began = clock.now();
  let looks = 0;
  while (clock.now() - began < 8) {
    looks++;
  }
  expect(looks).toBeLessThan(1_000);
  // It never goes back, also when the platform's has moved by less.
  const before = clock.now();
  time += 1;
  expect(clock.now()).toBeGreaterThanOrEqual(before);
  time += 100;
  expect(clock.now()).toBe(time);
});
