/** Node only: the examples of the documentation that need a bucket, with a stand-in for its server. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { connect, type BlobsOptions, type ConnectOptions, type Database } from 'nacredb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startS3, type S3 } from '../../tools/s3.mjs';
import { pages } from './extract';

const root = path.resolve(import.meta.dirname, '../..');
const KEY = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };

let s3: S3;
let position = 0;
const open: Database[] = [];

/** Opens a database as an example says, but on the stand-in, and in memory instead of a browser's files. */
async function opened(url: string, options: ConnectOptions = {}): Promise<Database> {
  const { blobs = {}, asOf, ...rest } = options;
  const given: BlobsOptions = typeof blobs === 'string' ? { url: blobs } : blobs;
  const db = await connect(url.replace('opfs://shop', 'memory://'), {
    ...rest,
    // There was nothing then.
    ...(asOf !== undefined && { asOf: position }),
    blobs: { credentials: KEY, ...given, endpoint: s3.endpoint },
  });
  open.push(db);
  return db;
}

beforeAll(async () => {
  s3 = await startS3();
  const writer = await opened('opfs://shop', { blobs: 's3://bucket/shop' });
  await writer.exec('create table item (id bigint primary key, name text)');
  await writer.upload();
  position = (await writer.lag())!.position;
});

afterAll(async () => {
  // A later example may have taken the blobs over.
  await Promise.allSettled(open.map((db) => db.close()));
  await s3.stop();
});

describe('the example at', () => {
  const fences = ['bindings/js/README.md', ...pages(root)].flatMap((file) => {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    const found = [...text.matchAll(/^```(?:ts|js) blobs\n([^]*?)^```$/gm)];
    return found.map((match) => {
      const line = text.slice(0, match.index).split('\n').length + 1;
      return { source: `${file}:${line}`, code: match[1]! };
    });
  });

  test('each page is found', () => {
    expect(fences.length).toBeGreaterThanOrEqual(4);
  });

  test.each(fences)('$source', async ({ code }) => {
    const shown: unknown[] = [];
    const given = {
      connect: opened,
      fetch: () => Promise.resolve(Response.json(KEY)),
      credentials: KEY,
      show: (rows: unknown) => shown.push(rows),
      console: { log: (value: unknown) => shown.push(value) },
    };
    const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
    const run = new AsyncFunction(...Object.keys(given), code);
    await run(...Object.values(given));
    expect(shown).not.toContain(undefined);
  });
});
