/** Opens the blob store that an application's options name, and checks them. */

import { NacreError, nacreError } from '../errors.js';
import { COMMON, type Check, checkOptions, isObject, isTime, settingsOf } from './checks.js';
import type { Around } from './encrypted-store.js';
import { EngineBlobs } from './engine-blobs.js';
import type { Ask, BlobCredentials, BlobOptions, WireBlobs } from './options.js';
import { openBlobs } from './s3-store.js';

/** How long the application may take to answer a question. */
const ANSWER_MS = 30_000;

/**
 * Opens the blob store of a database.
 *
 * Errors: `type` for options that are none; those of `openBlobs`.
 */
export function openForEngine(wire: WireBlobs, ask: Ask, around?: Around): EngineBlobs {
  check(wire);
  const { url, credentials, presign, ...rest } = wire;
  const options: BlobOptions = {
    ...rest,
    credentials:
      credentials === 'asked'
        ? async () => (await soon('credentials', ask(null))) as BlobCredentials
        : credentials,
    presign: presign && (async (request) => presigned(await soon('presign', ask(request)))),
  };
  // A lease is written, which needs a signature.
  const leaseMs =
    wire.leaseMs ?? (credentials === undefined && presign === undefined ? 0 : undefined);
  return new EngineBlobs(
    openBlobs(url, options, around),
    { ...settingsOf(wire), leaseMs },
    (other) => openBlobs(other, options, around),
  );
}

/** The answer of one of the application's functions, which must not take for ever. */
function soon(name: string, answer: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const message = `blobs.${name} has not answered in ${ANSWER_MS / 1000} s`;
      reject(nacreError('unavailable', message));
    }, ANSWER_MS);
    void answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function presigned(answer: unknown): string {
  if (typeof answer === 'string' && URL.canParse(answer)) {
    return answer;
  }
  throw nacreError('type', 'blobs.presign must answer a URL');
}

/** What each option must be. */
const CHECKS: Record<keyof WireBlobs, Check> = {
  ...COMMON,
  url: [(value) => typeof value === 'string', 'the URL s3://bucket/prefix'],
  endpoint: [(value) => typeof value === 'string', 'a URL'],
  region: [(value) => typeof value === 'string', 'a text'],
  pathStyle: [(value) => typeof value === 'boolean', 'true or false'],
  headers: [areTexts, 'an object of texts'],
  encryption: [isEncryption, "'managed' or { kms: key }"],
  credentials: [areCredentials, 'an object with accessKeyId and secretAccessKey, or a function'],
  presign: [(value) => value === 'asked', 'a function'],
  idleTimeoutMs: [isTime, 'a number of milliseconds'],
};

function check(wire: WireBlobs): void {
  checkOptions(wire, CHECKS, 'url');
  if (wire.presign !== undefined && wire.credentials !== undefined) {
    throw new NacreError({
      kind: 'type',
      message: 'blobs has both credentials and presign',
      hint: 'a presigned URL needs no credentials',
    });
  }
}

function areTexts(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string');
}

function isEncryption(value: unknown): boolean {
  return value === 'managed' || (isObject(value) && typeof value.kms === 'string');
}

function areCredentials(value: unknown): boolean {
  return (
    value === 'asked' ||
    (isObject(value) &&
      typeof value.accessKeyId === 'string' &&
      typeof value.secretAccessKey === 'string' &&
      ['string', 'undefined'].includes(typeof value.sessionToken))
  );
}
