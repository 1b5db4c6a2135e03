/** Several tabs with one database: one tab has it open, and another takes over when that one goes. */

import * as fs from 'node:fs';
import type * as nacredb from 'nacredb';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type CDPSession,
  type Page,
} from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { serve, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
    /** What the writer of this tab knows of its rows. */
    wrote: { acknowledged: number[]; unknown: number[]; kinds: string[] };
    changes: nacredb.LiveChanges<{ id: bigint }>;
    /** Results of this tab's live query. */
    counts: number[];
    /** How the transaction of this tab ended. */
    ended: string | undefined;
    goOn: () => void;
  }
}

let server: Server;
let browser: Browser;
let context: BrowserContext;
let processes: CDPSession;

beforeAll(async () => {
  server = await serve();
  browser = await chromium.launch(launchOptions());
  processes = await browser.newBrowserCDPSession();
});

afterAll(async () => {
  await browser.close();
  server.close();
});

beforeEach(async () => {
  context = await browser.newContext();
});

afterEach(async () => {
  // A context with a page that stands still does not close.
  goOn();
  await context.close();
});

/** Processes that stand still. */
const stopped: number[] = [];

/** Stops all threads of the page that has the database open, of which there is one. */
async function stopLeader(before = async (): Promise<unknown> => null): Promise<void> {
  const { processInfo } = await processes.send('SystemInfo.getProcessInfo');
  const leader = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => id)
    .find(hasWorker)!;
  await before();
  stopped.push(leader);
  process.kill(leader, 'SIGSTOP');
  // On a busy machine it takes a moment.
  while (!/State:\s+T/.test(fs.readFileSync(`/proc/${leader}/status`, 'utf8'))) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function hasWorker(id: number): boolean {
  const threads = `/proc/${id}/task`;
  return fs
    .readdirSync(threads)
    .some((thread) =>
      /^DedicatedWorker/.test(fs.readFileSync(`${threads}/${thread}/comm`, 'utf8')),
    );
}

function goOn(): void {
  stopped.splice(0).forEach((id) => process.kill(id, 'SIGCONT'));
}

/** A tab with the database open, here or through another one. */
async function tab(): Promise<Page> {
  const page = await context.newPage();
  await load(page);
  return page;
}

async function load(page: Page): Promise<void> {
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  await page.evaluate(async () => {
    window.db = await window.nacredb.connect('opfs://shared');
    await window.db.exec('create table if not exists t (id bigint primary key, tab int)');
  });
}

const isLeader = (page: Page): Promise<boolean> => page.evaluate(() => window.db.isLeader);

async function leaders(pages: Page[]): Promise<number> {
  return (await Promise.all(pages.map(isLeader))).filter((leads) => leads).length;
}

/** Inserts a row: 'done', or the kind of the error. */
function insert(page: Page, id: number): Promise<string> {
  return page.evaluate(async (id) => {
    try {
      await window.db.query('insert into t values (?, 0)', [id]);
      return 'done';
    } catch (error) {
      return (error as nacredb.NacreError).kind;
    }
  }, id);
}

function ids(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const { rows } = await window.db.query<{ id: bigint }>('select id from t order by id');
    return rows.map(({ id }) => Number(id));
  });
}

/** Counts rows with a live query. */
function follow(page: Page): Promise<void> {
  return page.evaluate(async () => {
    window.counts = [];
    await window.db.live.query<{ n: bigint }>('select count(*) as n from t', [], ({ rows }) => {
      window.counts.push(Number(rows[0]!.n));
    });
  });
}

const counted = (page: Page, n: number) =>
  page.waitForFunction((n) => window.counts.at(-1) === n, n, { timeout: 20_000 });

/** Inserts rows one after the other, from a number on, until the page is gone. */
function startWriting(page: Page, first: number): Promise<void> {
  return page.evaluate(async (first) => {
    window.wrote = { acknowledged: [], unknown: [], kinds: [] };
    const insert = await window.db.prepare('insert into t values (?, 1)');
    void (async () => {
      for (let id = first; ; id++) {
        try {
          await insert.run([id]);
          window.wrote.acknowledged.push(id);
        } catch (error) {
          const { kind, mayHaveRun } = error as nacredb.NacreError;
          window.wrote.kinds.push(kind);
          if (mayHaveRun) {
            window.wrote.unknown.push(id);
          }
        }
      }
    })();
  }, first);
}

/** Waits until a tab has written some more rows. */
async function progress(page: Page): Promise<void> {
  const before = await page.evaluate(() => window.wrote.acknowledged.length);
  const isMore = (before: number) => window.wrote.acknowledged.length > before + 5;
  await page.waitForFunction(isMore, before, { timeout: 20_000 });
}

test('ten tabs read and write one database', async () => {
  const tabs: Page[] = [];
  for (let i = 0; i < 10; i++) {
    tabs.push(await tab());
  }
  await Promise.all(tabs.map(follow));
  expect(await leaders(tabs)).toBe(1);
  const done = await Promise.all(tabs.map((page, i) => insert(page, i)));
  expect(done).toEqual(tabs.map(() => 'done'));
  expect(await ids(tabs[9]!)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await Promise.all(tabs.map((page) => counted(page, 10)));
  // The leader closes: another tab goes on for the eight that are left, live queries too.
  await tabs[0]!.close();
  tabs.shift();
  expect(await insert(tabs[8]!, 10)).toBe('done');
  await Promise.all(tabs.map((page) => counted(page, 11)));
  expect(await leaders(tabs)).toBe(1);
});

test('changes of a table are those of all tabs, and end with the leader', async () => {
  const [first, second] = [await tab(), await tab()];
  const next = async (): Promise<number[] | string> =>
    second.evaluate(async () => {
      try {
        const { value } = await window.changes.next();
        return (value?.inserted ?? []).map(({ id }) => Number(id));
      } catch (error) {
        return (error as nacredb.NacreError).kind;
      }
    });
  const begin = (): Promise<void> =>
    second.evaluate(async () => {
      window.changes = await window.db.live.changes<{ id: bigint }>('t');
    });
  await begin();
  await insert(first, 1);
  expect(await next()).toEqual([1]);
  await insert(second, 2);
  expect(await next()).toEqual([2]);
  const waiting = next();
  await first.close();
  // What the next leader committed before it began is not known to it.
  expect(await waiting).toBe('unavailable');
  await begin();
  await insert(second, 3);
  expect(await next()).toEqual([3]);
});

/** Begins a transaction that inserts a row, and a second one when it may go on. */
function beginTransaction(page: Page, id: number): Promise<void> {
  return page.evaluate(async (id) => {
    const { db } = window;
    await new Promise<void>((written) => {
      const work = async (tx: nacredb.Transaction): Promise<void> => {
        await tx.query('insert into t values (?, 1)', [id]);
        written();
        await new Promise<void>((resolve) => (window.goOn = resolve));
        await tx.query('insert into t values (?, 1)', [id + 1]);
      };
      db.transaction(work).catch((error: nacredb.NacreError) => {
        window.ended = `${error.kind} ${error.retryable} ${error.mayHaveRun}`;
      });
    });
  }, id);
}

/** Ends the process of a page. */
async function kill(page: Page): Promise<void> {
  const crashed = page.waitForEvent('crash');
  const session = await context.newCDPSession(page);
  session.send('Page.crash').catch(() => {});
  await crashed;
}

const ends = { closes: (page: Page) => page.close(), 'is killed': kill };

test.each(Object.entries(ends))(
  'a transaction fails with conflict when the leader %s in the middle of it',
  async (_, end) => {
    const [first, second] = [await tab(), await tab()];
    expect(await insert(first, 0)).toBe('done');
    await beginTransaction(second, 1);
    await beginTransaction(first, 11);
    await end(first);
    await second.evaluate(() => window.goOn());
    await second.waitForFunction(() => window.ended !== undefined);
    expect(await second.evaluate(() => window.ended)).toBe('conflict true false');
    // Nothing is left of the leader's own transaction either, and none of the locks.
    expect(await ids(second)).toEqual([0]);
    expect(await insert(second, 1)).toBe('done');
    expect(await insert(second, 11)).toBe('done');
  },
);

test('a temporary table that ends with the leader does not give way to the table it hid', async () => {
  const [first, second] = [await tab(), await tab()];
  await second.evaluate(async () => {
    await window.db.exec('create temporary table t (id bigint primary key, tab int)');
    await window.db.query('insert into t values (1, 1)');
  });
  await first.close();
  expect(await insert(second, 2)).toBe('conflict');
  // It was told once, and sees the other table now.
  expect(await ids(second)).toEqual([]);
  expect(await insert(second, 3)).toBe('done');
});

/** Takes minutes, and gives way meanwhile. */
const ENDLESS = 'select count(*) as n from generate_series(1, 300000000000)';

test.each(Object.entries(ends))(
  'what a follower runs ends when it %s, and its locks are free',
  async (_, end) => {
    const [first, second] = [await tab(), await tab()];
    await insert(first, 1);
    await first.evaluate(async () => {
      window.changes = await window.db.live.changes<{ id: bigint }>('t');
    });
    await second.evaluate(async (endless) => {
      const { db } = window;
      await new Promise<void>((written) => {
        const work = async (tx: nacredb.Transaction): Promise<void> => {
          await tx.query('update t set tab = 2 where id = 1');
          const running = tx.query(endless);
          written();
          await running;
        };
        db.transaction(work).catch(() => {});
      });
      // One that waits for its turn in the main session.
      void db.query(endless).catch(() => {});
      void db.query('insert into t values (99, 2)').catch(() => {});
    }, ENDLESS);
    await end(second);
    const update = first.evaluate(async () => {
      const since = performance.now();
      await window.db.query('update t set tab = 1 where id = 1');
      return performance.now() - since;
    });
    // A lock is waited for up to ten seconds.
    expect(await update).toBeLessThan(8_000);
    const storage = await first.evaluate(async () => (await window.db.storage()).place);
    expect(storage).toBe('opfs');
    expect(await ids(first)).toEqual([1]);
    // The engine is the same, which would have ended this.
    const updated = await first.evaluate(async () => {
      const { value } = await window.changes.next();
      return value?.updated.map(({ id }) => Number(id));
    });
    expect(updated).toEqual([1]);
  },
);

test('a signal stops a statement, here and in the tab that has the database open', async () => {
  const tabs = [await tab(), await tab()];
  for (const each of tabs) {
    const stopped = await each.evaluate(async (endless) => {
      const since = performance.now();
      const { db } = window;
      const kinds: string[] = [];
      const failed = (error: nacredb.NacreError): void => void kinds.push(error.kind);
      await db.query(endless, [], { signal: AbortSignal.timeout(200) }).catch(failed);
      const prepared = await db.prepare(endless);
      await prepared.run([], { signal: AbortSignal.timeout(200) }).catch(failed);
      const { rows } = await db.query<{ one: number }>('select 1 as one');
      return { kinds, rows, isSoon: performance.now() - since < 10_000 };
    }, ENDLESS);
    expect(stopped).toEqual({
      kinds: ['cancelled', 'cancelled'],
      rows: [{ one: 1 }],
      isSoon: true,
    });
  }
});

test('a follower exports what all tabs wrote, and imports it under another name', async () => {
  const [first, second] = [await tab(), await tab()];
  await insert(first, 1);
  await insert(second, 2);
  const found = await second.evaluate(async () => {
    const file = await window.db.export();
    const copy = await window.nacredb.connect('opfs://copy', { import: file });
    await copy.exec('insert into t values (3, 9)');
    const { rows } = await copy.query<{ id: bigint }>('select id from t order by id');
    return rows.map(({ id }) => Number(id));
  });
  expect(found).toEqual([1, 2, 3]);
  expect(await ids(first)).toEqual([1, 2]);
  // The copy is shared as any other, and its follower imports nothing over it.
  const other = await first.evaluate(async () => {
    const file = await window.db.export();
    const imports = window.nacredb.connect('opfs://copy', { import: file });
    const kind = await imports.then(
      () => 'opened',
      (error: nacredb.NacreError) => error.kind,
    );
    const copy = await window.nacredb.connect('opfs://copy');
    const { rows } = await copy.query<{ n: bigint }>('select count(*) as n from t');
    return { kind, n: Number(rows[0]!.n), leads: copy.isLeader };
  });
  expect(other).toEqual({ kind: 'already_exists', n: 3, leads: false });
});

test('a killed leader loses nothing that it has acknowledged', async () => {
  const [first, second, third] = [await tab(), await tab(), await tab()];
  await follow(third);
  await startWriting(second, 1_000_000);
  await startWriting(third, 2_000_000);
  await progress(second);
  await kill(first);
  await progress(second);
  await progress(third);
  const wrote = await second.evaluate(() => window.wrote);
  const found = new Set(await ids(third));
  expect(wrote.acknowledged.filter((id) => !found.has(id))).toEqual([]);
  expect(wrote.kinds.filter((kind) => kind !== 'unavailable')).toEqual([]);
  expect(await leaders([second, third])).toBe(1);
  const counts = await third.evaluate(() => window.counts);
  expect(counts.at(-1)).toBeGreaterThan(0);
});

test('a leader that navigates makes room, and follows when it comes back', async () => {
  const [first, second] = [await tab(), await tab()];
  expect(await isLeader(first)).toBe(true);
  await load(first);
  expect(await insert(second, 1)).toBe('done');
  expect(await insert(first, 2)).toBe('done');
  expect(await leaders([first, second])).toBe(1);
  expect(await ids(second)).toEqual([1, 2]);
});

const onLinux = test.skipIf(process.platform !== 'linux');

onLinux('a leader that is frozen makes room before', async () => {
  const [first, second] = [await tab(), await tab()];
  await insert(first, 1);
  await stopLeader(() => first.evaluate(() => document.dispatchEvent(new Event('freeze'))));
  expect(await insert(second, 2)).toBe('done');
  expect(await isLeader(second)).toBe(true);
  goOn();
  await first.evaluate(() => document.dispatchEvent(new Event('resume')));
  expect(await insert(first, 3)).toBe('done');
  expect(await isLeader(first)).toBe(false);
  expect(await ids(second)).toEqual([1, 2, 3]);
});

onLinux('a leader that stands still without a word makes the database unavailable', async () => {
  const [first, second] = [await tab(), await tab()];
  await insert(first, 1);
  await stopLeader();
  const since = Date.now();
  expect(await insert(second, 2)).toBe('unavailable');
  expect(Date.now() - since).toBeLessThan(30_000);
  goOn();
  // Nothing tells the other tab that the files are free: it tries again, as the error says.
  for (let tries = 0; (await insert(second, 3)) !== 'done'; tries++) {
    expect(tries).toBeLessThan(10);
  }
  expect(await insert(first, 4)).toBe('done');
  expect(await leaders([first, second])).toBe(1);
  expect((await ids(second)).filter((id) => id !== 2)).toEqual([1, 3, 4]);
});
