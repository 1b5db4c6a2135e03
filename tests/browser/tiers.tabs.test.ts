/**
 * Databases in OPFS whose files are in a blob store of another origin, too: a real S3 server, where there is one,
 * behind a stand-in that refuses and delays. Each browser context has an OPFS of its own, as another machine has.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import type * as nacredb from 'nacredb';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { startS3, type S3 } from '../../tools/s3.mjs';
import { startGateway, type Gateway } from '../../tools/versitygw.mjs';
import { allow } from './cors.js';
import { serve, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
    asked: number;
  }
}

const KEY = { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' };
const LIMIT = 250_000;
const ROWS = 200_000;

let server: Server;
let browser: Browser;
let gateway: Gateway | null = null;
let s3: S3;
let contexts: BrowserContext[] = [];

beforeAll(async () => {
  gateway = await startGateway({ origin: 'https://elsewhere.test' });
  server = await serve();
  browser = await chromium.launch(launchOptions());
  if (gateway !== null) {
    await allow(gateway, new URL(server.url).origin);
  }
}, 600_000);

afterAll(async () => {
  await browser.close();
  server.close();
  await gateway?.stop();
}, 60_000);

beforeEach(async () => {
  s3 = await startS3({ server: gateway?.endpoint });
});

afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
  await s3.stop();
  if (gateway !== null) {
    fs.rmSync(path.join(gateway.folder, 'bucket', 'shop'), { recursive: true, force: true });
  }
});

/** Bytes of the segments in the bucket. */
function segmentBytes(): number {
  const bytes =
    gateway === null
      ? [...s3.objects].map(([key, object]) => [key, object.bytes.length] as const)
      : stored(path.join(gateway.folder, 'bucket'));
  return bytes.filter(([key]) => key.includes('seg-')).reduce((sum, [, bytes]) => sum + bytes, 0);
}

/** The files below a folder and their bytes. */
function stored(folder: string): (readonly [string, number])[] {
  const names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.map((name) => [name, fs.statSync(path.join(folder, name)).size] as const);
}

/** A page on a machine of its own. */
async function machine(): Promise<Page> {
  contexts.push(await browser.newContext());
  return tab(contexts.at(-1)!);
}

async function tab(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  return page;
}

/** Opens a database in a page. */
function open(page: Page, url: string, options: object = {}): Promise<void> {
  const blobs = { endpoint: s3.endpoint, credentials: KEY };
  const named = url.startsWith('s3:') ? blobs : { ...blobs, url: 's3://bucket/shop' };
  return page.evaluate(
    async ([url, options]) => {
      window.db = await window.nacredb.connect(url, options);
    },
    [url, { blobs: named, ...options }] as const,
  );
}

function numbers(page: Page, sql: string): Promise<number[]> {
  return page.evaluate(async (sql) => {
    const { rows } = await window.db.query(sql);
    return Object.values(rows[0] as object).map(Number);
  }, sql);
}

/** Fills a table with rows that hardly compress. */
function fill(page: Page, rows: number): Promise<void> {
  return page.evaluate(async (rows) => {
    const { db } = window;
    await db.exec('create table item (id bigint primary key, name text)');
    let state = 1;
    const random = () => (state = (state * 48_271) % 2_147_483_647).toString(36);
    for (let from = 0; from < rows; from += 20_000) {
      const id = Array.from({ length: Math.min(20_000, rows - from) }, (_, at) => from + at);
      const name = id.map(() => Array.from({ length: 6 }, random).join(''));
      await db.insertRows('item', { id, name });
    }
    await db.exec('optimize table item flush');
    await db.upload();
  }, rows);
}

const SUMS = 'select count(*) as n, count(distinct name) as names, sum(id) as ids from item';

test(
  'OPFS holds a twentieth of the table, and another machine has all of it',
  { timeout: 240_000 },
  async () => {
    const first = await machine();
    await open(first, 'opfs://shop', { diskLimit: LIMIT, blobLag: 0, cacheBytes: 100_000 });
    await fill(first, ROWS);
    expect(segmentBytes()).toBeGreaterThan(20 * LIMIT);
    const expected = [ROWS, ROWS, (ROWS * (ROWS - 1)) / 2];
    expect(await numbers(first, SUMS)).toEqual(expected);
    expect(await numbers(first, 'select id from item where id = 123456')).toEqual([123_456]);
    // Segments and blocks, and the log on top.
    await first.waitForFunction(async () => (await window.db.storage()).bytes < 4_000_000);

    const reader = await machine();
    await open(reader, 's3://bucket/shop', { diskLimit: LIMIT, cacheBytes: 100_000 });
    expect(await numbers(reader, SUMS)).toEqual(expected);
    const refused = reader.evaluate(() =>
      window.db.exec('delete from item').catch(({ kind }: { kind: string }) => kind),
    );
    expect(await refused).toBe('unsupported');

    await first.evaluate(() => window.db.query('delete from item where id >= 100000'));
    await first.evaluate(() => window.db.upload());
    expect(await numbers(reader, SUMS)).toEqual(expected);
    expect(await reader.evaluate(() => window.db.refresh())).toBe(true);
    expect((await numbers(reader, SUMS))[0]).toBe(100_000);

    const second = await machine();
    await open(second, 'opfs://elsewhere', { diskLimit: LIMIT });
    expect((await numbers(second, SUMS))[0]).toBe(100_000);
    await second.evaluate(() => window.db.query("insert into item values (-1, 'of the second')"));
    await second.evaluate(() => window.db.close());
    const told = await first.evaluate(() =>
      window.db
        .query("insert into item values (-2, 'of the first')")
        .then(() => window.db.upload())
        .then(String, ({ kind }: { kind: string }) => kind),
    );
    expect(told).toBe('in_use');
  },
);

test('the page is asked for credentials, and again when they expire', async () => {
  let valid = '1';
  s3.state.refuse = (_, __, token) => (token === valid ? null : 'ExpiredToken');
  const page = await machine();
  await page.evaluate(
    async ([endpoint, key]) => {
      window.asked = 0;
      const credentials = async () => ({ ...key, sessionToken: `${++window.asked}` });
      const blobs = { url: 's3://bucket/shop', endpoint, credentials };
      window.db = await window.nacredb.connect('opfs://shop', { blobs });
    },
    [s3.endpoint, KEY] as const,
  );
  await fill(page, 1_000);
  expect(await page.evaluate(() => window.asked)).toBe(1);
  valid = '2';
  await page.evaluate(() => window.db.query("insert into item values (-1, 'x')"));
  await page.evaluate(() => window.db.upload());
  expect(await page.evaluate(() => window.asked)).toBe(2);
});

test('credentials that expire within a query are asked for again', async () => {
  const first = await machine();
  await open(first, 'opfs://shop', { blobLag: 0 });
  await fill(first, 40_000);
  const reader = await machine();
  let [valid, answers] = ['1', 0];
  s3.state.refuse = (_, __, token) => (token === valid ? null : 'ExpiredToken');
  await reader.evaluate(
    async ([endpoint, key, diskLimit]) => {
      window.asked = 0;
      const credentials = async () => ({ ...key, sessionToken: `${++window.asked}` });
      const options = { diskLimit, cacheBytes: 100_000, blobs: { endpoint, credentials } };
      window.db = await window.nacredb.connect('s3://bucket/shop', options);
    },
    [s3.endpoint, KEY, LIMIT] as const,
  );
  expect(await reader.evaluate(() => window.asked)).toBe(1);
  // The second answer to the query is the last one for the first token.
  s3.state.refuse = (_, __, token) => {
    answers += 1;
    valid = answers > 2 ? '2' : '1';
    return token === valid ? null : 'ExpiredToken';
  };
  expect(await numbers(reader, SUMS)).toEqual([40_000, 40_000, (40_000 * 39_999) / 2]);
  expect(answers).toBeGreaterThan(4);
  expect(await reader.evaluate(() => window.asked)).toBe(2);
});

test('a query waits for blobs that are away for a while, and a commit does not', async () => {
  const first = await machine();
  await open(first, 'opfs://shop', { blobLag: 0 });
  await fill(first, 40_000);
  const reader = await machine();
  await open(reader, 's3://bucket/shop', { diskLimit: LIMIT, cacheBytes: 100_000 });
  s3.state.isAway = true;
  const asked = s3.requests.length;
  const sums = numbers(reader, SUMS);
  await expect.poll(() => s3.requests.length).toBeGreaterThan(asked + 1);
  await first.evaluate(() => window.db.query("insert into item values (-1, 'x')"));
  expect(await numbers(first, 'select count(*) as n from item')).toEqual([40_001]);
  s3.state.isAway = false;
  expect(await sums).toEqual([40_000, 40_000, (40_000 * 39_999) / 2]);
  await first.evaluate(() => window.db.upload());
  await reader.evaluate(() => window.db.refresh());
  expect(await numbers(reader, 'select count(*) as n from item')).toEqual([40_001]);
});

test('a page that is reloaded without a network has its rows, and what it had fetched', async () => {
  const first = await machine();
  await open(first, 'opfs://shop', { blobLag: 0 });
  await fill(first, 40_000);
  await first.evaluate(() => window.db.close());

  // It downloads the log only, and then what it reads.
  const page = await machine();
  const options = { diskLimit: 8 * LIMIT, blobLag: 0 };
  await open(page, 'opfs://shop', options);
  const expected = [40_000, 40_000, (40_000 * 39_999) / 2];
  expect(await numbers(page, SUMS)).toEqual(expected);
  await page.evaluate(() => window.db.query("insert into item values (-1, 'before')"));
  s3.state.isAway = true;
  await page.reload();
  await page.waitForFunction(() => window.nacredb !== undefined);
  await open(page, 'opfs://shop', options);
  await page.evaluate(() => window.db.query("insert into item values (-2, 'meanwhile')"));
  const more = [expected[0]! + 2, expected[1]! + 2, expected[2]! - 3];
  expect(await numbers(page, SUMS)).toEqual(more);
  s3.state.isAway = false;
  await page.evaluate(() => window.db.upload());

  const reader = await machine();
  await open(reader, 's3://bucket/shop');
  expect(await numbers(reader, SUMS)).toEqual(more);
});

test('without CORS rules the error says what they must allow', async () => {
  await s3.stop();
  s3 = await startS3({ origin: null });
  const page = await machine();
  const error = await page.evaluate(
    async ([endpoint, credentials]) => {
      const options = { blobs: { endpoint, credentials, retryForMs: 0 }, blobPatience: 0 };
      return window.nacredb.connect('s3://bucket/shop', options).then(
        () => null,
        ({ kind, hint }: nacredb.NacreError) => ({ kind, hint }),
      );
    },
    [s3.endpoint, KEY] as const,
  );
  expect(error).toMatchObject({ kind: 'unavailable', hint: expect.stringContaining('CORS') });
});

test('tabs share a database with the same blobs only, and the next leader goes on', async () => {
  const first = await machine();
  const [context] = contexts;
  await open(first, 'opfs://shared', { blobLag: 0 });
  await fill(first, 1_000);
  const second = await tab(context!);
  const refused = await second.evaluate(() =>
    window.nacredb.connect('opfs://shared').then(String, ({ kind }: nacredb.NacreError) => kind),
  );
  expect(refused).toBe('in_use');
  await open(second, 'opfs://shared', { blobLag: 0 });
  await second.evaluate(() => window.db.query("insert into item values (-1, 'x')"));
  await first.close();
  expect(await numbers(second, 'select count(*) as n from item')).toEqual([1_001]);
  await second.evaluate(() => window.db.upload());
  const reader = await machine();
  await open(reader, 's3://bucket/shop');
  expect(await numbers(reader, 'select count(*) as n from item')).toEqual([1_001]);
});

test('a page that is reloaded while it uploads goes on', async () => {
  const page = await machine();
  await open(page, 'opfs://shop', { blobLag: 0 });
  s3.state.delayMs = 30;
  const filling = fill(page, 20_000).catch(() => {});
  await expect
    .poll(() => s3.requests.filter((request) => request.startsWith('PUT')).length)
    .toBeGreaterThan(3);
  await page.reload();
  await filling;
  s3.state.delayMs = 0;
  await page.waitForFunction(() => window.nacredb !== undefined);
  await open(page, 'opfs://shop', { blobLag: 0 });
  const before = await numbers(
    page,
    "select count(*) as n from information_schema.tables where table_name = 'item'",
  );
  expect(before).toEqual([1]);
  const count = await numbers(page, 'select count(*) as n from item');
  await page.evaluate(() => window.db.upload());
  const reader = await machine();
  await open(reader, 's3://bucket/shop');
  expect(await numbers(reader, 'select count(*) as n from item')).toEqual(count);
});

test('a full quota evicts what is uploaded, and writes go on', { timeout: 240_000 }, async () => {
  const page = await machine();
  await open(page, 'opfs://shop', { blobLag: 0, cacheBytes: 100_000 });
  await fill(page, 60_000);
  const { usage = 0 } = await page.evaluate(() => navigator.storage.estimate());
  const cdp = await page.context().newCDPSession(page);
  const { origin } = new URL(server.url);
  const quotaSize = usage + 2_500_000;
  await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize });
  for (let from = 60_000; from < 260_000; from += 20_000) {
    await page.evaluate(async (from) => {
      const { db } = window;
      let state = from;
      const random = () => (state = (state * 48_271) % 2_147_483_647).toString(36);
      const id = Array.from({ length: 20_000 }, (_, at) => from + at);
      const name = id.map(() => Array.from({ length: 6 }, random).join(''));
      await db.insertRows('item', { id, name });
      await db.exec('optimize table item flush');
      await db.upload();
    }, from);
  }
  const { usage: added = 0 } = await page.evaluate(() => navigator.storage.estimate());
  expect(added).toBeLessThanOrEqual(quotaSize);
  const expected = [260_000, 260_000, (260_000 * 259_999) / 2];
  expect(await numbers(page, SUMS)).toEqual(expected);
  await page.evaluate(() => window.db.close());
  const reader = await machine();
  await open(reader, 's3://bucket/shop');
  expect(await numbers(reader, SUMS)).toEqual(expected);
});
