import { version } from '../package.json';
import { expect, test } from 'vitest';
import { mustBeThisVersion, VERSION } from '../../../worker/shared/version.js';

test('the version is that of the package', () => {
  expect(VERSION).toBe(version);
  expect(() => mustBeThisVersion(version)).not.toThrow();
});

test.each([undefined, '0.0.9'])('a page of version %s is refused', (other) => {
  const refusal = {
    kind: 'unsupported',
    message: expect.stringContaining('deploy the files of one'),
  };
  expect(() => mustBeThisVersion(other)).toThrow(expect.objectContaining(refusal));
});
