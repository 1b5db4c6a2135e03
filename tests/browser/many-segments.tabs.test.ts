/**
 * A database of more segments than a browser has access handles: it is read by key, scanned,
 * merged, opened again, and survives a tab that is killed.
 */

import type * as nacredb from 'nacredb';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { serve, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
  }
}

/** More tables than there may be handles, each with a segment of its own. */
const TABLES = 310;
const ROWS = 20;

let server: Server;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  server = await serve();
  browser = await chromium.launch(launchOptions());
  context = await browser.newContext();
});

afterAll(async () => {
  await browser.close();
  server.close();
});

/** A tab in which the database is open. */
async function tab(): Promise<Page> {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  await page.evaluate(async () => {
    window.db = await window.nacredb.connect('opfs://many', { durability: 'relaxed' });
  });
  return page;
}

/** Loads rows from `first` on into tables, which becomes a segment of each. */
function load(page: Page, tables: number, first: number): Promise<void> {
  return page.evaluate(
    async ([tables, first, rows]) => {
      const { db } = window;
      const id = Array.from({ length: rows! }, (_, i) => first! + 2 * i);
      for (let t = 0; t < tables!; t++) {
        await db.exec(`create table if not exists t${t} (id bigint primary key, n int)`);
        await db.insertRows(`t${t}`, { id, n: id.map((id) => id + t) });
      }
    },
    [tables, first, ROWS],
  );
}

interface Contents {
  rows: number;
  sum: number;
  wrong: number;
  segments: number;
}

/** Scans all tables, and reads a row of each by its key. */
function contents(page: Page): Promise<Contents> {
  return page.evaluate(async (tables) => {
    const { db } = window;
    const found = { rows: 0, sum: 0, wrong: 0, segments: 0 };
    for (let t = 0; t < tables; t++) {
      const { rows } = await db.query(
        `select cast(count(*) as int) as n, cast(sum(n) as double) as s from t${t}`,
      );
      found.rows += Number(rows[0]!['n']);
      found.sum += Number(rows[0]!['s']);
      const row = (await db.query(`select n from t${t} where id = ?`, [6])).rows[0];
      found.wrong += row?.['n'] === 6 + t ? 0 : 1;
    }
    for (const { segments } of await db.inspect()) {
      found.segments += segments.length;
    }
    return found;
  }, TABLES);
}

/** What `contents` finds after loads from 0 into all tables, and from 1 into some of them. */
function expected(some: number): Partial<Contents> {
  const sum = (first: number, t: number) =>
    Array.from({ length: ROWS }, (_, i) => first + 2 * i + t).reduce((a, b) => a + b, 0);
  let all = 0;
  for (let t = 0; t < TABLES; t++) {
    all += sum(0, t) + (t < some ? sum(1, t) : 0);
  }
  return { rows: (TABLES + some) * ROWS, sum: all, wrong: 0 };
}

test('a database of 310 segments works like any other', { timeout: 300_000 }, async () => {
  const first = await tab();
  await load(first, TABLES, 0);
  const before = await contents(first);
  expect(before).toMatchObject({ ...expected(0), segments: TABLES });
  await load(first, 30, 1);
  await first.evaluate(() => window.db.flush());
  // The tab is killed while it merges.
  await first.evaluate(() => void window.db.exec('optimize table t0 full').catch(() => {}));
  await first.close();

  const second = await tab();
  expect(await contents(second)).toMatchObject(expected(30));
  await second.evaluate(async () => {
    for (let t = 0; t < 30; t++) {
      await window.db.exec(`optimize table t${t} full`);
    }
  });
  expect(await contents(second)).toMatchObject({ ...expected(30), segments: TABLES });
  await second.evaluate(async () => {
    await window.db.exec('drop table t200; delete from t0');
    await window.db.close();
  });
  await second.close();

  const third = await tab();
  const [left] = await third.evaluate(async () => {
    const { rows } = await window.db.query(
      'select (select cast(count(*) as int) from t0) as a, (select cast(count(*) as int) from t1) as b',
    );
    return rows;
  });
  expect(left).toEqual({ a: 0, b: 2 * ROWS });
});
