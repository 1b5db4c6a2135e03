import { afterEach, expect, test } from 'vitest';
import { NacreError, nacreError } from '../errors.js';
import { answerAt, askAt } from './asking.js';
import type { BlobRequest } from './options.js';

let channel = new MessageChannel();

afterEach(() => {
  // Open ports keep Node running.
  channel.port1.close();
  channel = new MessageChannel();
});

const request: BlobRequest = { method: 'GET', url: 'https://server.test/a', headers: { a: 'b' } };

test('each question gets its own answer', async () => {
  const later: (() => void)[] = [];
  answerAt(channel.port1, (asked) =>
    asked === null
      ? new Promise((resolve) => later.push(() => resolve({ accessKeyId: 'x' })))
      : Promise.resolve(`${asked.method} ${asked.url}`),
  );
  const ask = askAt(channel.port2);
  const first = ask(null);
  expect(await ask(request)).toBe('GET https://server.test/a');
  later.forEach((answer) => answer());
  expect(await first).toEqual({ accessKeyId: 'x' });
});

test('errors of the application come as errors, and keep their kind', async () => {
  const errors = [nacreError('unavailable', 'later'), new Error('signed out')];
  answerAt(channel.port1, () => Promise.reject(errors.shift()));
  const ask = askAt(channel.port2);
  await expect(ask(null)).rejects.toMatchObject({ kind: 'unavailable', message: 'later' });
  const failed = ask(null);
  await expect(failed).rejects.toBeInstanceOf(NacreError);
  await expect(failed).rejects.toThrow('signed out');
});

test('an answer that cannot be sent is an error', async () => {
  answerAt(channel.port1, () => Promise.resolve({ secret: () => 'x' }));
  await expect(askAt(channel.port2)(null)).rejects.toBeInstanceOf(NacreError);
});

test('without a page no question is answered', async () => {
  await expect(askAt(null)(null)).rejects.toMatchObject({ kind: 'io' });
});
