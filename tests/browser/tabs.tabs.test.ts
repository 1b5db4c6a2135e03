/** What takes several pages of a real browser: reloads, second tabs, tabs that are killed. */

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

beforeEach(async () => {
  context = await browser.newContext();
});

afterEach(() => context.close());

async function tab(): Promise<Page> {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  return page;
}

/** Opens the database in a tab: 'open', or the kind of the error. */
function open(page: Page): Promise<string> {
  return page.evaluate(async () => {
    try {
      window.db = await window.nacredb.connect('opfs://tabs');
      return 'open';
    } catch (error) {
      return (error as nacredb.NacreError).kind;
    }
  });
}

function ids(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const { rows } = await window.db.query<{ id: bigint }>('select id from t order by id');
    return rows.map((row) => Number(row.id));
  });
}

/** Inserts 0, 1, 2, … one by one until the page ends, and counts the acknowledged inserts. */
function startWriting(page: Page): Promise<void> {
  return page.evaluate(async () => {
    await window.db.exec('create table t (id bigint primary key, name text)');
    window.acknowledged = 0;
    void (async () => {
      for (;;) {
        await window.db.query('insert into t values (?, ?)', [
          window.acknowledged,
          'x'.repeat(100),
        ]);
        window.acknowledged++;
      }
    })();
  });
}

async function acknowledged(page: Page): Promise<number> {
  await page.waitForFunction(() => window.acknowledged > 50);
  return page.evaluate(() => window.acknowledged);
}

/** Expects every acknowledged row, and at most the rows that were in flight besides. */
function expectNothingLost(found: number[], atLeast: number): void {
  expect(found.length).toBeGreaterThanOrEqual(atLeast);
  expect(found).toEqual(found.map((_, i) => i));
}

test('a reload finds everything without a close before it', async () => {
  const page = await tab();
  expect(await open(page)).toBe('open');
  await startWriting(page);
  const count = await acknowledged(page);
  await page.reload();
  await page.waitForFunction(() => window.nacredb !== undefined);
  expect(await open(page)).toBe('open');
  expectNothingLost(await ids(page), count);
});

test('a tab killed while it writes loses nothing that was acknowledged', async () => {
  const first = await tab();
  expect(await open(first)).toBe('open');
  await startWriting(first);
  const count = await acknowledged(first);
  // The renderer process ends at once: nothing is closed, and no handler runs.
  const crashed = first.waitForEvent('crash');
  await first.goto('chrome://crash').catch(() => {});
  await crashed;
  const second = await tab();
  expect(await open(second)).toBe('open');
  expectNothingLost(await ids(second), count);
});

test('a transaction that is open when the page goes away is rolled back', async () => {
  const page = await tab();
  expect(await open(page)).toBe('open');
  await page.evaluate(async () => {
    await window.db.exec('create table t (id bigint primary key); insert into t values (1)');
    await new Promise<void>((written) => {
      void window.db.transaction(async (tx) => {
        await tx.exec('insert into t values (2)');
        written();
        await new Promise(() => {});
      });
    });
  });
  await page.reload();
  await page.waitForFunction(() => window.nacredb !== undefined);
  expect(await open(page)).toBe('open');
  expect(await ids(page)).toEqual([1]);
});
