/** A page reads and writes blobs on a real S3 server of another origin, whose CORS rules allow it. */

import * as path from 'node:path';
import type * as nacredb from 'nacredb';
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { type Gateway, startGateway } from '../../tools/versitygw.mjs';
import type * as contract from '../../worker/shared/blobs/contract.js';
import type * as store from '../../worker/shared/blobs/s3-store.js';
import { allow } from './cors.js';
import { type Server, serve } from './server.js';

type Blobs = typeof contract & typeof store;

declare global {
  interface Window {
    blobs: Blobs;
    nacredb: typeof nacredb;
    db: nacredb.Database;
  }
}

const BLOBS = path.resolve(import.meta.dirname, '../../worker/shared/blobs');

let gateway: Gateway | null = null;
let server: Server;
let browser: Browser;
let script: string;
let page: Page | undefined;

beforeAll(async () => {
  gateway = await startGateway({ origin: 'https://elsewhere.test' });
  server = await serve();
  browser = await chromium.launch(launchOptions());
  script = await bundle();
}, 600_000);

afterAll(async () => {
  await browser.close();
  server.close();
  await gateway?.stop();
}, 60_000);

afterEach(async () => {
  await page?.close();
  page = undefined;
});

/** The store and its contract, as one script that puts them on the window. */
async function bundle(): Promise<string> {
  const entry = 'virtual:blobs';
  const source = ['contract', 's3-store']
    .map((file) => `export * from '${BLOBS}/${file}.ts';`)
    .join('');
  const build = await rolldown({
    input: entry,
    platform: 'browser',
    resolve: { modules: [path.resolve(import.meta.dirname, '../../node_modules')] },
    plugins: [
      {
        name: 'entry',
        resolveId: (id: string) => (id === entry ? id : null),
        load: (id: string) => (id === entry ? source : null),
      },
    ],
  });
  const { output } = await build.generate({ format: 'iife', name: 'blobs' });
  await build.close();
  return output[0].code;
}

async function open(): Promise<Page> {
  page = await browser.newPage();
  await page.goto(server.url);
  await page.addScriptTag({ content: `${script}\nwindow.blobs = blobs;` });
  return page;
}

test('without CORS rules the error says what they must allow', async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  const { endpoint, credentials } = gateway;
  const options = { endpoint, credentials, retryForMs: 0 };
  const error = await (
    await open()
  ).evaluate(async (options) => {
    const blobs = window.blobs.openBlobs('s3://bucket/page', options);
    return blobs
      .readAll('a')
      .catch(({ kind, hint }: { kind: string; hint: string }) => ({ kind, hint }));
  }, options);
  expect(error).toMatchObject({
    kind: 'unavailable',
    hint: expect.stringContaining('expose ETag'),
  });
});

test('a page keeps the contract, and asks permission for changes only', async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  const { endpoint, credentials } = gateway;
  const tab = await open();
  await allow(gateway, new URL(server.url).origin);
  const asked: string[] = [];
  const devtools = await tab.context().newCDPSession(tab);
  await devtools.send('Network.enable');
  devtools.on('Network.requestWillBeSent', ({ request }) => {
    if (request.method === 'OPTIONS') {
      asked.push(request.headers['Access-Control-Request-Method'] ?? '');
    }
  });
  await tab.evaluate(
    async (options) => {
      let count = 0;
      await window.blobs.checkBlobStore(() =>
        window.blobs.openBlobs(`s3://bucket/page/${count++}`, options),
      );
    },
    { endpoint, credentials },
  );
  await devtools.detach();
  expect(new Set(asked)).toEqual(new Set(['PUT', 'DELETE']));
});

test('a database of a page is opened from the server by another page', async (context) => {
  if (gateway === null) {
    return context.skip();
  }
  await allow(gateway, new URL(server.url).origin);
  const { endpoint, credentials } = gateway;
  const writer = await browser.newContext();
  const reader = await browser.newContext();
  const opened = async (machine: BrowserContext, url: string) => {
    const tab = await machine.newPage();
    await tab.goto(server.url);
    await tab.waitForFunction(() => window.nacredb !== undefined);
    const place = url.startsWith('s3:') ? {} : { url: 's3://bucket/shop' };
    await tab.evaluate(
      async ([url, blobs]) => {
        window.db = await window.nacredb.connect(url, { blobs });
      },
      [url, { ...place, endpoint, credentials }] as const,
    );
    return tab;
  };
  try {
    const first = await opened(writer, 'opfs://shop');
    await first.evaluate(async () => {
      await window.db.exec('create table item (id bigint primary key, name text)');
      const id = Array.from({ length: 5_000 }, (_, at) => at);
      await window.db.insertRows('item', { id, name: id.map((id) => `item ${id}`) });
      await window.db.exec('optimize table item flush');
      await window.db.upload();
    });
    const second = await opened(reader, 's3://bucket/shop');
    const name = (tab: Page) =>
      tab.evaluate(async () => {
        const { rows } = await window.db.query('select name from item where id = 4321');
        return (rows[0] as { name: string }).name;
      });
    expect(await name(second)).toBe('item 4321');
    await first.evaluate(async () => {
      await window.db.query("update item set name = 'new' where id = 4321");
      await window.db.upload();
    });
    expect(await name(second)).toBe('item 4321');
    expect(await second.evaluate(() => window.db.refresh())).toBe(true);
    expect(await name(second)).toBe('new');
  } finally {
    await Promise.all([writer.close(), reader.close()]);
  }
});
