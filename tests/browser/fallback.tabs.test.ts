/** What the option `fallback` does in a browser without the origin private file system. */

import type * as nacredb from 'nacredb';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { serve, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
    acknowledged: number;
  }
}

type Fallback = 'none' | 'memory' | 'indexeddb';

let server: Server;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  server = await serve();
  browser = await chromium.launch(launchOptions());
});

afterAll(async () => {
  await browser.close();
  server.close();
});

/** Workers as a browser would have them that refuses private files. */
const WITHOUT_FILES = `StorageManager.prototype.getDirectory = () =>
  Promise.reject(new DOMException('not in private windows', 'SecurityError'));`;

beforeEach(async () => {
  server.overrides = { 'worker.js': { body: (file) => `${WITHOUT_FILES}${file}` } };
  context = await browser.newContext();
});

afterEach(() => context.close());

async function page(): Promise<Page> {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  return page;
}

/** Opens the database and makes a table: what keeps it, or the error. */
function open(page: Page, fallback?: Fallback): Promise<string> {
  return page.evaluate(async (fallback) => {
    try {
      window.db = await window.nacredb.connect('opfs://fallback', { fallback });
      await window.db.exec('create table if not exists t (id bigint primary key, note text)');
      return (await window.db.storage()).place;
    } catch (error) {
      const { kind, message } = error as nacredb.NacreError;
      return `${kind}: ${message}`;
    }
  }, fallback);
}

function ids(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const { rows } = await window.db.query<{ id: bigint }>('select id from t order by id');
    return rows.map(({ id }) => Number(id));
  });
}

/** Inserts 0, 1, 2, … one by one until the page ends, and counts the acknowledged inserts. */
async function startWriting(page: Page): Promise<number> {
  await page.evaluate(() => {
    window.acknowledged = 0;
    void (async () => {
      for (;;) {
        const note = 'x'.repeat(100);
        await window.db.query('insert into t values (?, ?)', [window.acknowledged, note]);
        window.acknowledged++;
      }
    })();
  });
  await page.waitForFunction(() => window.acknowledged > 50);
  return page.evaluate(() => window.acknowledged);
}

function expectNothingLost(found: number[], least: number): void {
  expect(found.length).toBeGreaterThanOrEqual(least);
  expect(found).toEqual(found.map((_, i) => i));
}

test('without the option, connect fails and says why', async () => {
  expect(await open(await page())).toMatch(/^unsupported: this page may not use.*private window/);
  expect(await open(await page(), 'none')).toMatch(/^unsupported/);
});

test('memory keeps a database until it is closed', async () => {
  const first = await page();
  expect(await open(first, 'memory')).toBe('memory');
  await first.evaluate(() => window.db.query("insert into t values (1, 'x')"));
  const second = await page();
  expect(await open(second, 'memory')).toBe('memory');
  expect(await ids(second)).toEqual([1]);
  await Promise.all([first, second].map((each) => each.evaluate(() => window.db.close())));
  expect(await open(first, 'memory')).toBe('memory');
  expect(await ids(first)).toEqual([]);
});

test('IndexedDB has everything after a reload without a close', async () => {
  const only = await page();
  expect(await open(only, 'indexeddb')).toBe('indexeddb');
  const least = await startWriting(only);
  await only.reload();
  await only.waitForFunction(() => window.nacredb !== undefined);
  expect(await open(only, 'indexeddb')).toBe('indexeddb');
  expectNothingLost(await ids(only), least);
});

test('IndexedDB has every acknowledged row after the process was killed', async () => {
  const [first, second] = [await page(), await page()];
  await open(first, 'indexeddb');
  await open(second, 'indexeddb');
  const least = await startWriting(second);
  const crashed = first.waitForEvent('crash');
  const session = await context.newCDPSession(first);
  session.send('Page.crash').catch(() => {});
  await crashed;
  await second.waitForFunction(() => window.db.isLeader);
  const found = await ids(second);
  expectNothingLost(found.slice(0, least), least);
});

test('large tables are flushed, merged and found again', async () => {
  const only = await page();
  await open(only, 'indexeddb');
  const sum = async (): Promise<unknown> =>
    only.evaluate(async () => {
      const { rows } = await window.db.query('select count(*) as n, sum(id) as sum from t');
      return JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    });
  await only.evaluate(async () => {
    const id = Array.from({ length: 50_000 }, (_, i) => i);
    await window.db.insertRows('t', { id, note: id.map((i) => `note ${i}`) });
    await window.db.exec('delete from t where id % 7 = 0; optimize table t full');
  });
  const before = await sum();
  await only.reload();
  await only.waitForFunction(() => window.nacredb !== undefined);
  await open(only, 'indexeddb');
  expect(await sum()).toBe(before);
  const losses = await only.evaluate(async () => (await window.db.storage()).losses);
  expect(losses).toEqual([]);
});

test('a database that was begun in IndexedDB stays there', async () => {
  const first = await page();
  await open(first, 'indexeddb');
  await first.evaluate(async () => {
    await window.db.query("insert into t values (5, 'x')");
    await window.db.close();
  });
  server.overrides = {};
  const second = await page();
  expect(await open(second, 'indexeddb')).toBe('indexeddb');
  expect(await ids(second)).toEqual([5]);
});

test('files are stored by number, and their bytes in blocks of 16 KiB', async () => {
  const only = await page();
  await open(only, 'indexeddb');
  const stored = await only.evaluate(async () => {
    await window.db.query('insert into t values (1, ?)', ['x'.repeat(40_000)]);
    const answer = <T>(request: IDBRequest<T>): Promise<T> =>
      new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const idb = await answer(indexedDB.open('nacredb:fallback'));
    const reading = idb.transaction(['files', 'blocks']);
    const [ids, files] = await Promise.all([
      answer(reading.objectStore('files').getAllKeys()),
      answer(reading.objectStore('files').getAll()),
    ]);
    const at = files.findIndex(({ name }) => name.startsWith('log-'));
    const range = IDBKeyRange.bound([ids[at], 0], [ids[at], Infinity]);
    const blocks = reading.objectStore('blocks');
    const keys = (await answer(blocks.getAllKeys(range))) as [number, number][];
    const bytes: Uint8Array[] = await answer(blocks.getAll(range));
    return {
      version: idb.version,
      stores: [...idb.objectStoreNames],
      blocks: keys.map(([, index]) => index),
      sizes: [...new Set(bytes.map(({ length }) => length))],
      isComplete: files[at].length > 40_000 && files[at].length <= bytes.length * 16_384,
    };
  });
  expect(stored).toMatchObject({
    version: 1,
    stores: ['blocks', 'files'],
    sizes: [16_384],
    isComplete: true,
  });
  expect(stored.blocks).toEqual(stored.blocks.map((_, i) => i));
});

test('with relaxed durability, flush waits for IndexedDB', async () => {
  const only = await page();
  await only.evaluate(async () => {
    const options = { fallback: 'indexeddb', durability: 'relaxed' } as const;
    const db = await window.nacredb.connect('opfs://fallback', options);
    await db.exec('create table t (id bigint primary key, note text)');
    await db.query("insert into t values (6, 'x')");
    await db.flush();
  });
  await only.reload();
  await only.waitForFunction(() => window.nacredb !== undefined);
  await open(only, 'indexeddb');
  expect(await ids(only)).toEqual([6]);
});

test('a database in IndexedDB has no synchronous calls', async () => {
  server.overrides = {};
  const kinds = await (
    await page()
  ).evaluate(async (url) => {
    const code = `
      StorageManager.prototype.getDirectory = undefined;
      const { connectInThread } = await import('${url}index.js');
      const db = await connectInThread('opfs://own', { fallback: 'indexeddb' });
      await db.exec('create table t (id int primary key); insert into t values (7)');
      const one = await db.prepare('select id from t where id = ?');
      const answers = [(await one.get([7])).id];
      try { one.getSync([7]) } catch (error) { answers.push(error.kind) }
      await db.close();
      postMessage(answers);`;
    const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    const worker = new Worker(script, { type: 'module' });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
  }, server.url);
  expect(kinds).toEqual([7, 'unsupported']);
});

test('the quota is exceeded in a commit', async () => {
  const only = await page();
  const cdp = await context.newCDPSession(only);
  const origin = new URL(server.url).origin;
  // Before it is opened, because IndexedDB asks for the quota now and then only.
  await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 3_000_000 });
  await open(only, 'indexeddb');
  const { errors, acknowledged } = await only.evaluate(async () => {
    const errors: string[] = [];
    let acknowledged = 0;
    for (let id = 0; id < 500 && errors.length < 2; id++) {
      const note = Array.from({ length: 5_000 }, () => Math.random().toString(36)).join('');
      await window.db.query('insert into t values (?, ?)', [id, note]).then(
        () => acknowledged++,
        ({ kind, message }: nacredb.NacreError) => errors.push(`${kind}: ${message}`),
      );
    }
    await window.db.close().catch(() => {});
    return { errors, acknowledged };
  });
  expect(errors).toHaveLength(2);
  expect(errors[0]).toMatch(/^limit: no storage left .*IndexedDB.*connect again/);
  await cdp.send('Storage.overrideQuotaForOrigin', { origin });
  expect(await open(only, 'indexeddb')).toBe('indexeddb');
  expectNothingLost(await ids(only), acknowledged);
  expect((await ids(only)).length).toBe(acknowledged);
});
