import { expect, test } from 'vitest';
import { NacreError } from '../errors.js';
import type { BlobStore } from './blob-store.js';
import { type SourceStore, encrypted } from './encrypted-store.js';

/** The same key and the same bytes as the test of native stores has: both must read what the other one writes. */
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);
const SEALED =
  '4e4143524553454144034bc56add6dd205c846ae2d49edca3c87cd577f1266e3' +
  'b8dd50a430ad7f3dcdcd656b19f47ba2d178387c8e5043e8041e2e479f51c08bae96826cf147';

/** Blobs in memory. */
class Memory implements SourceStore {
  readonly requests = { made: 0 };
  readonly blobs = new Map<string, Uint8Array>();

  async readTo(name: string, start: number, end: number): Promise<Uint8Array> {
    return this.#blob(name).slice(start, end);
  }

  async read(name: string, start: number, end: number): Promise<Uint8Array> {
    return this.readTo(name, start, end);
  }

  async readAll(name: string): Promise<{ bytes: Uint8Array; tag: string }> {
    return { bytes: this.#blob(name), tag: 'tag' };
  }

  async write(name: string, bytes: Uint8Array): Promise<string> {
    this.blobs.set(name, bytes);
    return 'tag';
  }

  async list() {
    return [...this.blobs].map(([name, { length }]) => ({ name, length, modifiedMs: 0 }));
  }

  async remove(name: string): Promise<void> {
    this.blobs.delete(name);
  }

  #blob(name: string): Uint8Array {
    return this.blobs.get(name) as Uint8Array;
  }
}

const content = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 31) ^ (i >> 8));

async function failure(work: Promise<unknown>): Promise<NacreError> {
  const error: unknown = await work.then(
    () => 'it succeeded',
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(NacreError);
  return error as NacreError;
}

async function write(length: number): Promise<[BlobStore, Memory, Uint8Array]> {
  const source = new Memory();
  const store = encrypted(source, KEY);
  await store.write('a', content(length), 'any');
  return [store, source, source.blobs.get('a') as Uint8Array];
}

test.for([0, 1, 100, 8_191, 8_192, 8_193, 24_576])('%i bytes come back', async (length) => {
  const [store, , sealed] = await write(length);
  const { bytes } = await store.readAll('a');
  expect([...bytes]).toEqual([...content(length)]);
  expect((await store.list(''))[0]?.length).toBe(length);
  expect(sealed.length).toBeGreaterThanOrEqual(length + 44);
  if (length > 0) {
    expect([...(await store.read('a', length - 1, length))]).toEqual([
      ...content(length).slice(-1),
    ]);
  }
  expect((await failure(store.read('a', length, length + 1))).kind).toBe('corrupt');
});

test('ranges are read from their blocks', async () => {
  const [store] = await write(41_037);
  for (const [start, end] of [
    [0, 1],
    [8_191, 8_193],
    [8_192, 8_193],
    [20_000, 41_000],
    [41_036, 41_037],
  ] as const) {
    const read = await store.read('a', start, end);
    expect([...read]).toEqual([...content(41_037).subarray(start, end)]);
  }
});

test('whatever is done to the bytes of a blob is noticed', async () => {
  const [store, source, sealed] = await write(2 * 8_192 + 10);
  const block = 8_192 + 28;
  const changed = (at: number) => sealed.map((byte, i) => (i === at ? byte ^ 1 : byte));
  const swapped = sealed.slice();
  swapped.set(sealed.subarray(16, 16 + block), 16 + block);
  swapped.set(sealed.subarray(16 + block, 16 + 2 * block), 16);
  const damaged = [
    ...Array.from({ length: 40 }, (_, i) => changed(16 + i * 411)),
    ...[16, 36, 16 + block, sealed.length - 1].map((length) => sealed.slice(0, length)),
    Uint8Array.of(...sealed, ...sealed.slice(-38)),
    swapped,
  ];
  for (const blob of damaged) {
    source.blobs.set('a', blob);
    expect((await failure(store.readAll('a'))).kind).toBe('corrupt');
  }
  // What another blob has.
  source.blobs.set('b', sealed);
  expect((await failure(store.readAll('b'))).kind).toBe('corrupt');
  expect((await failure(store.read('b', 0, 10))).kind).toBe('corrupt');
});

test('other keys and plain blobs are told apart', async () => {
  const [store, source] = await write(10);
  const other = encrypted(
    source,
    KEY.map((byte) => byte + 1),
  );
  expect(await failure(other.readAll('a'))).toMatchObject({
    kind: 'io',
    message: expect.stringContaining('another key'),
  });
  const plain = encrypted(source, undefined);
  expect(await failure(plain.readAll('a'))).toMatchObject({
    kind: 'io',
    message: expect.stringContaining('is encrypted'),
  });
  await plain.write('a', content(10), 'any');
  expect(await failure(store.readAll('a'))).toMatchObject({
    kind: 'io',
    message: expect.stringContaining('not encrypted'),
  });
});

test('a key may be one that cannot be read, if it derives bits', async () => {
  const [, source] = await write(10);
  const key = (usages: KeyUsage[]) => crypto.subtle.importKey('raw', KEY, 'HKDF', false, usages);
  const { bytes } = await encrypted(source, await key(['deriveBits'])).readAll('a');
  expect(bytes).toEqual(content(10));
  const useless = encrypted(source, await key(['deriveKey']));
  expect((await failure(useless.readAll('a'))).kind).toBe('type');
});

test('the format is that of native stores', async () => {
  const source = new Memory();
  const sealed = (SEALED.match(/../g) ?? []).map((digits) => Number.parseInt(digits, 16));
  source.blobs.set('log/1', Uint8Array.from(sealed));
  const { bytes } = await encrypted(source, KEY).readAll('log/1');
  expect(new TextDecoder().decode(bytes)).toBe('written once, read by both');
});
