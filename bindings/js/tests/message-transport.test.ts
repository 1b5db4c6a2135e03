import { afterEach, expect, test } from 'vitest';
import { nacreError } from '../../../worker/shared/errors.js';
import type { Method, Service } from '../../../worker/shared/protocol.js';
import { serve } from '../../../worker/shared/server.js';
import { MessageTransport } from '../src/message-transport.js';
import { expectKind } from './testing.js';

type Answers = (method: string, args: unknown[]) => unknown;

let ports: MessagePort[] = [];

/** A client and a service on the two ends of a channel; any two threads or tabs could have them. */
function connected(answers: Answers) {
  const { port1, port2 } = new MessageChannel();
  ports = [port1, port2];
  const messages: unknown[][] = [];
  serve(port2, { call: answers } as unknown as Service);
  port2.addEventListener('message', (event) => messages.push(event.data));
  const transport = new MessageTransport(port1, () => port1.close());
  return { transport, messages };
}

afterEach(() => ports.forEach((port) => port.close()));

test('calls of one task travel in one message and are answered in any order', async () => {
  let release = (_: unknown): void => {};
  const { transport, messages } = connected((method, args) =>
    method === 'flush' ? new Promise((resolve) => (release = resolve)) : args[2],
  );
  const flushed = transport.call('flush');
  const prepared = transport.call('prepare', 0, 1, 'select 7');
  expect(await prepared).toBe('select 7');
  release(undefined);
  expect(await flushed).toBeUndefined();
  expect(messages.map((calls) => calls.length)).toEqual([2]);
});

test('buffers are transferred to the client', async () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const { transport } = connected(() => bytes);
  expect(await transport.call('arrow', 0, 'select 1', undefined)).toEqual(
    new Uint8Array([1, 2, 3]),
  );
  expect(bytes.byteLength).toBe(0);
});

test('errors keep their kind, whether thrown or rejected', async () => {
  const { transport } = connected((method) => {
    const error = nacreError('conflict', method);
    if (method === 'flush') {
      throw error;
    }
    return Promise.reject(error);
  });
  await expectKind(transport.call('flush'), 'conflict', { message: 'flush' });
  await expectKind(transport.call('storage'), 'conflict', { message: 'storage' });
});

test('a method of another version is unsupported', async () => {
  const { transport } = connected(() => expect.fail('not called'));
  await expectKind(transport.call('toString' as Method as 'flush'), 'unsupported');
});

test('a transport that ends fails its calls, and later ones', async () => {
  const { transport } = connected(() => new Promise(() => {}));
  const call = transport.call('flush');
  transport.end();
  await expectKind(call, 'closed');
  await expectKind(transport.call('flush'), 'closed');
});
