/** Replies that leave together, and one that cannot leave. */

import { expect, test } from 'vitest';
import { toErrorData } from './errors.js';
import { unpack } from './packed.js';
import type { Call, Reply, Service } from './protocol.js';
import { serve, type ServerPort } from './server.js';

const statistics = {
  rowsRead: 0,
  bytesRead: 0,
  segmentsRead: 0,
  segmentsSkipped: 0,
  blocksRead: 0,
  blocksSkipped: 0,
  pointReads: 0,
  elapsedMs: 0,
};

/** A port whose other side clones as a real one, and that can be closed. */
function port() {
  const replies: Reply[] = [];
  const state = { isClosed: false, messages: 0 };
  const server: ServerPort = {
    onmessage: null,
    postMessage: (packed, transfer) => {
      if (state.isClosed) {
        throw new DOMException('the channel is closed', 'InvalidStateError');
      }
      const data = structuredClone(packed, { transfer });
      state.messages++;
      unpack(data, (reply) => replies.push(reply));
    },
  };
  const service = {
    call: (_: string, [, answer]: [number, unknown]): unknown => answer,
  } as unknown as Service;
  serve(server, service);
  const ask = async (...answers: unknown[]): Promise<Reply[]> => {
    const calls = answers.map((answer, id) => ({ id, method: 'execute', args: [0, answer] }));
    server.onmessage!({ data: calls as unknown as Call[] } as MessageEvent<Call[]>);
    await new Promise((resolve) => setTimeout(resolve));
    return replies.splice(0);
  };
  return { ask, state };
}

/** A result with one column. */
const result = (values: unknown) => ({
  kind: 'query',
  columns: [{ values }],
  rows: 1,
  rowsAffected: 0,
  statistics,
});

test('an answer that cannot be sent is an error, and the others arrive', async () => {
  const { ask, state } = port();
  const numbers = new BigInt64Array([7n]);
  const replies = await ask(result([1]), result([() => 1]), result(numbers), result(['x']));
  expect(replies.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
  expect(replies[1]).toMatchObject({
    error: { kind: 'limit', message: expect.stringContaining('cannot be sent'), mayHaveRun: true },
  });
  expect(replies[2]).toMatchObject({ result: { columns: [{ values: new BigInt64Array([7n]) }] } });
  // It was transferred, once.
  expect(numbers.length).toBe(0);
  state.messages = 0;
  expect(await ask(result([1]), result([2]))).toHaveLength(2);
  expect(state.messages).toBe(1);
});

test('answers to a channel that is closed go nowhere', async () => {
  const { ask, state } = port();
  state.isClosed = true;
  expect(await ask(result([1]), result([2]))).toEqual([]);
  state.isClosed = false;
  expect(await ask(result([3]))).toHaveLength(1);
});

test('an error of a service travels as data', async () => {
  const { ask } = port();
  const failed = Promise.reject(new Error('no'));
  expect(await ask(failed)).toEqual([{ id: 0, error: toErrorData(new Error('no')) }]);
});
