import { expect, test, vi } from 'vitest';
import { IdbStore } from './idb-store.js';

/** The transactions that have begun, for the test to end. */
const begun = vi.hoisted(() => [] as { end: () => void; fail: (error: Error) => void }[]);

vi.mock('./idb-lock.js', () => ({ holdFiles: () => Promise.resolve(() => {}) }));
vi.mock('./idb.js', () => {
  const idb = {
    files: () => Promise.resolve([]),
    store: () => new Promise<void>((end, fail) => begun.push({ end, fail })),
    close: () => {},
  };
  return { Idb: { open: () => Promise.resolve(idb) } };
});

const later = () => new Promise((resolve) => setTimeout(resolve));

async function opened() {
  const store = await IdbStore.open('test');
  const file = store.create('log-1');
  const write = async () => {
    store.write(file, 0, Uint8Array.of(1));
    store.sync(file);
    await later();
  };
  return { store, write };
}

test('what is written later does not hold up what is settled', async () => {
  const { store, write } = await opened();
  await write();
  await write();
  let isSettled = false;
  void store.settled()!.then(() => (isSettled = true));
  begun.shift()!.end();
  await later();
  // The second write is in the transaction that has begun now; a third one is not.
  expect(isSettled).toBe(false);
  await write();
  begun.shift()!.end();
  await later();
  expect(isSettled).toBe(true);
  expect(begun).toHaveLength(1);
  begun.shift()!.end();
  await store.settled();
  expect(store.settled()).toBeNull();
});

test('after a failure nothing is stored, and all that waits fails', async () => {
  const { store, write } = await opened();
  await write();
  await write();
  const waiting = store.settled()!;
  begun.shift()!.fail(new DOMException('full', 'QuotaExceededError'));
  await expect(waiting).rejects.toMatchObject({ kind: 'limit' });
  await expect(store.settled()).rejects.toMatchObject({ kind: 'limit' });
  await expect(write()).rejects.toMatchObject({ kind: 'limit' });
  expect(begun).toEqual([]);
});
