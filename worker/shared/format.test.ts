import { expect, test } from 'vitest';
import { formatDate, formatDecimal, formatTime, formatTimestamp } from './format.js';

test('decimals', () => {
  expect(formatDecimal(-1230n, 2)).toBe('-12.30');
  expect(formatDecimal(5n, 2)).toBe('0.05');
  expect(formatDecimal(-5n, 3)).toBe('-0.005');
  expect(formatDecimal(0n, 0)).toBe('0');
  expect(formatDecimal(10n ** 38n - 1n, 38)).toBe(`0.${'9'.repeat(38)}`);
});

test('dates and times', () => {
  expect(formatDate(0)).toBe('1970-01-01');
  expect(formatDate(-719_528)).toBe('0000-01-01');
  expect(formatDate(2_932_896)).toBe('9999-12-31');
  expect(formatTime(0n)).toBe('00:00:00');
  expect(formatTime(86_399_000_001n)).toBe('23:59:59.000001');
  expect(formatTimestamp(-1n)).toBe('1969-12-31 23:59:59.999999');
  expect(formatTimestamp(1_500_000n)).toBe('1970-01-01 00:00:01.500000');
});
