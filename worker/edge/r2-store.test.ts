import { expect, test } from 'vitest';
import { type Bucket, openBucket } from './r2-store.js';

interface Stored {
  key: string;
  size: number;
  etag: string;
  uploaded: Date;
  customMetadata: Record<string, string>;
  bytes: Uint8Array;
}

/** A bucket in memory. A plan says which calls end in an error, before they have taken effect or after. */
class Memory implements Bucket {
  readonly objects = new Map<string, Stored>();
  isLate = false;
  plan: (call: string, number: number) => string | undefined = () => undefined;
  #count = 0;
  #tags = 0;

  async get(key: string, options?: { range: { offset: number; length: number } }) {
    return this.#call('get', () => {
      const object = this.objects.get(key);
      if (object === undefined) {
        return null;
      }
      const { offset, length } = options?.range ?? { offset: 0, length: object.size };
      if (offset >= object.size && object.size > 0) {
        throw new Error('get: The requested range is not satisfiable (10039)');
      }
      const bytes = object.bytes.slice(offset, offset + length);
      return { ...object, arrayBuffer: async () => bytes.buffer as ArrayBuffer };
    });
  }

  async head(key: string) {
    return this.#call('head', () => this.objects.get(key) ?? null);
  }

  async put(
    key: string,
    value: ArrayBufferView,
    options?: Parameters<Bucket['put']>[2],
  ): Promise<Stored | null> {
    return this.#call('put', () => {
      const { onlyIf, customMetadata = {} } = options ?? {};
      const present = this.objects.get(key);
      if (
        (onlyIf?.etagDoesNotMatch === '*' && present !== undefined) ||
        (onlyIf?.etagMatches !== undefined && present?.etag !== onlyIf.etagMatches)
      ) {
        return null;
      }
      const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
      const etag = `tag-${this.#tags++}`;
      const uploaded = new Date();
      const object = { key, size: bytes.length, etag, uploaded, customMetadata, bytes };
      this.objects.set(key, object);
      return object;
    });
  }

  async delete(key: string): Promise<void> {
    this.#call('delete', () => this.objects.delete(key));
  }

  /** Two objects a page. */
  async list({ prefix, cursor = '' }: { prefix: string; cursor?: string }) {
    return this.#call('list', () => {
      const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
      const left = keys.filter((key) => key > cursor);
      const objects = left.slice(0, 2).map((key) => this.objects.get(key) as Stored);
      const truncated = left.length > 2;
      return { objects, truncated, ...(truncated ? { cursor: objects[1]?.key as string } : {}) };
    });
  }

  #call<T>(name: string, work: () => T): T {
    const message = this.plan(name, this.#count++);
    if (message !== undefined && !this.isLate) {
      throw new Error(message);
    }
    const answer = work();
    if (message !== undefined) {
      throw new Error(message);
    }
    return answer;
  }
}

const INTERNAL = 'We encountered an internal error. Please try again. (10001)';
const bytesOf = (text: string) => new TextEncoder().encode(text);

test.for([false, true])('calls survive errors that pass (late: %s)', async (isLate) => {
  const bucket = new Memory();
  bucket.isLate = isLate;
  bucket.plan = (_, number) => (number % 3 === 0 ? INTERNAL : undefined);
  const store = openBucket(bucket, 'shop');
  const tag = await store.write('a', bytesOf('one'), 'absent');
  await store.write('a', bytesOf('two'), { tag });
  expect(new TextDecoder().decode(await store.read('a', 1, 3))).toBe('wo');
  for (const name of ['b', 'c', 'd']) {
    await store.write(name, bytesOf('x'), 'any');
  }
  expect((await store.list('')).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
  await store.remove('a');
  await expect(store.readAll('a')).rejects.toMatchObject({ kind: 'not_found' });
  expect([...bucket.objects.keys()]).toEqual(['shop/b', 'shop/c', 'shop/d']);
});

test('a write whose answer is lost is known by its number, and not taken for that of another', async () => {
  const bucket = new Memory();
  bucket.isLate = true;
  const store = openBucket(bucket, '');
  bucket.plan = (_, number) => (number === 0 ? INTERNAL : undefined);
  expect(await store.write('a', bytesOf('mine'), 'absent')).toBe('tag-0');
  await expect(store.write('a', bytesOf('x'), 'absent')).rejects.toMatchObject({
    kind: 'conflict',
  });
  // Another one replaces it before the second attempt.
  const replaced = new Memory();
  replaced.isLate = true;
  replaced.plan = (_, number) => {
    if (number !== 0) {
      return undefined;
    }
    void Promise.resolve().then(() => replaced.put('a', bytesOf('of another')));
    return INTERNAL;
  };
  const late = openBucket(replaced, '').write('a', bytesOf('mine'), 'absent');
  await expect(late).rejects.toMatchObject({ kind: 'unavailable' });
});

test('a call that is never answered is given up', async () => {
  const bucket = new Memory();
  const store = openBucket(bucket, '', 0, 20);
  const never = () => new Promise<never>(() => {});
  Object.assign(bucket, { get: never, put: never, list: never, delete: never, head: never });
  for (const work of [
    () => store.read('a', 0, 1),
    () => store.readAll('a'),
    () => store.write('a', bytesOf('x'), 'absent'),
    () => store.list(''),
    () => store.remove('a'),
  ]) {
    await expect(work()).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('no answer within 0.02 s'),
    });
  }
});

test('errors that last are told, and those that do not pass in time', async () => {
  const bucket = new Memory();
  const store = openBucket(bucket, '', 0);
  bucket.plan = () => 'put: Your metadata headers exceed the limit. (10012)';
  await expect(store.write('a', bytesOf('x'), 'any')).rejects.toMatchObject({ kind: 'io' });
  bucket.plan = () => INTERNAL;
  for (const work of [
    () => store.read('a', 0, 1),
    () => store.readAll('a'),
    () => store.write('a', bytesOf('x'), 'absent'),
    () => store.list(''),
    () => store.remove('a'),
  ]) {
    await expect(work()).rejects.toMatchObject({ kind: 'unavailable' });
  }
  expect(() => openBucket(bucket, '../shop')).toThrow(expect.objectContaining({ kind: 'io' }));
});

test('the requests of an invocation come to an end, and are counted', async () => {
  const bucket = new Memory();
  bucket.plan = (_, number) => (number < 2 ? undefined : 'Too many subrequests.');
  const store = openBucket(bucket, 'shop');
  await store.write('a', bytesOf('one'), 'any');
  await store.readAll('a');
  for (const work of [
    () => store.read('a', 0, 1),
    () => store.write('b', bytesOf('x'), 'absent'),
  ]) {
    await expect(work()).rejects.toMatchObject({
      kind: 'limit',
      message: expect.stringMatching(/; [34] were made/),
    });
  }
});

test('a call is left when its caller gives it up', async () => {
  const stuck = { get: () => new Promise(() => {}) } as unknown as Bucket;
  const controller = new AbortController();
  const read = openBucket(stuck, '').read('a', 0, 1, controller.signal);
  controller.abort();
  await expect(read).rejects.toMatchObject({ kind: 'cancelled' });
  const late = openBucket(new Memory(), '').readAll('a', controller.signal);
  await expect(late).rejects.toMatchObject({ kind: 'cancelled' });
});
