/** A database in the tabs of a Firefox: what its users rely on, and what browsers do differently. */

import * as fs from 'node:fs';
import type * as nacredb from 'nacredb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  findFirefox,
  launchFirefox,
  type Firefox,
  type FirefoxContext,
  type FirefoxPage,
} from '../../tools/firefox.mjs';
import { FULL, fillUp } from './quota.js';
import { serve, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
    acknowledged: number;
    counts: number[];
    ended: string | undefined;
    goOn: () => void;
  }
}

let server: Server;
let firefox: Firefox;
let context: FirefoxContext;

/** A page without a database. */
async function page(): Promise<FirefoxPage> {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  return page;
}

/** Opens the database in a page, with a table. */
async function open(page: FirefoxPage): Promise<FirefoxPage> {
  await page.evaluate(async () => {
    window.db = await window.nacredb.connect('opfs://shared');
    await window.db.exec('create table if not exists t (id bigint primary key, note text)');
  });
  return page;
}

const tab = async (): Promise<FirefoxPage> => open(await page());

async function reload(page: FirefoxPage): Promise<void> {
  await page.reload();
  await page.waitForFunction(() => window.nacredb !== undefined);
}

/** Inserts a row: 'done', or the kind of the error. */
function insert(page: FirefoxPage, id: number): Promise<string> {
  return page.evaluate(async (id) => {
    try {
      await window.db.query('insert into t values (?, ?)', [id, 'x']);
      return 'done';
    } catch (error) {
      return (error as nacredb.NacreError).kind;
    }
  }, id);
}

function ids(page: FirefoxPage): Promise<number[]> {
  return page.evaluate(async () => {
    const { rows } = await window.db.query<{ id: bigint }>('select id from t order by id');
    return rows.map(({ id }) => Number(id));
  });
}

const isLeader = (page: FirefoxPage): Promise<boolean> => page.evaluate(() => window.db.isLeader);

async function leaders(pages: FirefoxPage[]): Promise<number> {
  return (await Promise.all(pages.map(isLeader))).filter((leads) => leads).length;
}

/** Counts rows with a live query. */
function follow(page: FirefoxPage): Promise<void> {
  return page.evaluate(async () => {
    window.counts = [];
    await window.db.live.query<{ n: bigint }>('select count(*) as n from t', [], ({ rows }) => {
      window.counts.push(Number(rows[0]!.n));
    });
  });
}

const counted = (page: FirefoxPage, n: number): Promise<void> =>
  page.waitForFunction((n) => window.counts.at(-1) === n, n);

/** Begins a transaction that inserts 1, and then 2 when it may go on. */
function beginTransaction(page: FirefoxPage): Promise<void> {
  return page.evaluate(async () => {
    await new Promise<void>((written) => {
      const work = async (tx: nacredb.Transaction): Promise<void> => {
        await tx.query("insert into t values (1, 'x')");
        written();
        await new Promise<void>((resolve) => (window.goOn = resolve));
        await tx.query("insert into t values (2, 'x')");
      };
      window.db.transaction(work).catch((error: nacredb.NacreError) => {
        window.ended = `${error.kind} ${error.retryable} ${error.mayHaveRun}`;
      });
    });
  });
}

/** The processes of the browser's tabs in which a worker runs. */
function tabsWithWorker(): number[] {
  const parents = new Map<number, number>();
  const withWorker: number[] = [];
  for (const id of fs.readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      const status = fs.readFileSync(`/proc/${id}/status`, 'utf8');
      parents.set(id, Number(/^PPid:\s+(\d+)/m.exec(status)![1]));
      if (/^Name:\s+Isolated Web/.test(status) && hasWorker(id)) {
        withWorker.push(id);
      }
    } catch {
      // It has ended meanwhile.
    }
  }
  const isOurs = (id: number | undefined): boolean =>
    id !== undefined && (id === firefox.pid || isOurs(parents.get(id)));
  return withWorker.filter(isOurs);
}

/** Kills the process of the tab that has the database open: of all pages, only it has a worker. */
async function killLeader(): Promise<void> {
  // Tabs of an earlier test end some time after they are closed.
  const [leader] = await vi.waitFor(() => {
    const tabs = tabsWithWorker();
    expect(tabs).toHaveLength(1);
    return tabs;
  }, 20_000);
  process.kill(leader!, 'SIGKILL');
}

function hasWorker(id: number): boolean {
  const threads = `/proc/${id}/task`;
  return fs
    .readdirSync(threads)
    .some((thread) => fs.readFileSync(`${threads}/${thread}/comm`, 'utf8') === 'DOM Worker\n');
}

describe.skipIf(findFirefox() === null)('in Firefox', () => {
  beforeAll(async () => {
    server = await serve();
    firefox = await launchFirefox();
  });

  afterAll(async () => {
    await firefox.close();
    server.close();
  });

  beforeEach(async () => {
    context = await firefox.newContext();
  });

  afterEach(() => context.close());

  test('a reload finds everything without a close before it', async () => {
    const writer = await tab();
    await writer.evaluate(() => {
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
    await writer.waitForFunction(() => window.acknowledged > 50);
    const least = await writer.evaluate(() => window.acknowledged);
    await reload(writer);
    const found = await ids(await open(writer));
    expect(found.length).toBeGreaterThanOrEqual(least);
    expect(found).toEqual(found.map((_, i) => i));
  });

  test('two tabs share a database, and live queries hear of the other tab', async () => {
    const [first, second] = [await tab(), await tab()];
    expect([await isLeader(first), await isLeader(second)]).toEqual([true, false]);
    await Promise.all([follow(first), follow(second)]);
    expect(await insert(second, 1)).toBe('done');
    await Promise.all([counted(first, 1), counted(second, 1)]);
    expect(await insert(first, 2)).toBe('done');
    await Promise.all([counted(first, 2), counted(second, 2)]);
    // The leader comes back as a follower, and the database is there.
    await reload(first);
    await open(first);
    expect([await isLeader(first), await isLeader(second)]).toEqual([false, true]);
    expect(await ids(first)).toEqual([1, 2]);
  });

  test('ten tabs read and write one database', async () => {
    const tabs: FirefoxPage[] = [];
    for (let i = 0; i < 10; i++) {
      tabs.push(await tab());
    }
    await follow(tabs[9]!);
    expect(await leaders(tabs)).toBe(1);
    const done = await Promise.all(tabs.map((page, i) => insert(page, i)));
    expect(done).toEqual(tabs.map(() => 'done'));
    await counted(tabs[9]!, 10);
    await tabs.shift()!.close();
    // What is sent to a tab that is about to go may be answered with `unavailable`.
    await vi.waitFor(async () => expect(await leaders(tabs)).toBe(1), 10_000);
    expect(await insert(tabs[8]!, 10)).toBe('done');
    await counted(tabs[8]!, 11);
    expect(await leaders(tabs)).toBe(1);
  });

  const onLinux = test.skipIf(process.platform !== 'linux');

  onLinux('a transaction fails with conflict when its leader is killed', async () => {
    const [first, second] = [await tab(), await tab()];
    expect(await insert(first, 0)).toBe('done');
    await beginTransaction(second);
    await killLeader();
    await second.evaluate(() => window.goOn());
    await second.waitForFunction(() => window.ended !== undefined);
    expect(await second.evaluate(() => window.ended)).toBe('conflict true false');
    expect(await ids(second)).toEqual([0]);
    expect(await insert(second, 1)).toBe('done');
  });

  test('a transaction that is open when the page goes away is rolled back', async () => {
    const only = await tab();
    expect(await insert(only, 0)).toBe('done');
    await beginTransaction(only);
    await reload(only);
    expect(await ids(await open(only))).toEqual([0]);
  });

  test('a signal stops a statement, here and in the tab that has the database open', async () => {
    const tabs = [await tab(), await tab()];
    for (const each of tabs) {
      const stopped = await each.evaluate(async () => {
        const sql = 'select count(*) as n from generate_series(1, 3000000000)';
        const { db } = window;
        const since = performance.now();
        const kind = await db
          .query(sql, [], { signal: AbortSignal.timeout(200) })
          .catch((error: nacredb.NacreError) => error.kind);
        const { rows } = await db.query<{ one: number }>('select 1 as one');
        return { kind, rows, isSoon: performance.now() - since < 10_000 };
      });
      expect(stopped).toEqual({ kind: 'cancelled', rows: [{ one: 1 }], isSoon: true });
    }
  });

  test('an exported database is imported under another name', async () => {
    const [first, second] = [await tab(), await tab()];
    await insert(first, 1);
    const found = await second.evaluate(async () => {
      const file = await window.db.export();
      const copy = await window.nacredb.connect('opfs://copy', { import: file });
      await copy.exec("insert into t values (2, 'only in the copy')");
      await copy.close();
      const again = await window.nacredb.connect('opfs://copy');
      const { rows } = await again.query<{ id: bigint }>('select id from t order by id');
      await again.close();
      return rows.map(({ id }) => Number(id));
    });
    expect(found).toEqual([1, 2]);
    expect(await ids(first)).toEqual([1]);
  });

  test('a worker of the page opens it in its own thread', async () => {
    const opened = await (
      await page()
    ).evaluate(async (url) => {
      const code = `
        const { connectInThread } = await import('${url}index.js');
        const db = await connectInThread('opfs://own');
        await db.exec('create table t (id int primary key); insert into t values (7)');
        const one = await db.prepare('select id from t where id = ?');
        const row = one.getSync([7]);
        await db.close();
        postMessage(row.id);`;
      const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
      const worker = new Worker(script, { type: 'module' });
      return new Promise<number>((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
      });
    }, server.url);
    expect(opened).toBe(7);
  });
});

describe.skipIf(findFirefox() === null)('in private windows of Firefox', () => {
  beforeAll(async () => {
    server = await serve();
    firefox = await launchFirefox({ 'browser.privatebrowsing.autostart': true });
    context = firefox.defaultContext;
  });

  afterAll(async () => {
    await firefox.close();
    server.close();
  });

  /** Opens a database: what keeps it, or the kind of the error. */
  const opened = (page: FirefoxPage, fallback: 'none' | 'indexeddb'): Promise<string> =>
    page.evaluate(async (fallback) => {
      try {
        window.db = await window.nacredb.connect('opfs://private', { fallback });
        await window.db.exec('create table if not exists t (id bigint primary key, note text)');
        return (await window.db.storage()).place;
      } catch (error) {
        return (error as nacredb.NacreError).kind;
      }
    }, fallback);

  test('there are no private files, and IndexedDB takes their place', async () => {
    const only = await page();
    expect(await opened(only, 'none')).toBe('unsupported');
    expect(await opened(only, 'indexeddb')).toBe('indexeddb');
    expect(await insert(only, 1)).toBe('done');
    await reload(only);
    expect(await opened(only, 'indexeddb')).toBe('indexeddb');
    expect(await ids(only)).toEqual([1]);
  });
});

describe.skipIf(findFirefox() === null)('where Firefox has little storage', () => {
  beforeAll(async () => {
    server = await serve();
    // In kB, of all origins; one origin gets a part of it.
    firefox = await launchFirefox({ 'dom.quotaManager.temporaryStorage.fixedLimit': 60_000 });
    context = firefox.defaultContext;
  });

  afterAll(async () => {
    await firefox.close();
    server.close();
  });

  test('the quota is exceeded in a commit', async () => {
    const only = await tab();
    // What the application frees later.
    await only.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const file = await (await root.getFileHandle('ballast', { create: true })).createWritable();
      await file.write(new Uint8Array(4_000_000));
      await file.close();
    });
    const filled = await only.evaluate(fillUp);
    expect(filled.errors).toEqual(FULL);
    expect(filled.acknowledged).toBeGreaterThan(20);
    expect(filled.found).toBe(filled.acknowledged);
    const found = await only.evaluate(async () => {
      await (await navigator.storage.getDirectory()).removeEntry('ballast');
      const db = await window.nacredb.connect('opfs://shared');
      await db.query("insert into filler values (1000000, 'there is room again')");
      const { rows } = await db.query<{ n: bigint }>('select count(*) as n from filler');
      await db.close();
      return Number(rows[0]!.n);
    });
    expect(found).toBe(filled.acknowledged + 1);
  });
});
