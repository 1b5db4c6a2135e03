/**
 * A stand-in for an S3 server, for tests and examples: objects in memory, conditional writes, ranges, listings,
 * CORS. It looks at the access key and the session token of a request, but does not verify signatures.
 */

import { createHash, randomUUID } from 'node:crypto';
import * as http from 'node:http';

const CORS = {
  'access-control-allow-methods': 'GET, HEAD, PUT, DELETE',
  'access-control-allow-headers': '*',
  'access-control-expose-headers': 'ETag, Date, x-amz-meta-nacrewrite',
};

/**
 * Starts a server on this machine. `origin` may use it from a page; `null` for none. `refuse` answers a code
 * of S3 for what it refuses, given the method, the access key and the session token; `delayMs` passes before
 * each answer. With `server`, the URL of a real server, that one has the objects, and answers what is not refused.
 */
export async function startS3({
  origin = '*',
  refuse = () => null,
  delayMs = 0,
  server: real,
} = {}) {
  /** By bucket and key: the bytes, the headers of metadata, the tag, the date. */
  const objects = new Map();
  const requests = [];
  const state = { isAway: false, refuse, delayMs };
  /** What the real server has not answered yet. */
  const passed = new Set();
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://localhost');
      requests.push(`${request.method} ${url.pathname}`);
      if (state.isAway) {
        request.socket.destroy();
        return;
      }
      const send = () =>
        answer(request, url, Buffer.concat(parts), response, {
          objects,
          origin,
          state,
          real,
          passed,
        });
      state.delayMs > 0 ? setTimeout(send, state.delayMs) : send();
    });
  });
  await new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    objects,
    /** What was asked for, as `GET /bucket/key`. */
    requests,
    /** Whether it is away, what it refuses, and how slow it is, from now on. */
    state,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(passed);
    },
  };
}

function answer(request, url, body, response, { objects, origin, state, real, passed }) {
  const { method = '', headers } = request;
  const cors = origin === null ? {} : { 'access-control-allow-origin': origin, ...CORS };
  const reply = (status, content = '', more = {}) => {
    response.writeHead(status, { ...cors, 'content-length': content.length, ...more });
    response.end(method === 'HEAD' ? '' : content);
  };
  const fail = (status, code) =>
    reply(status, `<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
  if (method === 'OPTIONS' && real === undefined) {
    reply(origin === null ? 403 : 204);
    return;
  }
  const code = method === 'OPTIONS' ? null : state.refuse(method, ...signedBy(url, headers));
  if (code !== null) {
    fail(code === 'NoSuchBucket' ? 404 : 403, code);
    return;
  }
  if (real !== undefined) {
    const forwarded = forward(request, url, body, response, real)
      .catch(() => request.socket.destroy())
      .finally(() => passed.delete(forwarded));
    passed.add(forwarded);
    return;
  }
  const key = decodeURIComponent(url.pathname.slice(1));
  if (method === 'GET' && url.searchParams.get('list-type') === '2') {
    reply(200, listing(objects, `${key}/`, url.searchParams.get('prefix') ?? ''));
    return;
  }
  const found = objects.get(key);
  if (method === 'PUT') {
    const { 'if-none-match': absent, 'if-match': tag } = headers;
    if ((absent === '*' && found !== undefined) || (tag !== undefined && tag !== found?.tag)) {
      fail(412, 'PreconditionFailed');
      return;
    }
    const hash = createHash('md5').update(body).digest('hex');
    const number = headers['x-amz-meta-nacrewrite'];
    const written = { bytes: body, tag: `"${hash}"`, number, modified: new Date() };
    objects.set(key, written);
    reply(200, '', { etag: written.tag });
    return;
  }
  if (method === 'DELETE') {
    objects.delete(key);
    reply(204);
    return;
  }
  if (found === undefined) {
    fail(404, 'NoSuchKey');
    return;
  }
  const more = { etag: found.tag, 'x-amz-request-id': randomUUID() };
  if (found.number !== undefined) {
    more['x-amz-meta-nacrewrite'] = found.number;
  }
  const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '');
  if (range === null) {
    reply(200, found.bytes, more);
    return;
  }
  const [from, to] = [Number(range[1]), Math.min(Number(range[2]) + 1, found.bytes.length)];
  if (from >= found.bytes.length) {
    fail(416, 'InvalidRange');
    return;
  }
  more['content-range'] = `bytes ${from}-${to - 1}/${found.bytes.length}`;
  reply(206, found.bytes.subarray(from, to), more);
}

/** Passes a request on, until it is answered. Its signature is for the host that it came to, which stays. */
async function forward(request, url, body, response, real) {
  const { hostname, port } = new URL(real);
  const { method } = request;
  const [, token] = signedBy(url, request.headers);
  const { path, headers } =
    token === null
      ? { path: request.url, headers: request.headers }
      : await resigned(request, url, body);
  const sent = http.request({ hostname, port, method, path, headers }, (answered) => {
    response.writeHead(answered.statusCode, answered.headers);
    answered.pipe(response);
  });
  sent.on('error', () => request.socket.destroy());
  sent.end(body);
  await new Promise((resolve) => sent.on('close', resolve));
}

/** A request with a session token, signed without one: the real server issues none. */
async function resigned({ method, headers: given }, url, body) {
  const { AwsClient } = await import('aws4fetch');
  const credentials = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
  const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1' });
  const kept = Object.entries(given).filter(([name]) =>
    /^(origin|range|if-|x-amz-meta-|access-control-)/.test(name),
  );
  const at = new URL(url.pathname, `http://${given.host}`);
  url.searchParams.forEach((value, name) => {
    if (!name.startsWith('X-Amz-')) {
      at.searchParams.set(name, value);
    }
  });
  const sent = method === 'PUT' ? { body } : {};
  const signed = await client.sign(at, { method, headers: Object.fromEntries(kept), ...sent });
  const length = { host: given.host, 'content-length': body.length };
  return {
    path: at.pathname + at.search,
    headers: { ...Object.fromEntries(signed.headers), ...Object.fromEntries(kept), ...length },
  };
}

/** The access key and the session token with which a request is signed, if it is. */
function signedBy(url, headers) {
  const inHeader = /Credential=([^/]+)\//.exec(headers.authorization ?? '')?.[1];
  const inUrl = url.searchParams.get('X-Amz-Credential')?.split('/')[0];
  const token = headers['x-amz-security-token'] ?? url.searchParams.get('X-Amz-Security-Token');
  return [inHeader ?? inUrl ?? null, token ?? null];
}

function listing(objects, bucket, prefix) {
  const entries = [...objects]
    .filter(([key]) => key.startsWith(`${bucket}${prefix}`))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([key, { bytes, modified }]) =>
        `<Contents><Key>${key.slice(bucket.length)}</Key><Size>${bytes.length}</Size>` +
        `<LastModified>${modified.toISOString()}</LastModified></Contents>`,
    );
  return `<ListBucketResult><IsTruncated>false</IsTruncated>${entries.join('')}</ListBucketResult>`;
}
