import { expect, test } from 'vitest';
import { nacreError, NacreError, toErrorData } from './errors.js';

test('an error survives being sent', () => {
  const error = new NacreError({
    kind: 'constraint',
    message: 'twice',
    sqlstate: '23505',
    table: 't',
    key: 'primary',
    position: { line: 1, column: 2 },
  });
  const again = new NacreError(structuredClone(toErrorData(error)));
  expect(again).toBeInstanceOf(Error);
  expect(again).toMatchObject({
    kind: 'constraint',
    sqlstate: '23505',
    table: 't',
    key: 'primary',
  });
  expect(again.position).toEqual({ line: 1, column: 2 });
});

test('every kind has an SQLSTATE, and some are retryable', () => {
  expect(nacreError('conflict', '').sqlstate).toBe('40001');
  expect(nacreError('conflict', '').retryable).toBe(true);
  expect(nacreError('syntax', '').retryable).toBe(false);
});

test('errors of the platform are given a kind', () => {
  const kind = (thrown: unknown) => toErrorData(thrown).kind;
  expect(kind(new DOMException('full', 'QuotaExceededError'))).toBe('limit');
  expect(kind(new DOMException('held', 'NoModificationAllowedError'))).toBe('in_use');
  expect(kind(Object.assign(new Error('full'), { code: 'ENOSPC' }))).toBe('limit');
  expect(kind(Object.assign(new Error('none'), { code: 'ENOENT' }))).toBe('not_found');
  expect(kind(new TypeError('odd'))).toBe('io');
  expect(kind('just text')).toBe('io');
});
