/**
 * What a failed request means: the error for the caller, whether it is worth repeating, and whether it may
 * have had an effect all the same.
 */

import { type ErrorKind, NacreError } from '../errors.js';

/** What a call does. */
export type Verb = 'read' | 'write' | 'writeIf' | 'list' | 'remove';

/** A call, as messages name it. */
export interface Call {
  verb: Verb;
  /** The URL of the folder. */
  place: string;
  /** The name of the blob, or the prefix of a listing. */
  name: string;
}

/** A failed request. */
export class Failure {
  constructor(
    readonly error: NacreError,
    readonly is: {
      /** The same request may succeed later. */
      passing?: boolean;
      /** The credentials were refused. */
      refused?: boolean;
      /** They are asked for again with the next attempt. */
      renewable?: boolean;
      /** A change may have taken effect, or may do so later. */
      uncertain?: boolean;
    } = {},
    /** How long the server wants to be left alone, in milliseconds. */
    readonly retryAfterMs = 0,
  ) {}
}

/** An answer that reports an error. */
export interface ErrorAnswer {
  status: number;
  /** The server's name for it. */
  code: string;
  /** The server's words for it. */
  message: string;
  region: string | undefined;
  retryAfterMs: number;
  /** By how many milliseconds the server's clock is ahead, if it says. */
  skewMs: number | undefined;
}

/** The error of a call. */
export function blobError(
  kind: ErrorKind,
  call: Call,
  what: string,
  hint?: string,
  cause?: unknown,
): NacreError {
  const verb = call.verb === 'writeIf' ? 'write' : call.verb;
  const message = `cannot ${verb} ${call.place}/${call.name}: ${what}`;
  return new NacreError({ kind, message, hint }, cause === undefined ? undefined : { cause });
}

/** Whether a call changes something. */
export function changes(verb: Verb): boolean {
  return verb === 'write' || verb === 'writeIf' || verb === 'remove';
}

/** What a server's CORS rules must allow. */
export function corsHint(): string | undefined {
  const origin = (globalThis as { location?: { origin?: string } }).location?.origin;
  return origin === undefined
    ? undefined
    : `if the server is there, its CORS rules must allow the origin ${origin}, the methods GET, HEAD, PUT and ` +
        'DELETE and all headers, and expose ETag, Date and x-amz-meta-nacrewrite';
}

/** Whether the platform refuses more requests, of which an invocation of a Worker may make a fixed number. */
export function isTooMany(thrown: unknown): boolean {
  return /too many (?:sub|api )requests/i.test((thrown as Partial<Error>).message ?? '');
}

/** The failure of a request that the platform refuses, after this many of a database. */
export function tooMany(call: Call, thrown: unknown, requests: number): Failure {
  const what = `this invocation may make no more requests; ${requests} were made for this database`;
  const hint = 'read less in one invocation, keep what was read (cache), or raise the limit';
  return new Failure(blobError('limit', call, what, hint, thrown));
}

/** A request that came to nothing: no connection, or one that broke off. */
export function brokenOff(call: Call, thrown: unknown): Failure {
  const { message = String(thrown), cause } = thrown as Partial<Error>;
  // Node says why in the cause.
  const why =
    cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message;
  const error = blobError('unavailable', call, why, corsHint(), thrown);
  return new Failure(error, { passing: true, uncertain: changes(call.verb) });
}

/** Explains an answer that reports an error. */
export function answered(call: Call, answer: ErrorAnswer): Failure {
  const { status, code, message } = answer;
  const said = `the server answered ${[`${status} ${code}`.trim(), message].filter(Boolean).join(': ')}`;
  const failure = (kind: ErrorKind, hint?: string) =>
    new Failure(blobError(kind, call, said, hint));
  const passing = (uncertain: boolean) =>
    new Failure(
      blobError('unavailable', call, said),
      { passing: true, uncertain: uncertain && changes(call.verb) },
      answer.retryAfterMs,
    );
  if (status === 501) {
    return failure('io', 'the store must support conditional writes (If-None-Match and If-Match)');
  }
  if (status >= 500 || status === 408 || status === 429 || code === 'RequestTimeout') {
    return passing(true);
  }
  if (code === 'ConditionalRequestConflict' || code === 'OperationAborted') {
    return passing(false);
  }
  if (status === 404 && code === 'NoSuchBucket') {
    return failure('io', 'create the bucket, or correct its name');
  }
  // What speaks of the blob, and not of something around it. The answer to a HEAD has no code.
  if (status === 404 && !['', 'NoSuchKey', 'NotFound'].includes(code)) {
    return failure('io', 'check the endpoint, the bucket and the credentials');
  }
  if (status === 404 && (call.verb === 'read' || call.verb === 'remove')) {
    return failure('not_found');
  }
  if (call.verb === 'writeIf' && [304, 404, 409, 412].includes(status)) {
    return failure('conflict');
  }
  if (status === 416) {
    return failure('corrupt', 'the blob is shorter than it was');
  }
  const tokens = ['ExpiredToken', 'InvalidToken', 'TokenRefreshRequired'];
  if (status === 401 || status === 403 || tokens.includes(code)) {
    const error = blobError('io', call, said, denied(answer, tokens));
    return new Failure(error, { refused: true });
  }
  if ((status >= 300 && status < 400) || code === 'AuthorizationHeaderMalformed') {
    const { region } = answer;
    return failure(
      'io',
      region === undefined
        ? 'set the region and the endpoint of the bucket'
        : `the bucket is in region ${region}`,
    );
  }
  return failure('io');
}

/** What to do about credentials that were refused. */
function denied({ code, skewMs }: ErrorAnswer, tokens: string[]): string {
  if (code === 'RequestTimeTooSkewed') {
    const by = skewMs === undefined ? '' : ` by ${Math.round(Math.abs(skewMs) / 1000)} s`;
    return `set the clock of this machine: it differs from the server's${by}`;
  }
  if (code === 'InvalidAccessKeyId' || code === 'SignatureDoesNotMatch') {
    return 'check the credentials, and the region';
  }
  if (tokens.includes(code)) {
    return 'the session token is no longer valid: pass new credentials, or a function that returns them';
  }
  return 'the credentials need the rights to read, write, list and remove objects below the prefix';
}
