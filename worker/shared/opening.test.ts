import { expect, test } from 'vitest';
import { Opening } from './opening.js';
import type { Service } from './protocol.js';

test('an opening database makes later calls wait, and is opened once', async () => {
  let opened = 0;
  const service: Service = { call: (method) => method as never };
  const opening = new Opening(async () => {
    opened++;
    return service;
  });
  expect(() => opening.call('flush', [])).toThrow(expect.objectContaining({ kind: 'closed' }));
  const request = { url: 'memory://', options: {} };
  const calls = [
    opening.call('open', [request]),
    opening.call('open', [request]),
    opening.call('flush', []),
  ];
  expect(await Promise.all(calls)).toEqual([undefined, undefined, 'flush']);
  expect(opening.call('close', [])).toBe('close');
  expect(opened).toBe(1);
});
