import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { NacreError } from '../errors.js';
import type { BlobOptions } from './options.js';
import { openBlobs } from './s3-store.js';

interface Sent {
  method: string;
  url: URL;
  headers: Headers;
  body: Uint8Array | undefined;
}

type Handler = (request: Sent, number: number) => Response | Promise<Response>;

const KEY = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
const CONTENT = '0123456789';

let sent: Sent[] = [];
let handler: Handler;

beforeEach(() => {
  sent = [];
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const request = {
      method: init.method ?? 'GET',
      url: new URL(url),
      headers: new Headers(init.headers),
      body: init.body as Uint8Array | undefined,
    };
    sent.push(request);
    init.signal?.throwIfAborted();
    return handler(request, sent.length - 1);
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

const open = (options: BlobOptions = {}) =>
  openBlobs('s3://bucket/shop', {
    endpoint: 'http://server.test:9000',
    credentials: KEY,
    retryForMs: 5_000,
    ...options,
  });

const once = (options: BlobOptions = {}) => open({ retryForMs: 0, ...options });

const ok = (body = '', headers: Record<string, string> = { etag: '"new"' }) =>
  new Response(body, { headers });

const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  new Response(`<Error><Code>${code}</Code><Message>as told</Message></Error>`, {
    status,
    headers,
  });

/** An object, or the part of it that is asked for. */
function object(request: Sent): Response {
  const content = CONTENT;
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '');
  if (range === null) {
    return ok(content, { etag: '"tag"' });
  }
  const start = Number(range[1]);
  const part = content.slice(start, Number(range[2]) + 1);
  const headers = {
    etag: '"tag"',
    'content-range': `bytes ${start}-${start + part.length - 1}/${content.length}`,
  };
  return new Response(part, { status: 206, headers });
}

async function failure(work: Promise<unknown>): Promise<NacreError> {
  const error: unknown = await work.then(
    () => 'it succeeded',
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(NacreError);
  return error as NacreError;
}

const bytes = new TextEncoder().encode(CONTENT);
const calls: Record<string, (store: ReturnType<typeof open>) => Promise<unknown>> = {
  read: (store) => store.read('a', 0, 4),
  readAll: (store) => store.readAll('a'),
  list: (store) => store.list(''),
  remove: (store) => store.remove('a'),
  write: (store) => store.write('a', bytes, 'any'),
  create: (store) => store.write('a', bytes, 'absent'),
  update: (store) => store.write('a', bytes, { tag: '"tag"' }),
};

test.each([
  ['read', 404, 'NoSuchKey', 'not_found', ''],
  ['read', 404, 'NoSuchBucket', 'io', 'create the bucket'],
  ['list', 404, 'NoSuchBucket', 'io', 'create the bucket'],
  ['update', 404, 'NoSuchBucket', 'io', 'create the bucket'],
  ['read', 404, 'NoSuchUser', 'io', 'check the endpoint'],
  ['create', 412, 'PreconditionFailed', 'conflict', ''],
  ['update', 404, 'NoSuchKey', 'conflict', ''],
  ['create', 409, 'ConditionalRequestConflict', 'unavailable', ''],
  ['read', 416, 'InvalidRange', 'corrupt', ''],
  ['write', 403, 'AccessDenied', 'io', 'need the rights'],
  ['list', 403, 'InvalidAccessKeyId', 'io', 'check the credentials'],
  ['read', 400, 'ExpiredToken', 'io', 'no longer valid'],
  ['read', 400, 'InvalidRequest', 'io', ''],
  ['read', 400, 'RequestTimeout', 'unavailable', ''],
  ['list', 429, '', 'unavailable', ''],
  ['read', 500, 'InternalError', 'unavailable', ''],
  ['write', 503, 'SlowDown', 'unavailable', ''],
  ['create', 501, 'NotImplemented', 'io', 'conditional writes'],
])('%s that is answered %i %s is %s', async (what, status, code, kind, hint) => {
  handler = () => refusal(status, code);
  const error = await failure(calls[what]?.(once()) ?? Promise.resolve());
  expect(error.kind).toBe(kind);
  expect(error.hint ?? '').toContain(hint);
  expect(error.message).toContain('s3://bucket/shop/');
  expect(sent).toHaveLength(1);
});

test('removing what is not there is no error', async () => {
  handler = () => refusal(404, 'NoSuchKey');
  await once().remove('a');
});

test('another region is named', async () => {
  handler = () =>
    new Response('', { status: 301, headers: { 'x-amz-bucket-region': 'eu-west-3' } });
  expect((await failure(once().readAll('a'))).hint).toContain('eu-west-3');
});

test.each([
  ['the whole', () => ok(CONTENT)],
  [
    'other bytes',
    () => new Response('3456', { status: 206, headers: { 'content-range': 'bytes 3-6/10' } }),
  ],
  ['fewer bytes', () => new Response('234', { status: 206 })],
  ['more bytes', () => new Response('23456', { status: 206 })],
])('a range that is answered with %s is corrupt', async (_, answer) => {
  handler = answer;
  expect((await failure(once().read('a', 2, 6))).kind).toBe('corrupt');
});

test('a listing that is none is corrupt, and foreign names are left out', async () => {
  handler = () => ok('<html>Please log in</html>');
  expect((await failure(once().list(''))).kind).toBe('corrupt');
  handler = () => {
    const entry = (key: string) =>
      `<Contents><Key>${key}</Key><Size>7</Size><LastModified>1994-11-06T08:49:37.000Z</LastModified></Contents>`;
    const entries = ['shop/b', 'shop/a', 'shop/a &amp; b', 'shop/.x', 'other/c']
      .map(entry)
      .join('');
    return ok(`<ListBucketResult>${entries}</ListBucketResult>`);
  };
  const listed = await once().list('');
  expect(listed.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(listed[0]).toMatchObject({ length: 7, modifiedMs: 784_111_777_000 });
});

test('a listing goes on where it was cut, and is corrupt if it does not say where', async () => {
  const page = (name: string, rest: string) =>
    ok(
      `<ListBucketResult>${rest}<Contents><Key>shop/${name}</Key><Size>1</Size></Contents></ListBucketResult>`,
    );
  const cut = '<IsTruncated>true</IsTruncated>';
  handler = ({ url }) =>
    url.searchParams.get('continuation-token') === 'a+b/='
      ? page('b', '<IsTruncated>false</IsTruncated>')
      : page('a', `${cut}<NextContinuationToken>a+b/=</NextContinuationToken>`);
  expect((await once().list('')).map(({ name }) => name)).toEqual(['a', 'b']);
  handler = () => page('a', cut);
  expect((await failure(once().list(''))).kind).toBe('corrupt');
});

test('calls are repeated until their time is over', async () => {
  handler = (request, number) => (number < 3 ? refusal(503, 'SlowDown') : object(request));
  expect(await open().read('a', 0, 4)).toEqual(bytes.subarray(0, 4));
  expect(sent).toHaveLength(4);
  handler = () => refusal(503, 'SlowDown');
  const error = await failure(open({ retryForMs: 300 }).read('a', 0, 4));
  expect(error.kind).toBe('unavailable');
  expect(error.message).toContain(`gave up after ${sent.length - 4} attempts`);
});

test('a call can be cancelled while it waits', async () => {
  handler = () => refusal(503, 'SlowDown', { 'retry-after': '3' });
  const controller = new AbortController();
  const reading = failure(open().read('a', 0, 4, controller.signal));
  setTimeout(() => controller.abort(), 20);
  expect((await reading).kind).toBe('cancelled');
  expect(sent).toHaveLength(1);
  expect((await failure(open().read('a', 0, 4, controller.signal))).kind).toBe('cancelled');
});

test('a body that stands still is given up', async () => {
  handler = (request) => {
    const part = object(request);
    const stuck = new ReadableStream({
      start(controller) {
        controller.enqueue(bytes.subarray(0, 2));
      },
    });
    return new Response(stuck, { status: part.status, headers: part.headers });
  };
  // This body knows nothing of the signal, so that the store must not wait for it.
  const error = await failure(once({ idleTimeoutMs: 50 }).read('a', 0, 4));
  expect(error.kind).toBe('unavailable');
});

test('a request that fails explains CORS in a page', async () => {
  handler = () => {
    throw new TypeError('Failed to fetch');
  };
  const error = await failure(once().readAll('a'));
  expect(error.kind).toBe('unavailable');
  expect(error.message).toContain('Failed to fetch');
  if (typeof location !== 'undefined') {
    expect(error.hint).toContain(location.origin);
    expect(error.hint).toContain('expose ETag');
  }
});

const numberOf = (request: Sent | undefined) => request?.headers.get('x-amz-meta-nacrewrite');

/** The answer to the first write is lost after it took effect. */
function losesAnAnswer(number: () => string, second: number): Handler {
  return (request, at) => {
    if (request.method !== 'PUT') {
      return ok('', { etag: '"kept"', 'x-amz-meta-nacrewrite': number() });
    }
    if (at === 0) {
      throw new TypeError('network error');
    }
    return refusal(second, 'Code');
  };
}

test('what the platform refuses to send is a limit, and not repeated', async () => {
  handler = (_, number) => {
    if (number > 0) {
      throw new Error('Too many subrequests by single Worker invocation.');
    }
    return ok(CONTENT);
  };
  const store = open();
  await store.readAll('a');
  await expect(store.readAll('a')).rejects.toMatchObject({
    kind: 'limit',
    message: expect.stringContaining('2 were made'),
  });
  expect(sent).toHaveLength(2);
});

test('a write whose answer was lost is recognised', async () => {
  handler = losesAnAnswer(() => numberOf(sent[0]) ?? '', 412);
  expect(await open().write('a', bytes, 'absent')).toBe('"kept"');
  expect(sent.map(({ method }) => method)).toEqual(['PUT', 'PUT', 'HEAD']);
  expect(numberOf(sent[0])).toBe(numberOf(sent[1]));
  expect(sent[0]?.headers.get('if-none-match')).toBe('*');
});

test('a write that may have taken effect never ends as if it had not', async () => {
  handler = losesAnAnswer(() => 'other', 412);
  expect((await failure(open().write('a', bytes, 'absent'))).kind).toBe('unavailable');
  sent = [];
  handler = losesAnAnswer(() => '', 403);
  const error = await failure(open().write('a', bytes, 'absent'));
  expect(error.kind).toBe('unavailable');
  expect(error.message).toContain('may have taken effect');
  handler = () => ok('', {});
  expect((await failure(once().write('a', bytes, 'any'))).kind).toBe('unavailable');
});

const signedBy = ({ url, headers }: Sent) =>
  url.searchParams.get('X-Amz-Credential') ?? headers.get('authorization') ?? '';

test('reads are signed in the URL, and changes in headers', async () => {
  handler = (request) => (request.method === 'GET' ? object(request) : ok());
  const store = open({
    region: 'eu-west-3',
    headers: { 'X-Tenant': 'blue' },
    encryption: 'managed',
  });
  await store.read('a', 0, 4);
  await store.write('a', bytes, { tag: '"tag"' });
  const [get, put] = sent as [Sent, Sent];
  expect(get.url.searchParams.get('X-Amz-Credential')).toMatch(/^tester\/\d{8}\/eu-west-3\/s3\//);
  expect(get.headers.get('authorization')).toBeNull();
  expect(get.url.pathname).toBe('/bucket/shop/a');
  expect(put.headers.get('authorization')).toMatch(
    /SignedHeaders=.*x-amz-meta-nacrewrite.*x-tenant/,
  );
  expect(put.headers.get('x-amz-content-sha256')).toMatch(/^[0-9a-f]{64}$/);
  expect(put.headers.get('x-amz-server-side-encryption')).toBe('AES256');
  expect(put.headers.get('if-match')).toBe('"tag"');
  expect(put.body).toEqual(bytes);
});

test('without credentials nothing is signed', async () => {
  handler = object;
  await openBlobs('s3://bucket', { endpoint: 'http://server.test' }).readAll('a');
  expect(sent[0]?.url.href).toBe('http://server.test/bucket/a');
  expect(sent[0]?.headers.get('authorization')).toBeNull();
});

test('the bucket is part of the host where it is asked for, or the server is Amazon', async () => {
  handler = object;
  await open({ pathStyle: false }).readAll('a');
  await openBlobs('s3://bucket', { region: 'eu-west-3' }).readAll('a');
  await openBlobs('s3://b.c').readAll('a');
  expect(sent.map(({ url }) => `${url.origin}${url.pathname}`)).toEqual([
    'http://bucket.server.test:9000/shop/a',
    'https://bucket.s3.eu-west-3.amazonaws.com/a',
    'https://s3.us-east-1.amazonaws.com/b.c/a',
  ]);
});

test('a function is asked once while its credentials hold, and shared by calls at the same time', async () => {
  handler = object;
  const credentials = vi.fn(async () => ({
    ...KEY,
    sessionToken: 'token',
    expires: Date.now() + 3_600_000,
  }));
  const store = open({ credentials });
  await Promise.all([store.readAll('a'), store.readAll('a')]);
  await store.readAll('a');
  expect(credentials).toHaveBeenCalledTimes(1);
  expect(sent[2]?.url.searchParams.get('X-Amz-Security-Token')).toBe('token');
});

test('a function is asked again before its credentials expire', async () => {
  handler = object;
  const credentials = vi.fn(() => ({
    ...KEY,
    expires: new Date(Date.now() + 30_000).toISOString(),
  }));
  const store = open({ credentials });
  await store.readAll('a');
  await store.readAll('a');
  expect(credentials).toHaveBeenCalledTimes(2);
});

test.each([
  [403, 'AccessDenied'],
  [400, 'ExpiredToken'],
  [401, ''],
])('a function is asked again after %i %s', async (status, code) => {
  handler = (request) =>
    signedBy(request).includes('old') ? refusal(status, code) : object(request);
  const names = ['old', 'new'];
  const credentials = vi.fn(() => ({ ...KEY, accessKeyId: names.shift() ?? 'more' }));
  const store = open({ credentials });
  await store.readAll('a');
  await store.readAll('a');
  expect(credentials).toHaveBeenCalledTimes(2);
  expect(sent).toHaveLength(3);
});

test('credentials that stay refused are an error after one more attempt', async () => {
  handler = () => refusal(403, 'AccessDenied');
  const credentials = vi.fn(() => KEY);
  expect((await failure(open({ credentials }).readAll('a'))).kind).toBe('io');
  expect(credentials).toHaveBeenCalledTimes(2);
  expect((await failure(open().readAll('a'))).kind).toBe('io');
  expect(sent).toHaveLength(3);
});

test('the error of a function is that of the call', async () => {
  const credentials = () => Promise.reject(new Error('the key server has no key'));
  const error = await failure(open({ credentials }).readAll('a'));
  expect(error.kind).toBe('io');
  expect(error.message).toContain('no key');
  expect(sent).toHaveLength(0);
});

test('an application signs URLs itself, and anew after a refusal', async () => {
  handler = (request) =>
    request.url.searchParams.get('sig') === '1' ? refusal(403, 'AccessDenied') : object(request);
  let count = 0;
  const presign = vi.fn(({ url }: { url: string }) => `${url}?sig=${++count}`);
  const store = open({ credentials: undefined, presign });
  await store.read('a', 0, 4);
  expect(presign.mock.calls[0]?.[0]).toMatchObject({
    method: 'GET',
    url: 'http://server.test:9000/bucket/shop/a',
  });
  expect(sent.map(({ url }) => url.search)).toEqual(['?sig=1', '?sig=2']);
});

test('a wrong clock is corrected by that of the server', async () => {
  const ahead = 3 * 3_600_000;
  handler = (request) => {
    const date = request.url.searchParams.get('X-Amz-Date') ?? '';
    const at = Date.parse(date.replace(/(....)(..)(..T..)(..)/, '$1-$2-$3:$4:'));
    const skew = Math.abs(at - Date.now() - ahead);
    const headers = { date: new Date(Date.now() + ahead).toUTCString() };
    return skew < 60_000 ? object(request) : refusal(403, 'RequestTimeTooSkewed', headers);
  };
  await open().readAll('a');
  await open().readAll('a');
  handler = () => refusal(403, 'RequestTimeTooSkewed');
  expect((await failure(open().readAll('a'))).hint).toContain('clock');
});

test('a tag that CORS hides is an error that says so', async () => {
  handler = () => ok(CONTENT, {});
  const error = await failure(once().readAll('a'));
  expect(error.kind).toBe('io');
  expect(error.message).toContain('CORS');
});

test.each(['', 'bucket', 'gs://b/p', 'http://b/p'])('%j is unsupported', (url) => {
  expect(() => openBlobs(url)).toThrowError(expect.objectContaining({ kind: 'unsupported' }));
});

test.each(['s3://', 's3:///p', 's3://b?x', 's3://b/p//q', 's3://b/../x'])(
  '%j is malformed',
  (url) => {
    expect(() => openBlobs(url)).toThrowError(expect.objectContaining({ kind: 'io' }));
    expect(() => openBlobs('s3://b', { endpoint: 'nowhere' })).toThrowError(/not a URL/);
  },
);

test('names are checked before anything is sent', async () => {
  for (const call of [
    open().read('../a', 0, 1),
    open().write('a b', bytes, 'any'),
    open().remove('/'),
  ]) {
    expect((await failure(call)).kind).toBe('io');
  }
  expect(sent).toHaveLength(0);
});
