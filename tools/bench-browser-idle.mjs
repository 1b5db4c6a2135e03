/**
 * `npm run bench -- browser-idle [--rows N]`: how long a message to the worker waits for background
 * work, in Chromium on a database in OPFS, while a transaction inserts a million rows and in the
 * seconds after it, when they are flushed and merged; then while `insertRows` loads as many into
 * another table, out of the order of their keys, and after that.
 *
 * A message is a prepared read of one row. Its delay is the time until its answer, less the median
 * of the same on an idle database. During the transaction it is sent between two of its statements,
 * which would otherwise be what it waits for; beside `insertRows` it is sent at any time.
 * Afterwards the rates of prepared reads, and of the same reads with `query()`, are measured in
 * turns.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { Failure } from './lib.mjs';
import { servePage } from './serve-page.mjs';
import { setup } from './setup.mjs';

const PAGE = `<!doctype html><title>browser-idle</title><script type="module">
import { connect } from './index.js';

const SELECT = 'select * from t where id = ?';
const db = await connect('opfs://browser-idle');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function create() {
  await db.exec('drop table if exists t; drop table if exists u; drop table if exists known');
  for (const table of ['t', 'u', 'known']) {
    await db.exec('create table ' + table + ' (id bigint primary key, region int, amount double, note text)');
  }
  await db.exec("insert into known values (1, 1, 1.5, 'a row that is there from the beginning')");
}

/** Milliseconds until each message of a stretch of time is answered. */
async function messages(read, seconds, times = []) {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    await message(read, times);
    await pause(2);
  }
  return times;
}

async function message(read, times) {
  const sent = performance.now();
  if ((await read.get([1])) === undefined) {
    throw new Error('the row is missing');
  }
  times.push(performance.now() - sent);
}

async function load(read, rows, some, times) {
  const row = '(' + ['?', '?', '?', '?'].join(',') + ')';
  const sql = 'insert into t values ' + Array(some).fill(row).join(',');
  await db.transaction(async (tx) => {
    const insert = await tx.prepare(sql);
    for (let at = 0; at < rows; at += some) {
      const values = [];
      for (let id = at; id < at + some; id++) {
        values.push(id, id % 20, id * 0.5, 'a row of the usual length, number ' + id);
      }
      await insert.run(values);
      await message(read, times);
    }
  });
  await message(read, times);
}

/** Loads rows by insertRows, and sends messages meanwhile. */
async function loadBeside(read, rows, times) {
  const id = Float64Array.from({ length: rows }, (_, at) => (at * 7919) % rows);
  const columns = {
    id,
    region: id.map((id) => id % 20),
    amount: id.map((id) => id * 0.5),
    note: Array.from(id, (id) => 'a row of the usual length, number ' + id),
  };
  let isLoading = true;
  const loaded = db.insertRows('u', columns).finally(() => (isLoading = false));
  while (isLoading) {
    await message(read, times);
    await pause(2);
  }
  if ((await loaded) !== rows) {
    throw new Error('not all rows are loaded');
  }
}

async function rate(seconds, rows, read) {
  const started = performance.now();
  let done = 0;
  for (; performance.now() - started < seconds * 1000; done++) {
    const id = (done * 7919) % rows;
    if ((await read(id)) === undefined) {
      throw new Error('row ' + id + ' is missing');
    }
  }
  return (done * 1000) / (performance.now() - started);
}

async function rates(rows) {
  const prepared = await db.prepare(SELECT);
  const of = { prepared: [], query: [] };
  for (let round = 0; round < 5; round++) {
    of.prepared.push(await rate(1, rows, (id) => prepared.get([id])));
    of.query.push(await rate(1, rows, async (id) => (await db.query(SELECT, [id])).rows[0]));
  }
  return of;
}

async function run(rows, some) {
  await create();
  const read = await db.prepare('select * from known where id = ?');
  await messages(read, 1);
  const alone = await messages(read, 3);
  const during = [];
  const started = performance.now();
  await load(read, rows, some, during);
  const seconds = (performance.now() - started) / 1000;
  const after = await messages(read, 15);
  const [{ n }] = (await db.query('select count(*) as n from t')).rows;
  if (Number(n) !== rows) {
    throw new Error('the table has ' + n + ' rows');
  }
  const beside = [];
  await loadBeside(read, rows, beside);
  await messages(read, 10, after);
  return { alone, during, beside, after, seconds, rates: await rates(rows) };
}

window.idle = { run };
</script>`;

const at = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const ascending = (values) => [...values].sort((a, b) => a - b);
const median = (values) => at(ascending(values), 0.5);

/** Runs the workload. */
export async function bench(args) {
  const [name, value] = args;
  if (args.length > 0 && (name !== '--rows' || !(Number(value) >= 500) || args.length > 2)) {
    throw new Failure('usage: npm run bench -- browser-idle [--rows N], of 500 rows at least');
  }
  const rows = Math.round(Number(value ?? 1_000_000) / 500) * 500;
  await setup({ browser: true });
  await buildPackage();
  // Without a profile, Chromium keeps the files of a page in memory, in buffers that it copies
  // whenever they have to grow.
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-browser-idle-'));
  let server, browser;
  try {
    server = await servePage(PAGE);
    const { chromium } = await import('playwright-core');
    browser = await chromium.launchPersistentContext(profile, launchOptions());
    const page = await browser.newPage();
    page.on('pageerror', (error) => console.error(`page: ${error.message}`));
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => window.idle !== undefined, null, { timeout: 30_000 });
    const measured = await page.evaluate(([all, some]) => window.idle.run(all, some), [rows, 500]);
    report(rows, measured);
  } finally {
    await browser?.close();
    server?.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

function report(rows, { alone, during, beside, after, seconds, rates }) {
  const usual = median(alone);
  console.log(
    `${rows} rows in ${seconds.toFixed(1)} s; a message alone takes ${usual.toFixed(2)} ms`,
  );
  const delays = (times) => ascending(times.map((ms) => Math.max(0, ms - usual)));
  for (const [stretch, times] of Object.entries({ alone, during, beside, after })) {
    const sorted = delays(times);
    const figures = [0.5, 0.99, 0.999, 1].map((share) => at(sorted, share).toFixed(2).padStart(8));
    console.log(
      `${stretch.padStart(8)}: ${sorted.length} messages, delay p50 p99 p99.9 max ${figures.join(' ')} ms`,
    );
  }
  const all = delays([...during, ...beside, ...after]);
  const [prepared, query] = [median(rates.prepared), median(rates.query)];
  console.log(
    `reads of a row a second: prepared ${prepared.toFixed(0)}, query() ${query.toFixed(0)}`,
  );
  console.log(
    `browser-idle: p99_ms=${at(all, 0.99).toFixed(2)} max_ms=${at(all, 1).toFixed(2)} query_ratio=${(query / prepared).toFixed(2)}`,
  );
}
