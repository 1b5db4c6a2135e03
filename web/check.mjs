/**
 * Drives the demo in headless Chromium as a visitor would, and prints one line per step with its
 * figures. Builds everything first, serves the built files on loopback, and leaves screenshots in
 * `test-results`. Exits with 1 at the first failed expectation; an error in the page's console is a
 * failure too. With `--built` the package is taken as it was built last. Other words name the parts
 * to run: `console`, `features`, `access`, `files`,
 * `against`.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { chromium } from 'playwright-core';
import { build, preview } from 'vite';
import { buildPackage } from '../tools/build.mjs';
import { launchOptions } from '../tools/chromium.mjs';
import { main, root } from '../tools/lib.mjs';
import { buildTpch } from './build-tpch.mjs';
import { against, stoppedComparison } from './check-against.mjs';
import { files } from './check-files.mjs';
import { charts, counters, plan, scales, startUp, tabs, writer } from './check-features.mjs';
import { accessible } from './check-access.mjs';
import { count, DESKTOP, expect, PHONE, report, RESULTS } from './check-lib.mjs';
import { Page } from './check-page.mjs';

const WEB = path.join(root, 'web');
const ROWS = { lineitem: 60_175, orders: 15_000 };

function figures({ elapsedMs, rowsRead, bytesRead, segmentsRead, segmentsSkipped, roundTripMs }) {
  return [
    `${elapsedMs.toFixed(1)} ms in the engine (${roundTripMs.toFixed(1)} ms for the page)`,
    `rows read ${count(rowsRead)}`,
    `bytes read ${count(bytesRead)}`,
    `segments read ${segmentsRead}, skipped ${segmentsSkipped}`,
  ].join('  ');
}

async function firstStart(page, address) {
  const started = Date.now();
  await page.goto(address);
  await page.waitFor('.loading');
  await page.waitFor('.console', 60_000);
  const ms = Date.now() - started;
  const total = await page.number(`select count(*) from lineitem`);
  expect('rows in lineitem', total, ROWS.lineitem);
  expect('rows in orders', await page.number(`select count(*) from orders`), ROWS.orders);
  report('load', `86,805 rows in 8 tables  ${count(ms)} ms from navigation to the console`);
}

async function transactions(page) {
  const read = await page.take('read');
  expect('rows of the point read', read.rows, 1);
  expect('rows read by key', read.rowsRead, (rows) => rows <= 10);
  report('point read', '1 row ', figures(read));

  const changed = await page.take('change');
  expect('rows changed', changed.headline, '1 row changed');
  const again = await page.take('read');
  expect('the changed order', again.text, (text) => text.includes('changed in this tab'));
  report('update', '1 row ', figures(changed));
}

async function analytics(page) {
  const aggregate = await page.take('aggregate');
  expect('groups', aggregate.rows, 4);
  // From TPC-H's published answers for this scale; these columns do not depend on comments.
  for (const value of [
    '380456.00',
    '532348211.65',
    '505822441.4861',
    '526165934.000839',
    '14876',
  ]) {
    expect('the aggregate', aggregate.text, (text) => text.includes(value));
  }
  report('aggregate', '4 rows', figures(aggregate));

  const joined = await page.take('customers');
  expect('top customers', joined.rows, 10);
  report('join', '10 rows', figures(joined));
}

async function oneTransaction(page) {
  const before = await page.one('select sum(l_extendedprice * (1 - l_discount)) from lineitem');
  const both = await page.take('both');
  expect('statements in the transaction', both.steps, 4);
  const after = await page.one('select sum(l_extendedprice * (1 - l_discount)) from lineitem');
  expect('revenue after the update', after, (value) => value !== before);
  expect('revenue seen inside the transaction', both.text, (text) => text.includes(after));
  report('one transaction', '4 statements ', figures(both));

  const undone = await page.take('undo');
  expect('the price after a rollback', undone.text, (text) => !/\t0\.00/.test(text));
  report('rollback', '4 statements ', figures(undone));
}

async function storage(page) {
  await page.chooseTable('orders');
  const before = await page.layers();
  expect('layers drawn', before.drawn, true);
  expect('rows in the rowstore of orders', before.grains, (grains) => grains >= 1);
  expect('deleted rows drawn', before.pits, (pits) => pits >= 1);
  await page.flush();
  const after = await page.layers();
  expect('segments after a flush', after.segments, before.segments + 1);
  expect('rows in the rowstore after a flush', after.grains, 0);
  report('storage view', `orders: ${before.summary}, after a flush ${after.segments} segments`);
}

async function mistakes(page) {
  const wrong = await page.take('wrong');
  expect('kind of the error', wrong.kind, 'not_found');
  expect('position of the error', wrong.marked, 'o_total');
  await page.run('selec 1');
  expect('the next statement', await page.number('select count(*) from region'), 5);
  report('error', `${wrong.kind} under “${wrong.marked}”`, 'the next statement works');
}

async function explaining(page) {
  const price = 'select o_totalprice from orders where o_orderkey = 4711';
  const before = await page.one(price);
  await page.take('undo');
  const script = await page.script();
  const plan = await page.explain();
  expect('statements that ran', plan.steps, 0);
  expect('the script afterwards', await page.script(), script);
  expect('the price afterwards', await page.one(price), before);
  await page.explain('explain analyze delete from region; delete from nation');
  expect(
    'regions after explaining their deletion',
    await page.number('select count(*) from region'),
    5,
  );
  expect(
    'nations after explaining their deletion',
    await page.number('select count(*) from nation'),
    25,
  );
  await page.take('customers');
  const { rows } = await page.explain();
  expect('lines of the plan', rows, (lines) => lines > 3);
  expect('truncated lines of the plan', await page.cut(), 0);
  report('explain', `${rows} lines of a plan`, 'runs nothing');
}

async function openTransactions(page) {
  const comment = 'select r_comment from region where r_regionkey = 1';
  const before = await page.one(comment);
  await page.run("begin; update region set r_comment = 'mine' where r_regionkey = 1");
  await page.run('selec 1');
  expect(
    'the transaction after an error in a later script',
    await page.count('.editor-transaction'),
    1,
  );
  expect('its change', await page.one(comment), 'mine');
  await page.endTransaction('Roll back');
  expect('the change after a rollback', await page.one(comment), before);
  await page.run('begin; delete from region; selec 1');
  expect('the transaction of a script with an error', await page.count('.editor-transaction'), 0);
  expect('regions', await page.number('select count(*) from region'), 5);
  report('transactions', 'an error rolls back only the transaction of its own script');
}

async function quoting(page) {
  expect('a string with a backslash', await page.one("select E'it\\'s; x'"), "it's; x");
  const name = 'my "table';
  await page.run('create table "my ""table" (a int); insert into "my ""table" values (1)');
  await page.chooseTable(name);
  await page.flush();
  expect('its segments', (await page.layers()).segments, 1);
  await page.run('drop table "my ""table"');
  report('quoting', 'strings and names with quotes');
}

async function stopping(page) {
  const script =
    'select count(*) from lineitem a, lineitem b, lineitem c where a.l_tax + b.l_tax > c.l_tax';
  const { cards, loads, ms } = await page.stop(script);
  expect('cards enabled meanwhile', cards, 0);
  expect('reloads', loads, 0);
  expect('how it ended', await page.textOf('.results'), (text) => text.includes('cancelled'));
  expect('the script afterwards', await page.script(), script);
  expect('rows in lineitem', await page.number('select count(*) from lineitem'), ROWS.lineitem);
  report('stop', `an endless query is stopped in ${ms} ms, and the page goes on`);
}

async function reset(page) {
  await page.run('begin; delete from region');
  await page.reset();
  expect('regions', await page.number('select count(*) from region'), 5);
  report('reset', 'works with an open transaction');
}

async function reload(page) {
  const started = Date.now();
  await page.reload();
  await page.waitFor('.console', 30_000);
  const ms = Date.now() - started;
  expect('the load', await page.textOf('.bar-loaded'), 'opened with your earlier changes');
  const order = await page.take('read');
  expect('the changed order after a reload', order.text, (text) =>
    text.includes('changed in this tab'),
  );
  expect(
    'rows in lineitem after a reload',
    await page.number('select count(*) from lineitem'),
    ROWS.lineitem,
  );
  report('reload', `${count(ms)} ms to the console`, 'everything found ', figures(order));
}

async function screenshots(page) {
  fs.mkdirSync(RESULTS, { recursive: true });
  await page.take('aggregate');
  for (const [name, viewport, scheme] of [
    ['demo-light', DESKTOP, 'light'],
    ['demo-dark', DESKTOP, 'dark'],
    ['demo-phone', PHONE, 'light'],
  ]) {
    await page.look(viewport, scheme);
    expect(`${name}: open completion lists`, await page.count('.cm-tooltip'), 0);
    const wide = await page.overflow();
    expect(`${name}: pixels of horizontal overflow`, wide, 0);
    await page.screenshot(path.join(RESULTS, `${name}.png`));
  }
  await page.look(DESKTOP, 'light');
  report('screenshots', 'test-results/demo-{light,dark,phone}.png');
}

async function secondTab(page, other, address) {
  await other.goto(address);
  await other.waitFor('.console', 30_000);
  const rows = () => other.number('select count(*) from orders');
  expect('rows in orders in the second tab', await rows(), ROWS.orders);
  await page.close();
  expect('rows in orders after the first tab has closed', await rows(), ROWS.orders);
  report('second tab', 'shares the database, and goes on when the first tab closes');
}

async function interrupted(page, address) {
  await page.goto(address);
  await page.waitFor('.growth-row.loading:last-child', 60_000);
  await page.reload();
  await page.waitFor('.console', 60_000);
  expect('rows in lineitem', await page.number('select count(*) from lineitem'), ROWS.lineitem);
  report('interrupted', 'an interrupted first load starts again');
}

async function withoutFiles(page, address) {
  await page.withoutFileSystem();
  await page.goto(address);
  await page.waitFor('.console', 60_000);
  expect('the notice', await page.textOf('.notice'), (text) => text.includes('In memory only'));
  expect('rows in orders', await page.number('select count(*) from orders'), ROWS.orders);
  report('no file system', 'in memory, with a notice');
}

async function withoutGenerator(page, address) {
  await page.without('nacre_web_tpch_bg');
  await page.goto(address);
  await page.waitFor('[data-screen=failed]');
  expect('the screen', await page.textOf('h1'), 'The data could not be generated');
  expect('the reason', await page.textOf('[data-screen=failed]'), (text) =>
    text.includes('generator'),
  );
  report('no generator', 'fails with a notice');
}

async function checkConsole(browser, address) {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: 'light' });
  const page = await Page.open(context);
  await firstStart(page, address);
  await transactions(page);
  await analytics(page);
  await oneTransaction(page);
  await storage(page);
  await mistakes(page);
  await explaining(page);
  await openTransactions(page);
  await quoting(page);
  await reload(page);
  await stopping(page);
  await screenshots(page);
  await reset(page);
  await secondTab(page, await Page.open(context), address);
  await interrupted(await Page.open(await browser.newContext()), address);
  await withoutGenerator(await Page.open(await browser.newContext()), address);
  await withoutFiles(await Page.open(await browser.newContext()), address);
}

async function checkFiles(browser, address) {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: 'light' });
  const page = await Page.open(context);
  await page.goto(address);
  await page.waitFor('.console', 60_000);
  await files(page);
  await context.close();
}

async function checkAgainst(_, address) {
  // A profile on disk: files of a private window are in memory, behind messages to another process.
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-demo-'));
  const context = await chromium.launchPersistentContext(profile, {
    ...launchOptions(),
    viewport: DESKTOP,
    colorScheme: 'light',
  });
  try {
    await stoppedComparison(await Page.open(context), address);
    await against(await Page.open(context), address);
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

async function checkFeatures(browser, address) {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: 'light' });
  const page = await Page.open(context);
  await page.goto(address);
  await page.waitFor('.console', 120_000);
  await startUp(page);
  await plan(page);
  await charts(page);
  await counters(page);
  await writer(page);
  await tabs(page);
  await scales(page);
  await context.close();
}

async function checkAccess(browser, address) {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: 'light' });
  const page = await Page.open(context);
  await page.goto(address);
  await page.waitFor('.console', 120_000);
  await accessible(page, address);
  await context.close();
}

const PARTS = {
  features: checkFeatures,
  access: checkAccess,
  console: checkConsole,
  files: checkFiles,
  against: checkAgainst,
};

async function check() {
  const options = process.argv.slice(2);
  if (!options.includes('--built')) {
    await buildPackage();
  }
  const named = Object.keys(PARTS).filter((part) => options.includes(part));
  await buildTpch();
  await build({ root: WEB, logLevel: 'error' });
  const server = await preview({
    root: WEB,
    logLevel: 'warn',
    preview: { host: '127.0.0.1', port: 0 },
  });
  const browser = await chromium.launch(launchOptions());
  try {
    for (const part of named.length > 0 ? named : Object.keys(PARTS)) {
      await PARTS[part](browser, server.resolvedUrls.local[0]);
    }
    console.log('demo: all steps passed');
  } finally {
    await browser.close();
    await server.close();
  }
}

await main(check);
