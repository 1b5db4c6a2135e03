/**
 * `npm run tabkill -- --times N`: three tabs of a Chromium write to one database; again and again one
 * of them, mostly the one that has it open, is killed, closed, reloaded, or goes elsewhere, at a
 * random moment, and another takes its place. After each time, all tabs must get on within 20 s, and
 * the database must have every row that was acknowledged (else `lost`), and no row that was never
 * tried or whose statement failed for certain (else `phantom`). `--seed` repeats the choices;
 * `--keep-engine` takes the engine as it was built last.
 */

import { chromium } from 'playwright-core';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { Failure, main } from './lib.mjs';
import { servePage } from './serve-page.mjs';
import { setup } from './setup.mjs';

const STUCK_MS = 20_000;
/** Rows that a tab must write after a kill. */
const PROGRESS_ROWS = 3;
/** Numbers that one tab has for its rows. */
const STRIDE = 1_000_000;
/** Kills after which a new database is begun, so that reading it stays quick. */
const PER_DATABASE = 50;
const URL = 'opfs://tabkill';

/** Opens the database and writes until it is stopped, or killed. Runs in the page. */
const PAGE = `<!doctype html><title>tabkill</title><script type="module">
import * as nacredb from './index.js';
let stopped = false;
let running = null;
window.connectTo = async (url) => {
  window.db = await nacredb.connect(url);
  await db.exec('create table if not exists t (id bigint primary key, tab int, note text)');
};
window.write = (tab, first) => {
  running = (async () => {
    const insert = await db.prepare('insert into t values (?, ?, ?)');
    const ways = [
      (ids) => insert.run([ids[0], tab, 'prepared']),
      (ids) => db.query('insert into t values (?, ?, ?)', [ids[0], tab, 'by text']),
      (ids) => db.transaction(async (tx) => {
        for (const id of ids) await tx.query('insert into t values (?, ?, ?)', [id, tab, 'transaction']);
      }),
      (ids) => db.insertRows('t', ids.map((id) => ({ id, tab, note: 'bulk' }))),
    ];
    for (let next = first, way = 0; !stopped; way++) {
      const ids = way % 4 < 2 ? [next] : [next, next + 1];
      next += ids.length;
      await report(tab, 'tried', ids, '');
      try {
        await ways[way % 4](ids);
        report(tab, 'acknowledged', ids, '');
      } catch (error) {
        report(tab, error.mayHaveRun ? 'unknown' : 'failed', ids, error.kind + ': ' + error.message);
      }
    }
  })();
};
window.stop = async () => {
  stopped = true;
  await running;
};
window.ids = async () => {
  const ids = [];
  const stream = db.stream('select id from t');
  for await (const batch of stream.batches()) {
    for (let i = 0; i < batch.rowCount; i++) ids.push(Number(batch.values(i)[0]));
  }
  return ids;
};
window.isReady = true;
</script>`;

/** Random numbers from a seed. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What was tried, and what came of it. */
class Ledger {
  fates = new Map();
  /** Rows that each tab has written. */
  written = new Map();
  surprises = [];

  report(tab, fate, ids, why) {
    ids.forEach((id) => this.fates.set(id, fate));
    if (fate === 'acknowledged') {
      this.written.set(tab, (this.written.get(tab) ?? 0) + ids.length);
    } else if (fate !== 'tried' && !/^(unavailable|conflict):/.test(why)) {
      this.surprises.push(why);
    }
  }

  /** Numbers of rows that are lost, and of those that must not be there. */
  compare(found) {
    const known = new Set(found);
    const lost = [...this.fates].filter(([id, fate]) => fate === 'acknowledged' && !known.has(id));
    const phantom = found.filter((id) => ['failed', undefined].includes(this.fates.get(id)));
    return { lost: lost.map(([id]) => id), phantom };
  }
}

/** The tabs of one browser context, which share a database. */
class Tabs {
  pages = [];
  #context;
  #url;
  #ledger;
  #next = 1;

  constructor(context, url, ledger) {
    this.#context = context;
    this.#url = url;
    this.#ledger = ledger;
  }

  /** Opens a tab that writes. */
  async open() {
    const page = await this.#context.newPage();
    // A page reports before it goes on, so that what it tried is known when it is killed.
    await page.exposeFunction('report', (...args) => this.#ledger.report(...args));
    await this.begin(page);
    this.pages.push(page);
    return page;
  }

  /** Lets a page that has loaded write, under a new number. */
  async begin(page) {
    page.tab = this.#next++;
    await page.goto(this.#url);
    await page.waitForFunction(() => window.isReady);
    await page.evaluate((url) => window.connectTo(url), URL);
    await page.evaluate(([tab, first]) => window.write(tab, first), [page.tab, page.tab * STRIDE]);
  }

  async leader() {
    for (const page of this.pages) {
      if (await page.evaluate(() => window.db.isLeader)) {
        return page;
      }
    }
    return null;
  }

  /** Ends a tab in one of the ways in which tabs end. */
  async end(page, how) {
    if (how === 'reload') {
      await this.begin(page);
      return;
    }
    this.pages = this.pages.filter((each) => each !== page);
    switch (how) {
      case 'crash': {
        const crashed = page.waitForEvent('crash');
        const session = await this.#context.newCDPSession(page);
        session.send('Page.crash').catch(() => {});
        await crashed;
        break;
      }
      case 'leave':
        await page.goto('about:blank');
        break;
      case 'close database':
        await page.evaluate(() => window.stop().then(() => window.db.close()));
        break;
    }
    await page.close();
  }

  /** Waits until every tab has written some more; answers whether all have. */
  async progress() {
    const { written } = this.#ledger;
    const goals = this.pages.map(({ tab }) => [tab, (written.get(tab) ?? 0) + PROGRESS_ROWS]);
    const deadline = Date.now() + STUCK_MS;
    while (goals.some(([tab, goal]) => (written.get(tab) ?? 0) < goal)) {
      if (Date.now() > deadline) {
        return false;
      }
      await pause(20);
    }
    return true;
  }
}

const WAYS = ['crash', 'crash', 'crash', 'close', 'leave', 'reload', 'close database'];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One kill, and what must hold after it. */
async function kill(tabs, ledger, chance, totals) {
  await pause(chance() * 400);
  const leader = await tabs.leader();
  const others = tabs.pages.filter((page) => page !== leader);
  const victim =
    leader !== null && chance() < 0.65 ? leader : others[Math.floor(chance() * others.length)];
  const how = WAYS[Math.floor(chance() * WAYS.length)];
  await tabs.end(victim, how);
  if (!(await tabs.progress())) {
    totals.stuck++;
    console.log(`  stuck after ${how} of ${victim === leader ? 'the leader' : 'a follower'}`);
  }
  if (tabs.pages.length < 3) {
    await tabs.open();
  }
  await check(tabs.pages[0], ledger, totals);
}

/** Compares the database with what is known. */
async function check(page, ledger, totals) {
  // What is written meanwhile may be there or not: only what was known before has to be.
  const known = new Ledger();
  known.fates = new Map(ledger.fates);
  const found = await page.evaluate(() => window.ids());
  const { lost } = known.compare(found);
  const { phantom } = ledger.compare(found);
  totals.lost += lost.length;
  totals.phantom += phantom.length;
  for (const [what, ids] of Object.entries({ lost, phantom })) {
    if (ids.length > 0) {
      console.log(`  ${what}: ${ids.slice(0, 10).join(', ')}`);
    }
  }
}

/** Kills tabs of one database until it is time for a new one. */
async function campaign(browser, url, times, chance, totals) {
  const context = await browser.newContext();
  const ledger = new Ledger();
  const tabs = new Tabs(context, url, ledger);
  for (let i = 0; i < 3; i++) {
    await tabs.open();
  }
  for (let i = 0; i < times; i++) {
    await kill(tabs, ledger, chance, totals);
    totals.runs++;
    if (totals.runs % 10 === 0) {
      console.log(line(totals));
    }
  }
  await Promise.all(tabs.pages.map((page) => page.evaluate(() => window.stop())));
  await check(tabs.pages[2], ledger, totals);
  await context.close();
  totals.surprises.push(...ledger.surprises);
  totals.unknown += [...ledger.fates.values()].filter((fate) => fate === 'unknown').length;
  totals.rows += [...ledger.written.values()].reduce((sum, rows) => sum + rows, 0);
}

function line({ runs, lost, phantom, stuck }) {
  return `tabkill: runs=${runs} lost=${lost} phantom=${phantom} stuck=${stuck}`;
}

function option(name, otherwise) {
  const at = process.argv.indexOf(name);
  return at === -1 ? otherwise : Number(process.argv[at + 1]);
}

await main(async () => {
  const times = option('--times', 50);
  await setup({ browser: true });
  await buildPackage({ keepEngine: process.argv.includes('--keep-engine') });
  const chance = random(option('--seed', 1));
  const totals = { runs: 0, lost: 0, phantom: 0, stuck: 0, rows: 0, unknown: 0, surprises: [] };
  const server = await servePage(PAGE);
  const browser = await chromium.launch(launchOptions());
  const url = `http://localhost:${server.address().port}/`;
  try {
    for (let left = times; left > 0; left -= PER_DATABASE) {
      await campaign(browser, url, Math.min(left, PER_DATABASE), chance, totals);
    }
  } finally {
    await browser.close();
    server.close();
  }
  for (const why of new Set(totals.surprises)) {
    console.log(`  a statement failed with ${why}`);
  }
  console.log(`${totals.rows} rows acknowledged, ${totals.unknown} may have been written`);
  console.log(line(totals));
  if (totals.lost + totals.phantom + totals.stuck + totals.surprises.length > 0) {
    throw new Failure('tabs that share a database failed');
  }
});
