import { expect, test } from 'vitest';
import { nacreError } from '../shared/errors.js';
import type { SourceStore } from '../shared/blobs/encrypted-store.js';
import { type BlockCache, CachedStore } from './cached-store.js';

const BLOCK = 128 << 10;
const LENGTH = 5 * BLOCK + 1_000;
const BYTES = Uint8Array.from({ length: LENGTH }, (_, i) => (i * 31) ^ (i >> 9));

/** One blob, and the ranges that are read of it. */
class OneBlob {
  readonly requests = { made: 0 };
  readonly ranges: [number, number][] = [];

  async readTo(_name: string, start: number, end: number): Promise<Uint8Array> {
    this.ranges.push([start, end]);
    if (start >= LENGTH) {
      throw nacreError('corrupt', `the blob ends at byte ${LENGTH}`);
    }
    return BYTES.slice(start, end);
  }

  async read(name: string, start: number, end: number): Promise<Uint8Array> {
    const bytes = await this.readTo(name, start, end);
    if (bytes.length < end - start) {
      throw nacreError('corrupt', `the blob ends before byte ${end}`);
    }
    return bytes;
  }
}

/** The platform's cache, which may lose what it keeps. */
class Kept implements BlockCache {
  readonly kept = new Map<string, Uint8Array>();

  async match(url: string): Promise<Response | undefined> {
    const bytes = this.kept.get(url);
    return bytes && new Response(bytes.slice());
  }

  async put(url: string, response: Response): Promise<void> {
    this.kept.set(url, new Uint8Array(await response.arrayBuffer()));
  }
}

/** Whether bytes are those of the blob from `start` up to `end`; comparing arrays one by one takes long. */
const are = (bytes: Uint8Array, start: number, end: number): boolean =>
  bytes.length === end - start && bytes.every((byte, i) => byte === BYTES[start + i]);

const storeOf = (source: OneBlob, cache: BlockCache): CachedStore =>
  new CachedStore(source as unknown as SourceStore, cache, 'shop');

test('a range is read once, by blocks, and only where it is not kept', async () => {
  const [source, cache] = [new OneBlob(), new Kept()];
  const store = storeOf(source, cache);
  expect(are(await store.read('00/seg', BLOCK + 5, BLOCK + 9), BLOCK + 5, BLOCK + 9)).toBe(true);
  expect(source.ranges).toEqual([[BLOCK, 2 * BLOCK]]);
  expect(are(await store.read('00/seg', 10, LENGTH), 10, LENGTH)).toBe(true);
  expect(source.ranges.slice(1)).toEqual([
    [0, BLOCK],
    [2 * BLOCK, 6 * BLOCK],
  ]);
  for (const [start, end] of [
    [0, 1],
    [BLOCK - 1, BLOCK + 1],
    [5 * BLOCK, LENGTH],
    [0, LENGTH],
  ] as const) {
    expect(are(await store.read('00/seg', start, end), start, end)).toBe(true);
  }
  expect(source.ranges).toHaveLength(3);
  expect([...cache.kept.keys()][0]).toBe('https://blobs.invalid/shop/00/seg?block=1');
  expect(await store.readTo('00/seg', LENGTH - 3, LENGTH + 3)).toEqual(BYTES.slice(-3));
  expect(await store.read('00/seg', 7, 7)).toEqual(new Uint8Array());
});

test('a range past the end is the error of the store, kept or not', async () => {
  const store = storeOf(new OneBlob(), new Kept());
  for (let round = 0; round < 2; round++) {
    const past = { kind: 'corrupt' };
    await expect(store.read('a', LENGTH - 1, LENGTH + 1)).rejects.toMatchObject(past);
    await expect(store.read('a', LENGTH, LENGTH + 1)).rejects.toMatchObject(past);
    await expect(store.readTo('a', LENGTH, LENGTH + 1)).rejects.toMatchObject(past);
    await expect(store.read('a', 9 * BLOCK, 9 * BLOCK + 1)).rejects.toMatchObject(past);
  }
});

test('lookups of a cache, and what it keeps, are requests', async () => {
  const [source, cache] = [new OneBlob(), new Kept()];
  const store = storeOf(source, cache);
  await store.read('a', 0, 2 * BLOCK);
  expect(source.requests.made).toBe(4);
  await store.read('a', 0, BLOCK);
  expect(source.requests.made).toBe(5);
});

test('a cache that fails, or answers nonsense, is none', async () => {
  const source = new OneBlob();
  const broken = {
    match: async () => Promise.reject(new Error('too many')),
    put: async () => Promise.reject(new Error('too many')),
  };
  const nonsense = { match: async () => new Response(''), put: async () => {} };
  for (const cache of [broken, nonsense]) {
    expect(await storeOf(source, cache).read('a', 1, 9)).toEqual(BYTES.slice(1, 9));
  }
  expect(source.ranges).toHaveLength(2);
});
