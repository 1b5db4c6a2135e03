/**
 * A blob store in a bucket of R2 that is bound to a Worker: without credentials, and not over the network
 * of the Worker's own requests.
 *
 * A call that failed may have taken effect. Repeating a write with a condition then meets its own effect, so
 * each such write carries a random number in the metadata of the object, by which it recognises itself.
 */

import { NacreError } from '../shared/errors.js';
import { Attempts, cancelled, change, repeat } from '../shared/blobs/attempts.js';
import {
  type BlobInfo,
  type WriteIf,
  checkBlobName,
  isBlobName,
} from '../shared/blobs/blob-store.js';
import type { SourceStore } from '../shared/blobs/encrypted-store.js';
import {
  type Call,
  Failure,
  type Verb,
  blobError,
  changes,
  isTooMany,
  tooMany,
} from '../shared/blobs/failure.js';

/** What is known of an object. */
interface Found {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly uploaded: Date;
  readonly customMetadata?: Record<string, string>;
}

/** A bucket as a Worker has it in its environment. */
export interface Bucket {
  get(
    key: string,
    options?: { range: { offset: number; length: number } },
  ): Promise<(Found & { arrayBuffer(): Promise<ArrayBuffer> }) | null>;
  head(key: string): Promise<Found | null>;
  put(
    key: string,
    value: ArrayBufferView,
    options?: {
      onlyIf?: { etagMatches?: string; etagDoesNotMatch?: string };
      customMetadata?: Record<string, string>;
    },
  ): Promise<Found | null>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; cursor?: string }): Promise<{
    objects: Found[];
    truncated: boolean;
    cursor?: string;
  }>;
}

const RETRY_FOR_MS = 5_000;
/** A call of the bucket that has not ended after this time is given up: it may have taken effect. */
const TIMEOUT_MS = 20_000;
/** The metadata with the random number of a write. */
const NUMBER = 'nacrewrite';
/** Errors that may pass: of the service, of the network, and too many calls. Others have another number. */
const PASSING = /\((?:10001|10043|10054|10058)\)/;
const ANY_NUMBER = /\(\d{5,}\)/;

/**
 * Opens the folder below a prefix of a bucket. Nothing is read or written yet.
 *
 * Errors: `io` for a prefix that cannot be.
 */
export function openBucket(
  bucket: Bucket,
  prefix: string,
  retryForMs: number = RETRY_FOR_MS,
  timeoutMs: number = TIMEOUT_MS,
): SourceStore {
  const trimmed = prefix.replace(/\/+$/, '');
  if (trimmed !== '' && !isBlobName(trimmed)) {
    const hint = 'use letters, digits, -, _ and ., and between them slashes';
    throw new NacreError({ kind: 'io', message: `${prefix} cannot be a prefix of blobs`, hint });
  }
  return new BucketStore(bucket, trimmed, retryForMs, timeoutMs);
}

class BucketStore implements SourceStore {
  readonly requests = { made: 0 };
  readonly #bucket: Bucket;
  /** Before the names of blobs: empty, or with a slash at its end. */
  readonly #prefix: string;
  readonly #retryForMs: number;
  readonly #timeoutMs: number;

  constructor(bucket: Bucket, prefix: string, retryForMs: number, timeoutMs: number) {
    this.#bucket = bucket;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.#retryForMs = retryForMs;
    this.#timeoutMs = timeoutMs;
  }

  async read(name: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    const bytes = await this.readTo(name, start, end, signal);
    if (bytes.length < end - start) {
      const what = `the blob ends at byte ${start + bytes.length}, before byte ${end}`;
      throw blobError('corrupt', this.#call('read', name), what);
    }
    return bytes;
  }

  async readTo(
    name: string,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    checkBlobName(name);
    if (end <= start) {
      return new Uint8Array();
    }
    const call = this.#call('read', name);
    const length = end - start;
    return repeat(this.#attempts(signal), async () => {
      const { bytes, size } = await this.#get(call, signal, { offset: start, length }).catch(
        (failure: unknown) => this.#explained(call, signal, start, failure),
      );
      const expected = Math.min(end, size) - start;
      if (bytes.length !== expected || expected <= 0) {
        const what = `bytes ${start} to ${end} of ${size} were asked for, and ${bytes.length} came`;
        throw new Failure(blobError('corrupt', call, what));
      }
      return bytes;
    });
  }

  async readAll(name: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; tag: string }> {
    checkBlobName(name);
    const call = this.#call('read', name);
    return repeat(this.#attempts(signal), async () => {
      const { bytes, size, tag } = await this.#get(call, signal);
      if (bytes.length !== size) {
        const what = `${bytes.length} bytes of ${size} came`;
        throw new Failure(blobError('corrupt', call, what));
      }
      return { bytes, tag };
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
    const key = `${this.#prefix}${name}`;
    const number = crypto.randomUUID();
    const options =
      when === 'any'
        ? undefined
        : {
            onlyIf: when === 'absent' ? { etagDoesNotMatch: '*' } : { etagMatches: when.tag },
            customMetadata: { [NUMBER]: number },
          };
    return change(this.#attempts(signal), call, async (isUncertain) => {
      const put = await this.#run(call, signal, () => this.#bucket.put(key, bytes, options));
      if (put !== null) {
        return put.etag;
      }
      const found = isUncertain
        ? await this.#run(call, signal, () => this.#bucket.head(key))
        : undefined;
      if (found?.customMetadata?.[NUMBER] === number) {
        return found.etag;
      }
      throw new Failure(blobError('conflict', call, 'it is not the expected one'));
    });
  }

  async list(prefix: string, signal?: AbortSignal): Promise<BlobInfo[]> {
    const call = this.#call('list', prefix);
    const listed: BlobInfo[] = [];
    let cursor: string | undefined;
    do {
      const page = await repeat(this.#attempts(signal), () =>
        this.#run(call, signal, () =>
          this.#bucket.list({
            prefix: `${this.#prefix}${prefix}`,
            ...(cursor === undefined ? {} : { cursor }),
          }),
        ),
      );
      for (const { key, size, uploaded } of page.objects) {
        const name = key.slice(this.#prefix.length);
        if (isBlobName(name)) {
          listed.push({ name, length: size, modifiedMs: uploaded.getTime() });
        }
      }
      cursor = page.truncated ? page.cursor : undefined;
      if (page.truncated && cursor === undefined) {
        throw blobError('corrupt', call, 'the listing ends too early');
      }
    } while (cursor !== undefined);
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    checkBlobName(name);
    const call = this.#call('remove', name);
    const key = `${this.#prefix}${name}`;
    await change(this.#attempts(signal), call, () =>
      this.#run(call, signal, () => this.#bucket.delete(key)),
    );
  }

  #call(verb: Verb, name: string): Call {
    return { verb, place: `r2:${this.#prefix}`.replace(/\/$/, ''), name };
  }

  #attempts(signal: AbortSignal | undefined): Attempts {
    return new Attempts(this.#retryForMs, signal);
  }

  async #get(
    call: Call,
    signal: AbortSignal | undefined,
    range?: { offset: number; length: number },
  ) {
    const key = `${this.#prefix}${call.name}`;
    const options = range && { range };
    const got = await this.#run(call, signal, async () => {
      const found = await this.#bucket.get(key, options);
      return found && { found, bytes: new Uint8Array(await found.arrayBuffer()) };
    });
    if (got === null) {
      throw new Failure(blobError('not_found', call, 'there is no such object'));
    }
    return { bytes: got.bytes, size: got.found.size, tag: got.found.etag };
  }

  /** Throws why a range could not be read: a bucket has several errors for one after the end of its object. */
  async #explained(
    call: Call,
    signal: AbortSignal | undefined,
    start: number,
    failure: unknown,
  ): Promise<never> {
    if (failure instanceof Failure && !['not_found', 'limit'].includes(failure.error.kind)) {
      const key = `${this.#prefix}${call.name}`;
      const found = await this.#run(call, signal, () => this.#bucket.head(key));
      if (found !== null && start >= found.size) {
        const what = `the blob ends at byte ${found.size}, before byte ${start}`;
        throw new Failure(blobError('corrupt', call, what));
      }
    }
    throw failure;
  }

  /** Runs one call of the bucket, which cannot be stopped, but left. Throws a `Failure`. */
  async #run<T>(call: Call, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (signal?.aborted) {
      throw cancelled();
    }
    let leave = (): void => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(cancelled());
      signal?.addEventListener('abort', leave, { once: true });
      const late = `there was no answer within ${this.#timeoutMs / 1_000} s`;
      timer = setTimeout(() => reject(new Error(late)), this.#timeoutMs);
    });
    this.requests.made++;
    try {
      return await Promise.race([work(), left]);
    } catch (thrown) {
      if (thrown instanceof NacreError) {
        throw thrown;
      }
      throw isTooMany(thrown) ? tooMany(call, thrown, this.requests.made) : failureOf(call, thrown);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  }
}

/** What an error of the bucket means. */
function failureOf(call: Call, thrown: unknown): Failure {
  const { message = String(thrown) } = thrown as Partial<Error>;
  if (PASSING.test(message) || !ANY_NUMBER.test(message)) {
    const error = blobError('unavailable', call, message, undefined, thrown);
    return new Failure(error, { passing: true, uncertain: changes(call.verb) });
  }
  return new Failure(blobError('io', call, message, undefined, thrown));
}
