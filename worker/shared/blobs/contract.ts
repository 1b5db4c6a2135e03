/**
 * The contract of blob stores in JavaScript, as a suite: the promises of `tests/contract/src/blob_store.rs`.
 * It throws with a sentence that names the broken promise. Calls that are `unavailable` are repeated.
 */

import { NacreError } from '../errors.js';
import type { BlobStore, WriteIf } from './blob-store.js';

/** Runs the suite. `make` returns an empty store each time. */
export async function checkBlobStore(make: () => BlobStore): Promise<void> {
  for (const check of [
    basics,
    names,
    ranges,
    conditions,
    listings,
    large,
    oneOfManyCreates,
    noUpdateIsLost,
  ]) {
    await check(make());
  }
}

function assert(holds: boolean, promise: string): asserts holds {
  if (!holds) {
    throw new Error(`broken promise of blob stores: ${promise}`);
  }
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Bytes that differ between nearby offsets, so that a shift is detected. */
function pattern(count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => ((i * 31) ^ (i >> 8)) & 255);
}

async function call<T>(work: () => Promise<T>): Promise<T> {
  for (let attempts = 0; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NacreError && error.kind === 'unavailable' && attempts < 10)) {
        throw error;
      }
    }
  }
}

async function fails(kind: string, work: () => Promise<unknown>, promise: string): Promise<void> {
  const outcome = await call(work).then(
    () => 'success',
    (error: unknown) => (error instanceof NacreError ? error.kind : String(error)),
  );
  assert(outcome === kind, `${promise} is ${kind}, not ${outcome}`);
}

const write = (store: BlobStore, name: string, text: string, when: WriteIf = 'any') =>
  call(() => store.write(name, bytesOf(text), when));

async function text(store: BlobStore, name: string): Promise<string> {
  return textOf((await call(() => store.readAll(name))).bytes);
}

async function listed(store: BlobStore, prefix: string): Promise<string[]> {
  return (await call(() => store.list(prefix))).map(({ name }) => name);
}

async function basics(store: BlobStore): Promise<void> {
  assert(same(await listed(store, ''), []), 'a new store lists nothing');
  await fails('not_found', () => store.read('a', 0, 1), 'a read of a missing blob');
  await fails('not_found', () => store.readAll('a'), 'a whole read of a missing blob');
  await call(() => store.remove('a'));
  await write(store, 'a', 'content');
  await write(store, 'seg/00/b', 'other');
  assert((await text(store, 'a')) === 'content', 'what was written comes back');
  const lengths = (await call(() => store.list(''))).map(({ name, length }) => [name, length]);
  assert(
    same(lengths, [
      ['a', 7],
      ['seg/00/b', 5],
    ]),
    'a listing has names and lengths',
  );
  const tag = await write(store, 'a', 'new');
  assert((await call(() => store.readAll('a'))).tag === tag, 'a write returns the tag of readers');
  await write(store, 'empty', '');
  assert((await text(store, 'empty')) === '', 'an empty blob is empty');
  await call(() => store.remove('a'));
  await fails('not_found', () => store.readAll('a'), 'a read of a removed blob');
}

async function names(store: BlobStore): Promise<void> {
  const good = ['-', 'A', 'Z9', '_', 'a.b/c.tmp/d', 'm/1', `${'x'.repeat(100)}/${'y'.repeat(99)}`];
  for (const name of good) {
    await write(store, name, name, 'absent');
    assert((await text(store, name)) === name, `${name} is a possible name`);
  }
  assert(same(await listed(store, ''), good), 'names are listed in the order of their bytes');
  const bad = [
    '',
    '/',
    'a/',
    '/a',
    'a//b',
    '..',
    'a/../b',
    'a/.b',
    '.h',
    'a b',
    'ä',
    'a%2Fb',
    'a?b',
    'x'.repeat(201),
  ];
  for (const name of bad) {
    await fails('io', () => store.read(name, 0, 1), `a read of ${JSON.stringify(name)}`);
    await fails(
      'io',
      () => store.write(name, bytesOf('x'), 'any'),
      `a write of ${JSON.stringify(name)}`,
    );
    await fails('io', () => store.remove(name), `a removal of ${JSON.stringify(name)}`);
  }
}

async function ranges(store: BlobStore): Promise<void> {
  const bytes = pattern(200_000);
  await call(() => store.write('f', bytes, 'any'));
  for (const [start, end] of [
    [0, 200_000],
    [0, 1],
    [199_999, 200_000],
    [65_535, 131_073],
    [77, 77],
  ] as const) {
    const read = await call(() => store.read('f', start, end));
    assert(same([...read], [...bytes.subarray(start, end)]), `bytes ${start} to ${end} come back`);
  }
  for (const [start, end] of [
    [199_999, 200_001],
    [200_000, 200_001],
    [0, 200_001],
  ] as const) {
    await fails('corrupt', () => store.read('f', start, end), `a read of ${start} to ${end}`);
  }
}

async function conditions(store: BlobStore): Promise<void> {
  const first = await write(store, 'f', 'first', 'absent');
  await fails('conflict', () => store.write('f', bytesOf('x'), 'absent'), 'creating what is there');
  assert((await text(store, 'f')) === 'first', 'a conflict changes nothing');
  const second = await write(store, 'f', 'second', { tag: first });
  await fails('conflict', () => store.write('f', bytesOf('x'), { tag: first }), 'an old tag');
  await write(store, 'f', 'third', { tag: second });
  const { tag } = await call(() => store.readAll('f'));
  await call(() => store.remove('f'));
  await fails(
    'conflict',
    () => store.write('f', bytesOf('x'), { tag }),
    'a write to a removed blob',
  );
  assert(same(await listed(store, ''), []), 'a conflict creates nothing');
  await write(store, 'f', 'again', 'absent');
}

async function listings(store: BlobStore): Promise<void> {
  const all = ['a-b', 'a/b', 'a/bc/d', 'aa', 'log/01', 'log/02'];
  for (const name of all) {
    await write(store, name, name);
  }
  for (const prefix of ['', 'a', 'a/', 'a/b', 'aa', 'aa/', 'log/0', 'log/010', 'zz/x']) {
    const names = all.filter((name) => name.startsWith(prefix));
    assert(same(await listed(store, prefix), names), `names that begin with ${prefix} are listed`);
  }
  const many = Array.from({ length: 1_100 }, (_, i) => `many/${String(i).padStart(5, '0')}`);
  const next = many.values();
  const worker = async () => {
    for (const name of next) {
      await write(store, name, name, 'absent');
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  assert(same(await listed(store, 'many/'), many), 'a listing longer than one answer has all');
}

async function large(store: BlobStore): Promise<void> {
  const bytes = pattern(5 << 20);
  await call(() => store.write('large', bytes, 'any'));
  const read = (await call(() => store.readAll('large'))).bytes;
  assert(
    read.length === bytes.length && read.every((byte, i) => byte === bytes[i]),
    'a large blob comes back',
  );
  const parts = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      call(() => store.read('large', i * 99_999, i * 99_999 + 500)),
    ),
  );
  parts.forEach((part, i) => {
    assert(
      same([...part], [...bytes.subarray(i * 99_999, i * 99_999 + 500)]),
      `part ${i} comes back`,
    );
  });
}

async function oneOfManyCreates(store: BlobStore): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, (_, writer) =>
        write(store, `f${round}`, `${writer}`.repeat(1000), 'absent').then(
          () => 'success',
          (error: NacreError) => error.kind,
        ),
      ),
    );
    const content = await text(store, `f${round}`);
    outcomes.forEach((outcome, writer) => {
      const expected = content === `${writer}`.repeat(1000) ? 'success' : 'conflict';
      assert(outcome === expected, `one of many writers creates a blob (${outcomes.join()})`);
    });
  }
}

/** Each writer reads a list and writes it with one more, if it is unchanged. */
async function noUpdateIsLost(store: BlobStore): Promise<void> {
  await write(store, 'f', '');
  const append = async (number: string) => {
    for (;;) {
      const { bytes, tag } = await call(() => store.readAll('f'));
      const list = textOf(bytes).split(',').filter(Boolean);
      // A write that was `unavailable` may have taken effect.
      if (list.includes(number)) {
        return;
      }
      try {
        await store.write('f', bytesOf([...list, number].join(',')), { tag });
        return;
      } catch (error) {
        const { kind } = error as NacreError;
        assert(
          kind === 'conflict' || kind === 'unavailable',
          `an update conflicts, and is not ${kind}`,
        );
      }
    }
  };
  const writer = async (_: unknown, writer: number) => {
    for (let i = 0; i < 8; i++) {
      await append(`${writer}.${i}`);
    }
  };
  await Promise.all(Array.from({ length: 3 }, writer));
  const list = (await text(store, 'f')).split(',');
  assert(list.length === 24 && new Set(list).size === 24, 'no update is lost or made twice');
}
