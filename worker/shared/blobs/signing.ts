/**
 * Signs requests for S3, with credentials that are renewed, or by a function of the application. Requests
 * that read are signed in their URL: without a header of its own, a browser sends such a request without
 * asking the server for permission first.
 */

import { AwsV4Signer } from 'aws4fetch';
import { nacreError } from '../errors.js';
import type { BlobCredentials, BlobOptions, BlobRequest } from './options.js';

/** New credentials are asked for when the old ones are valid for less than this. */
const EARLY_MS = 60_000;
/** How long the signature in a URL is valid, in seconds: it is used at once. */
const VALID_S = 900;

/** A request that can be sent. */
export interface Signed {
  url: string;
  headers: Record<string, string>;
  /** What it was signed with. */
  credentials?: BlobCredentials;
}

/** Signs the requests of a store. */
export class Signing {
  readonly #options: BlobOptions;
  readonly #region: string;
  /** Keys that were derived, which the signer keeps. */
  readonly #cache = new Map<string, ArrayBuffer>();
  #kept: BlobCredentials | undefined;
  #asking: Promise<BlobCredentials> | undefined;
  /** By how many milliseconds the server's clock is ahead. */
  #skewMs = 0;

  constructor(options: BlobOptions, region: string) {
    this.#options = options;
    this.#region = region;
  }

  /** Signs a request. Errors of the application's functions are passed on as they are. */
  async sign(request: BlobRequest, sha256: string | undefined): Promise<Signed> {
    const { presign, credentials } = this.#options;
    const headers = { ...request.headers };
    if (presign !== undefined) {
      return { url: await presign(request), headers };
    }
    if (credentials === undefined) {
      return { url: request.url, headers };
    }
    const used = await this.#credentials(credentials);
    const { accessKeyId, secretAccessKey, sessionToken } = used;
    const signQuery = request.method === 'GET' || request.method === 'HEAD';
    const url = new URL(request.url);
    if (signQuery) {
      url.searchParams.set('X-Amz-Expires', `${VALID_S}`);
    } else {
      headers['x-amz-content-sha256'] = sha256 ?? 'UNSIGNED-PAYLOAD';
    }
    const signed = await signer({
      method: request.method,
      url: url.href,
      headers,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 's3',
      region: this.#region,
      cache: this.#cache,
      datetime: new Date(Date.now() + this.#skewMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
      signQuery,
    }).sign();
    const sent = Object.fromEntries(signed.headers);
    return { url: signed.url.href, headers: sent, credentials: used };
  }

  /** Whether a request that was refused may succeed when it is signed anew. Newer credentials are kept. */
  refuse({ credentials }: Signed): boolean {
    if (this.#kept !== undefined && this.#kept === credentials) {
      this.#kept = undefined;
    }
    return this.#options.presign !== undefined || typeof this.#options.credentials === 'function';
  }

  /** Notes that the server's clock differs. Returns whether that was not known. */
  noteSkew(skewMs: number): boolean {
    const isNew = Math.abs(skewMs - this.#skewMs) > EARLY_MS;
    this.#skewMs = skewMs;
    return isNew;
  }

  async #credentials(from: NonNullable<BlobOptions['credentials']>): Promise<BlobCredentials> {
    if (typeof from !== 'function') {
      return from;
    }
    if (this.#kept !== undefined && this.#isValid(this.#kept, EARLY_MS)) {
      return this.#kept;
    }
    // Calls at the same time share one answer.
    this.#asking ??= this.#ask(from).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(from: () => BlobCredentials | Promise<BlobCredentials>): Promise<BlobCredentials> {
    try {
      this.#kept = { ...(await from()) };
      return this.#kept;
    } catch (thrown) {
      // What still holds does for another minute.
      if (this.#kept !== undefined && this.#isValid(this.#kept, 0)) {
        return this.#kept;
      }
      throw thrown;
    }
  }

  #isValid({ expires }: BlobCredentials, earlyMs: number): boolean {
    return expires === undefined || Date.now() + earlyMs < new Date(expires).getTime();
  }
}

function signer(options: ConstructorParameters<typeof AwsV4Signer>[0]): AwsV4Signer {
  if (globalThis.crypto?.subtle === undefined) {
    throw nacreError('unsupported', 'signing requests is not supported on pages without https');
  }
  return new AwsV4Signer(options);
}

/** The SHA-256 of bytes in hex digits; `undefined` where there is none, on pages without https. */
export async function sha256(bytes: Uint8Array): Promise<string | undefined> {
  if (globalThis.crypto?.subtle === undefined) {
    return undefined;
  }
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as BufferSource));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
