import { expect, test } from 'vitest';
import { currentInstance, engineError, isSound, mustBeSound } from './engine.js';
import { nacreError } from './errors.js';

test('errors of the engine keep their kind', () => {
  const conflict = nacreError('conflict', 'again');
  expect(engineError(conflict)).toBe(conflict);
  expect(engineError({ kind: 'corrupt', message: 'block 3' })).toMatchObject({ kind: 'corrupt' });
  expect(isSound(currentInstance())).toBe(true);
});

test('after a trap every check fails', () => {
  const error = engineError(new WebAssembly.RuntimeError('unreachable'));
  expect(error.kind).toBe('closed');
  expect(error.message).toContain('unreachable');
  expect(isSound(currentInstance())).toBe(false);
  expect(() => mustBeSound(currentInstance())).toThrow(expect.objectContaining({ kind: 'closed' }));
});
