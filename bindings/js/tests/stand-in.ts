/** For tests in Node: a stand-in of an S3 server for each test, and folders that are removed after it. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { BlobsOptions, ConnectOptions, Database } from 'nacredb';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { startS3, type S3 } from '../../../tools/s3.mjs';
import { connected } from './testing.js';

export const KEY = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };

export let s3: S3;
/** Those of earlier tests: databases are closed after the hooks of a file. */
const servers: S3[] = [];
let folders: string[] = [];

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
}, 60_000);

beforeEach(async () => {
  s3 = await startS3();
  servers.push(s3);
});

afterEach(() => {
  folders.splice(0).forEach((folder) => fs.rmSync(folder, { recursive: true, force: true }));
});

export function emptyFolder(): string {
  folders.push(fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-blobs-')));
  return folders.at(-1)!;
}

/** The blobs of a database on the stand-in. */
export function blobs(options: BlobsOptions = {}): BlobsOptions {
  return { url: 's3://bucket/shop', endpoint: s3.endpoint, credentials: KEY, ...options };
}

/** Opens that database only to read it. */
export function attached(
  options: ConnectOptions = {},
  given: BlobsOptions = {},
): Promise<Database> {
  const { url: _, ...rest } = blobs(given);
  return connected('s3://bucket/shop', { blobs: rest, ...options });
}

export async function until(is: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await is())) {
    expect(Date.now()).toBeLessThan(end);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
