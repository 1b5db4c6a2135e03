import { expect, test } from 'vitest';
import { TRANSFER, type Handlers, type Method, type Service } from './protocol.js';
import type { WireResult } from './wire.js';

/** Never called: `tsc` checks it, and reports an expected error that does not occur. */
export function typeChecks(
  service: Service,
  handlers: Handlers,
  transfer: Record<Method, () => ArrayBuffer[]>,
): void {
  // A client's call: misspelled, without an argument, and with an argument of another type.
  // @ts-expect-error
  void service.call('exceute', [0, 'select 1', undefined]);
  // @ts-expect-error
  void service.call('execute', [0, 'select 1']);
  // @ts-expect-error
  void service.call('execute', ['0', 'select 1', undefined]);
  // Its answer.
  // @ts-expect-error
  void (service.call('storage', []) as Promise<string>);

  // The engine's side: a method too few, a method too many, and another answer.
  const { flush, ...missing } = handlers;
  // @ts-expect-error
  ({ ...missing }) satisfies Handlers;
  ({ ...handlers, flush }) satisfies Handlers;
  // @ts-expect-error
  ({ ...handlers, flsh: flush }) satisfies Handlers;
  // @ts-expect-error
  ({ ...handlers, storage: () => 'full' }) satisfies Handlers;

  // A method without an entry for its buffers.
  const { more, ...forgotten } = transfer;
  // @ts-expect-error
  ({ ...forgotten }) satisfies typeof TRANSFER;
  ({ ...forgotten, more }) satisfies typeof TRANSFER;
}

test('the buffers of every kind of answer are transferred', () => {
  const values = new BigInt64Array(2);
  const [text, offsets, validity] = [new Uint8Array(3), new Uint32Array(3), new Uint8Array(1)];
  const result = {
    columns: [{ values }, { values: text, offsets, validity }, { values: [1, null] }],
  } as unknown as WireResult;
  const buffers = [values.buffer, text.buffer, offsets.buffer, validity.buffer];
  expect(TRANSFER.execute(result)).toEqual(buffers);
  expect(TRANSFER.run(result)).toEqual(buffers);
  expect(TRANSFER.more({ chunk: result, done: false })).toEqual(buffers);
  expect(TRANSFER.more({ chunk: text, done: true })).toEqual([text.buffer]);
  expect(TRANSFER.stream({ chunk: text, done: true, fields: [] })).toEqual([text.buffer]);
  expect(TRANSFER.arrow(text)).toEqual([text.buffer]);
  expect(TRANSFER.inspect([])).toEqual([]);
});
