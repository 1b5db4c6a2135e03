/** The example in Cloudflare's runtime. */

import * as path from 'node:path';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { emptyFolder, startWorker } from '../testing.js';

const storage = emptyFolder();
let runtime: Miniflare;

async function start(bindings: object = {}): Promise<void> {
  runtime = await startWorker(path.join(import.meta.dirname, 'worker.mjs'), {
    durableObjects: { TENANT: { className: 'Tenant', useSQLite: true } },
    durableObjectsPersist: storage,
    ...bindings,
  });
}

const url = (at: string): string => `http://localhost/${at}`;

async function read(at: string): Promise<unknown> {
  return (await runtime.dispatchFetch(url(at))).json();
}

async function add(tenant: string, customer: unknown, amount: unknown): Promise<[number, unknown]> {
  const response = await runtime.dispatchFetch(url(`${tenant}/orders`), {
    method: 'POST',
    body: JSON.stringify({ customer, amount }),
  });
  return [response.status, await response.json()];
}

beforeAll(() => start());
afterAll(() => runtime.dispose());

test('orders are added, read and summed up', async () => {
  expect(await add('shop', 'ann', 12.5)).toEqual([201, { id: 1 }]);
  expect(await add('shop', 'bob', 99.99)).toEqual([201, { id: 2 }]);
  expect(await add('shop', 'ann', 100)).toEqual([201, { id: 3 }]);
  expect(await read('shop/orders/2')).toMatchObject({ customer: 'bob', amount: '99.99' });
  expect(await read('shop/summary')).toEqual([
    { customer: 'ann', orders: 2, spent: 112.5 },
    { customer: 'bob', orders: 1, spent: 99.99 },
  ]);
});

test('what breaks a rule is refused, and changes nothing', async () => {
  expect(await add('strict', 'ann', -1)).toMatchObject([400, { error: expect.any(String) }]);
  expect(await add('strict', null, 1)).toMatchObject([400, { error: expect.any(String) }]);
  expect(await read('strict/summary')).toEqual([]);
  expect((await runtime.dispatchFetch(url('strict/orders/1'))).status).toBe(404);
});

test('a socket follows the summary', async () => {
  const response = await runtime.dispatchFetch(url('watched/live'), {
    headers: { upgrade: 'websocket' },
  });
  const socket = response.webSocket!;
  const received: unknown[] = [];
  socket.addEventListener('message', ({ data }) => received.push(JSON.parse(String(data))));
  socket.accept();
  await vi.waitFor(() => expect(received).toEqual([[]]));
  await add('watched', 'ann', 5);
  await vi.waitFor(() =>
    expect(received.at(-1)).toEqual([{ customer: 'ann', orders: 1, spent: 5 }]),
  );
  socket.close();
});

test('two hundred tenants do not see each other, and find their orders after a restart', async () => {
  const tenants = Array.from({ length: 200 }, (_, n) => `tenant-${n}`);
  for (let round = 0; round < 5; round++) {
    await Promise.all(tenants.map((tenant, n) => add(tenant, `of ${n}`, n + 1)));
  }
  const summaries = (): Promise<unknown[]> =>
    Promise.all(tenants.map((tenant) => read(`${tenant}/summary`)));
  const expected = tenants.map((_, n) => [{ customer: `of ${n}`, orders: 5, spent: 5 * (n + 1) }]);
  expect(await summaries()).toEqual(expected);
  await runtime.dispose();
  await start();
  expect(await summaries()).toEqual(expected);
});

test('a report has an order whose position it is given, and totals are of many tenants', async () => {
  await runtime.dispose();
  await start({ r2Buckets: ['ORDERS'] });
  expect((await runtime.dispatchFetch(url('nowhere/report'))).status).toBe(404);
  for (const [tenant, amount] of [
    ['cafe', 3],
    ['bakery', 4],
  ] as const) {
    const response = await runtime.dispatchFetch(url(`${tenant}/orders`), {
      method: 'POST',
      body: JSON.stringify({ customer: 'ann', amount }),
    });
    const headers = { 'x-nacre-position': response.headers.get('x-nacre-position')! };
    const report = await runtime.dispatchFetch(url(`${tenant}/report`), { headers });
    expect(await report.json()).toEqual([{ customer: 'ann', orders: 1, spent: amount }]);
  }
  expect(await read('totals?of=cafe,bakery')).toEqual({
    cafe: { orders: 1, worth: 3 },
    bakery: { orders: 1, worth: 4 },
  });
});
