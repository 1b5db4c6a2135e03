import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';
import { startGateway } from '../../tools/versitygw.mjs';
import { checkBlobStore } from '../shared/blobs/contract.js';
import type { BlobOptions } from '../shared/blobs/options.js';
import { openBlobs } from '../shared/blobs/s3-store.js';

type Trouble = 'fails' | 'slow down' | 'no request' | 'no answer' | 'fails late' | 'cut' | 'stuck';

const TROUBLES: Trouble[] = [
  'fails',
  'slow down',
  'no request',
  'no answer',
  'fails late',
  'cut',
  'stuck',
];

let gateway: Awaited<ReturnType<typeof startGateway>> = null;
let proxies: http.Server[] = [];
let prefixes = 0;

beforeAll(async () => {
  gateway = await startGateway();
}, 600_000);

// The server may have left thousands of files.
afterAll(() => gateway?.stop(), 60_000);

afterEach(() => {
  for (const proxy of proxies) {
    proxy.closeAllConnections();
    proxy.close();
  }
  proxies = [];
});

/** Opens a new prefix. */
function open(endpoint: string, options: BlobOptions = {}) {
  const { credentials } = gateway as NonNullable<typeof gateway>;
  return openBlobs(`s3://bucket/js/${prefixes++}`, {
    endpoint,
    credentials,
    idleTimeoutMs: 500,
    retryForMs: 10_000,
    ...options,
  });
}

/** A proxy in front of the server, which misbehaves as `plan` says. */
async function proxyOf(
  plan: (method: string, number: number) => Trouble | undefined,
): Promise<string> {
  const { endpoint } = gateway as NonNullable<typeof gateway>;
  let count = 0;
  const proxy = http.createServer((request, answer) => {
    const trouble = plan(request.method ?? '', count++);
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (trouble === 'fails' || trouble === 'slow down') {
        answer.writeHead(trouble === 'fails' ? 500 : 503).end();
        return;
      }
      if (trouble === 'no request') {
        request.socket.destroy();
        return;
      }
      const { method, headers, url = '' } = request;
      const passed = http.request(`${endpoint}${url}`, { method, headers }, (response) => {
        const body: Buffer[] = [];
        response.on('data', (part: Buffer) => body.push(part));
        response.on('end', () => {
          const bytes = Buffer.concat(body);
          if (trouble === 'no answer') {
            request.socket.destroy();
          } else if (trouble === 'fails late') {
            answer.writeHead(500).end();
          } else if (trouble !== 'stuck') {
            answer.writeHead(response.statusCode ?? 500, response.headers);
            if (trouble === 'cut' && bytes.length > 1) {
              answer.write(bytes.subarray(0, bytes.length / 2), () => request.socket.destroy());
            } else {
              answer.end(bytes);
            }
          }
        });
      });
      passed.on('error', () => request.socket.destroy());
      passed.end(Buffer.concat(parts));
    });
  });
  proxies.push(proxy);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('the stand-in that other tests use keeps the contract', { timeout: 60_000 }, async () => {
  const s3 = await startS3();
  const credentials = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
  try {
    await checkBlobStore(() =>
      openBlobs(`s3://bucket/js/${prefixes++}`, { endpoint: s3.endpoint, credentials }),
    );
  } finally {
    await s3.stop();
  }
});

test('a real server keeps the contract', { timeout: 120_000 }, async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  const { endpoint } = gateway;
  await checkBlobStore(() => open(endpoint));
});

test('blobs that are encrypted keep the contract', { timeout: 120_000 }, async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  const { endpoint } = gateway;
  const encryptionKey = crypto.getRandomValues(new Uint8Array(32));
  await checkBlobStore(() => open(endpoint, { encryptionKey }));
});

test(
  'a real server behind a bad network keeps the contract',
  { timeout: 240_000 },
  async (context) => {
    if (gateway === null) {
      return context.skip();
    }
    let troubles = 0;
    const endpoint = await proxyOf((_, number) => {
      if (number % 25 !== 7) {
        return undefined;
      }
      troubles++;
      return TROUBLES[Math.floor(number / 25) % TROUBLES.length];
    });
    await checkBlobStore(() => open(endpoint));
    expect(troubles).toBeGreaterThan(40);
  },
);

test.for(TROUBLES)('every call survives "%s"', { timeout: 60_000 }, async (trouble, context) => {
  if (gateway === null) {
    return context.skip();
  }
  const endpoint = await proxyOf((_, number) => (number % 3 === 0 ? trouble : undefined));
  const store = open(endpoint);
  const bytes = new TextEncoder().encode('one');
  const tag = await store.write('a', bytes, 'absent');
  await store.write('a', new TextEncoder().encode('two'), { tag });
  expect(new TextDecoder().decode(await store.read('a', 1, 3))).toBe('wo');
  await store.write('b', bytes, 'any');
  expect((await store.list('')).map(({ name }) => name)).toEqual(['a', 'b']);
  await store.remove('a');
  await expect(store.readAll('a')).rejects.toMatchObject({ kind: 'not_found' });
});

test('wrong credentials and buckets are named', async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  const { endpoint } = gateway;
  for (const credentials of [
    { accessKeyId: 'tester', secretAccessKey: 'wrong' },
    { accessKeyId: 'stranger', secretAccessKey: 'x' },
    undefined,
  ]) {
    const store = open(endpoint, { credentials });
    for (const call of [
      () => store.readAll('a'),
      () => store.list(''),
      () => store.write('a', new Uint8Array(1), 'any'),
    ]) {
      await expect(call()).rejects.toMatchObject({ kind: 'io', hint: expect.any(String) });
    }
  }
  const store = openBlobs('s3://no-such-bucket', { endpoint, credentials: gateway.credentials });
  for (const call of [
    () => store.readAll('a'),
    () => store.list(''),
    () => store.write('a', new Uint8Array(1), 'absent'),
  ]) {
    await expect(call()).rejects.toMatchObject({
      kind: 'io',
      hint: expect.stringContaining('bucket'),
    });
  }
});

test('a server that is not there is unavailable', async () => {
  const store = openBlobs('s3://bucket', { endpoint: 'http://127.0.0.1:1', retryForMs: 0 });
  await expect(store.readAll('a')).rejects.toMatchObject({ kind: 'unavailable' });
});
