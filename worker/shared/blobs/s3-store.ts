/**
 * A blob store over `fetch`: S3, and what speaks its protocol.
 *
 * A request that failed may have taken effect. Repeating a write with a condition then meets its own
 * effect, so each such write carries a random number in the metadata of the object, by which it recognises
 * itself; without that, its outcome stays unknown.
 */

import { NacreError, nacreError, toErrorData } from '../errors.js';
import { Attempts, cancelled, change, repeat } from './attempts.js';
import {
  type BlobInfo,
  type BlobStore,
  type WriteIf,
  checkBlobName,
  isBlobName,
} from './blob-store.js';
import { type Around, type SourceStore, encrypted } from './encrypted-store.js';
import {
  type Call,
  Failure,
  type Verb,
  answered,
  blobError,
  brokenOff,
  changes,
  corsHint,
  isTooMany,
  tooMany,
} from './failure.js';
import type { BlobOptions, BlobRequest } from './options.js';
import { Signing, sha256 } from './signing.js';

const IDLE_TIMEOUT_MS = 15_000;
const RETRY_FOR_MS = 5_000;
/** An upload may take so much longer than other requests, because `fetch` does not tell how it gets on. */
const SLOWEST_UPLOAD_BYTES_PER_MS = 16;
/** The header with the random number of a write. */
const NUMBER = 'x-amz-meta-nacrewrite';

/** An answer that reports a success, with its body. */
interface Answer {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

/** What a request consists of, beside its URL. */
interface Parts {
  method: BlobRequest['method'];
  name?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Uint8Array;
}

/**
 * Opens the blob store that a URL names, `s3://bucket/prefix`. Nothing is read or written yet.
 *
 * Errors: `unsupported` for other URLs, and for a key where nothing can be encrypted; `io` for a malformed URL.
 */
export function openBlobs(
  url: string,
  options: BlobOptions = {},
  around: Around = (source) => source,
): BlobStore {
  return encrypted(around(openSource(url, options)), options.encryptionKey);
}

function openSource(url: string, options: BlobOptions): SourceStore {
  const found = /^([a-z0-9]+):\/\/([^/]*)\/?(.*?)\/*$/i.exec(url);
  const [, scheme = '', bucket = '', prefix = ''] = found ?? [];
  if (scheme !== 's3') {
    const message = `${JSON.stringify(url)} is not a blob store that is supported here`;
    throw new NacreError({ kind: 'unsupported', message, hint: 'write s3://bucket/prefix' });
  }
  if (!/^[A-Za-z0-9_.-]+$/.test(bucket) || !(prefix === '' || isBlobName(prefix))) {
    const hint = 'use letters, digits, -, _ and ., and between them slashes in the prefix';
    throw new NacreError({ kind: 'io', message: `${url} names no bucket and prefix`, hint });
  }
  return new S3Store(bucket, prefix, options);
}

class S3Store implements SourceStore {
  readonly requests = { made: 0 };
  readonly #place: string;
  /** Before the names of blobs: empty, or with a slash at its end. */
  readonly #prefix: string;
  /** The URL of the bucket, without a slash at its end. */
  readonly #bucket: string;
  readonly #options: BlobOptions;
  readonly #signing: Signing;

  constructor(bucket: string, prefix: string, options: BlobOptions) {
    const region = options.region ?? 'us-east-1';
    const server = options.endpoint ?? `https://s3.${region}.amazonaws.com`;
    if (!URL.canParse(server) || !/^https?:/.test(server)) {
      throw nacreError('io', `the endpoint ${JSON.stringify(server)} is not a URL`);
    }
    const endpoint = new URL(server);
    const isVirtual = !(
      options.pathStyle ??
      (options.endpoint !== undefined || bucket.includes('.'))
    );
    if (isVirtual) {
      endpoint.hostname = `${bucket}.${endpoint.hostname}`;
    }
    const base = endpoint.href.replace(/\/+$/, '');
    this.#bucket = isVirtual ? base : `${base}/${bucket}`;
    this.#place = prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.#options = options;
    this.#signing = new Signing(options, region);
  }

  read(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    return this.#range(name, start, end, true, signal);
  }

  readTo(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    return this.#range(name, start, end, false, signal);
  }

  /** Reads a range, which must not go beyond the end of the blob if `isExact`. */
  async #range(
    name: string,
    start: number,
    end: number,
    isExact: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    checkBlobName(name);
    if (end <= start) {
      return new Uint8Array();
    }
    const call = this.#call('read', name);
    const headers = { range: `bytes=${start}-${end - 1}` };
    return repeat(this.#attempts(signal), async () => {
      const {
        bytes,
        status,
        headers: got,
      } = await this.#send(call, { method: 'GET', name, headers }, signal);
      if (status !== 206) {
        throw new Failure(blobError('corrupt', call, 'the server ignored the range'));
      }
      // Only where the server's CORS rules show it.
      const range = /^bytes (\d+)-(\d+)\//.exec(got.get('content-range') ?? '');
      const is = range === null ? undefined : [Number(range[1]), Number(range[2]) + 1];
      const until = isExact ? end : Math.min(end, is?.[1] ?? start + bytes.length);
      if (
        bytes.length !== until - start ||
        (is !== undefined && (is[0] !== start || is[1] !== until))
      ) {
        const what = `the server sent ${bytes.length} bytes (${is?.join(' to ') ?? 'of unknown range'}) of those from ${start} to ${end}`;
        throw new Failure(blobError('corrupt', call, what));
      }
      return bytes;
    });
  }

  async readAll(name: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; tag: string }> {
    checkBlobName(name);
    const call = this.#call('read', name);
    return repeat(this.#attempts(signal), async () => {
      const { bytes, headers } = await this.#send(call, { method: 'GET', name }, signal);
      const length = headers.get('content-length');
      if (length !== null && Number(length) !== bytes.length) {
        const what = `the server sent ${bytes.length} bytes of ${length}`;
        throw new Failure(blobError('corrupt', call, what));
      }
      return { bytes, tag: tagOf(call, headers) };
    });
  }

  async write(
    name: string,
    bytes: Uint8Array,
    when: WriteIf,
    signal?: AbortSignal,
  ): Promise<string> {
    checkBlobName(name);
    const call = this.#call(when === 'any' ? 'write' : 'writeIf', name);
    const number = when === 'any' ? '' : crypto.randomUUID().replaceAll('-', '');
    const headers = { ...this.#encryption(), ...conditions(when, number) };
    const parts: Parts = { method: 'PUT', name, headers, body: bytes };
    const written = () => this.#written(name, number, signal);
    return change(this.#attempts(signal), call, async (isUncertain) => {
      try {
        return tagOf(call, (await this.#send(call, parts, signal)).headers);
      } catch (thrown) {
        if (isUncertain && thrown instanceof Failure && thrown.error.kind === 'conflict') {
          return written();
        }
        throw thrown;
      }
    });
  }

  async list(prefix: string, signal?: AbortSignal): Promise<BlobInfo[]> {
    const call = this.#call('list', prefix);
    const listed: BlobInfo[] = [];
    let token: string | undefined;
    do {
      const query = {
        'list-type': '2',
        prefix: `${this.#prefix}${prefix}`,
        ...(token === undefined ? {} : { 'continuation-token': token }),
      };
      const page = await repeat(this.#attempts(signal), async () => {
        const { bytes } = await this.#send(call, { method: 'GET', query }, signal);
        const text = new TextDecoder().decode(bytes);
        if (!text.includes('</ListBucketResult>')) {
          throw new Failure(blobError('corrupt', call, 'the answer is not a listing'));
        }
        return text;
      });
      for (const [, object = ''] of page.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        const key = element(object, 'Key') ?? '';
        const name = key.slice(this.#prefix.length);
        if (key.startsWith(this.#prefix) && isBlobName(name)) {
          const modifiedMs = new Date(element(object, 'LastModified') ?? 0).getTime();
          listed.push({ name, length: Number(element(object, 'Size')), modifiedMs });
        }
      }
      token = element(page, 'NextContinuationToken');
      if (token === undefined && element(page, 'IsTruncated') === 'true') {
        throw blobError('corrupt', call, 'the listing ends too early');
      }
    } while (token !== undefined);
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    checkBlobName(name);
    const call = this.#call('remove', name);
    await change(this.#attempts(signal), call, async () => {
      try {
        await this.#send(call, { method: 'DELETE', name }, signal);
      } catch (thrown) {
        if (!(thrown instanceof Failure && thrown.error.kind === 'not_found')) {
          throw thrown;
        }
      }
    });
  }

  #call(verb: Verb, name: string): Call {
    return { verb, place: this.#place, name };
  }

  #attempts(signal: AbortSignal | undefined): Attempts {
    return new Attempts(this.#options.retryForMs ?? RETRY_FOR_MS, signal);
  }

  #encryption(): Record<string, string> {
    const { encryption } = this.#options;
    const header = 'x-amz-server-side-encryption';
    switch (encryption) {
      case undefined:
        return {};
      case 'managed':
        return { [header]: 'AES256' };
      default:
        return { [header]: 'aws:kms', [`${header}-aws-kms-key-id`]: encryption.kms };
    }
  }

  /** The tag of the blob, if it is there as the write of this number left it. */
  async #written(name: string, number: string, signal: AbortSignal | undefined): Promise<string> {
    const call = this.#call('read', name);
    const { headers } = await repeat(this.#attempts(signal), () =>
      this.#send(call, { method: 'HEAD', name }, signal),
    );
    if (headers.get(NUMBER) !== number) {
      const what = 'it may have been written, and replaced since';
      throw blobError('unavailable', this.#call('writeIf', name), what);
    }
    return tagOf(call, headers);
  }

  /** Sends one request, and reads its answer. Throws a `Failure`. */
  async #send(call: Call, parts: Parts, signal: AbortSignal | undefined): Promise<Answer> {
    const path = parts.name === undefined ? '' : `/${this.#prefix}${parts.name}`;
    const url = new URL(`${this.#bucket}${path}`);
    Object.entries(parts.query ?? {}).forEach(([name, value]) => url.searchParams.set(name, value));
    const { method, body } = parts;
    const headers = { ...this.#options.headers, ...parts.headers };
    const digest = body === undefined ? undefined : await sha256(body);
    const signed = await this.#sign(call, { method, url: url.href, headers }, digest);
    const watch = new Watch(this.#options.idleTimeoutMs ?? IDLE_TIMEOUT_MS, signal);
    try {
      watch.go((body?.length ?? 0) / SLOWEST_UPLOAD_BYTES_PER_MS);
      this.requests.made++;
      const response = await fetch(signed.url, {
        method,
        headers: signed.headers,
        ...(body === undefined ? {} : { body: body as BodyInit }),
        signal: watch.signal,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'manual',
      });
      const bytes = await collect(response, watch);
      if (response.ok) {
        return { status: response.status, headers: response.headers, bytes };
      }
      const failure = this.#refused(call, response, new TextDecoder().decode(bytes));
      const renewable = failure.is.refused === true && this.#signing.refuse(signed);
      throw new Failure(failure.error, { ...failure.is, renewable }, failure.retryAfterMs);
    } catch (thrown) {
      if (thrown instanceof Failure) {
        throw thrown;
      }
      if (signal?.aborted) {
        throw cancelled();
      }
      if (isTooMany(thrown)) {
        throw tooMany(call, thrown, this.requests.made);
      }
      throw brokenOff(
        call,
        watch.isOver ? new Error('nothing was sent or came for too long') : thrown,
      );
    } finally {
      watch.end();
    }
  }

  async #sign(call: Call, request: BlobRequest, digest: string | undefined) {
    try {
      return await this.#signing.sign(request, digest);
    } catch (thrown) {
      // The application's own functions may throw the errors of another script of the package.
      const { kind } = (thrown ?? {}) as Partial<NacreError>;
      if (thrown instanceof NacreError || kind === 'unavailable') {
        const passing = kind === 'unavailable';
        throw new Failure(new NacreError(toErrorData(thrown), { cause: thrown }), { passing });
      }
      const { message = String(thrown) } = thrown as Partial<Error>;
      throw new Failure(
        blobError('io', call, `there are no credentials: ${message}`, undefined, thrown),
      );
    }
  }

  #refused(call: Call, response: Response, body: string): Failure {
    const { headers } = response;
    const date = headers.get('date');
    const skewMs = date === null ? undefined : new Date(date).getTime() - Date.now();
    const code = element(body, 'Code') ?? '';
    if (code === 'RequestTimeTooSkewed' && skewMs !== undefined && this.#signing.noteSkew(skewMs)) {
      // Signed anew with the server's time. Nothing has changed.
      const error = blobError(
        'unavailable',
        call,
        "this machine's clock differs from the server's",
      );
      return new Failure(error, { passing: true });
    }
    return answered(call, {
      status: response.type === 'opaqueredirect' ? 301 : response.status,
      code,
      message: element(body, 'Message') ?? '',
      region: headers.get('x-amz-bucket-region') ?? element(body, 'Region'),
      retryAfterMs: Number(headers.get('retry-after') ?? 0) * 1000 || 0,
      skewMs,
    });
  }
}

/** The headers of a write with a condition. */
function conditions(when: WriteIf, number: string): Record<string, string> {
  if (when === 'any') {
    return {};
  }
  const condition: Record<string, string> =
    when === 'absent' ? { 'if-none-match': '*' } : { 'if-match': when.tag };
  return { ...condition, [NUMBER]: number };
}

function tagOf(call: Call, headers: Headers): string {
  const tag = headers.get('etag');
  if (tag !== null) {
    return tag;
  }
  const error = blobError(
    changes(call.verb) ? 'unavailable' : 'io',
    call,
    'the server sent no tag, or its CORS rules hide it',
    corsHint(),
  );
  throw new Failure(error, { uncertain: changes(call.verb) });
}

/** Aborts a request that stands still, or that its caller gives up. */
class Watch {
  readonly #controller = new AbortController();
  readonly #idleMs: number;
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = () => this.#controller.abort();
  /** Whether it stood still for too long. */
  isOver = false;
  /** Fails when the request is aborted. */
  readonly over: Promise<never>;

  constructor(idleMs: number, outer: AbortSignal | undefined) {
    this.#idleMs = idleMs;
    this.#outer = outer;
    this.over = new Promise((_, reject) => {
      this.signal.addEventListener('abort', () => reject(cancelled()));
    });
    this.over.catch(() => {});
    if (outer?.aborted) {
      this.#abort();
    }
    outer?.addEventListener('abort', this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something moved: from here on, it may stand still for its time and `more` milliseconds. */
  go(more = 0): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#abort();
    }, this.#idleMs + more);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#abort);
  }
}

/** Reads the body of an answer. */
async function collect(response: Response, watch: Watch): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (;;) {
    watch.go();
    const part = await Promise.race([reader?.read(), watch.over]);
    if (part?.value === undefined) {
      break;
    }
    parts.push(part.value);
    length += part.value.length;
  }
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) {
    return first;
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The text of an element of XML that has no elements inside. */
function element(text: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
  const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
  return found?.replace(/&(lt|gt|amp|quot|apos);/g, (_, entity: string) => entities[entity] ?? '');
}
