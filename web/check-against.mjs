/** Steps of `check.mjs` for the page that compares systems. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { DESKTOP, expect, PHONE, report, RESULTS } from './check-lib.mjs';

const SYSTEMS = ['nacre', 'sqlite', 'duckdb', 'pglite'];
/** PGlite's first start and a busy machine. */
const LONG_MS = 540_000;
const BUTTON = '.against-controls button[type=submit]';

/** Runs the whole comparison at the smallest scale. */
export async function against(page, address) {
  await page.goto(`${address}against.html`);
  await page.waitFor(BUTTON);
  expect('systems fetched before the start', await page.fetched('.wasm'), 0);
  const started = Date.now();
  await page.click(BUTTON);
  await page.waitFor('[data-state=done], [data-state=stopped]', LONG_MS);
  expect('how it ended', await page.textOf('.against-state'), (text) => text.startsWith('Done'));
  const outcomes = await page.comparison();
  expect('tasks', outcomes.length, 12);
  for (const { task, cells, equal } of outcomes) {
    for (const system of SYSTEMS) {
      expect(`${task}: ${system}`, cells[system], (cell) => cell?.ms > 0);
    }
    if (task !== 'start' && task !== 'load') {
      expect(`${task}: results`, equal, 'equal results');
    }
    report(
      `against ${task}`,
      ...SYSTEMS.map((system) => `${system} ${cells[system].text.replace('\t', ' ')} `),
    );
  }
  await pictures(page);
  expect('files that are left', await page.stored('against'), 0);
  report('against', `12 tasks, equal results, ${Math.round((Date.now() - started) / 1000)} s`);
}

/** Stops a comparison, which must leave nothing behind. */
export async function stoppedComparison(page, address) {
  await page.goto(`${address}against.html`);
  await page.click(BUTTON);
  await page.waitForText('.against-state', /SQLite/, LONG_MS);
  await page.click(BUTTON);
  await page.waitFor('[data-state=stopped]');
  expect('workers that are left', await page.workers(), 0);
  expect('files that are left', await page.stored('against'), 0);
  await page.close();
  report('against: stop', 'no worker and no file is left');
}

async function pictures(page) {
  fs.mkdirSync(RESULTS, { recursive: true });
  for (const [name, viewport, scheme] of [
    ['against-light', DESKTOP, 'light'],
    ['against-dark', DESKTOP, 'dark'],
    ['against-phone', PHONE, 'light'],
  ]) {
    await page.look(viewport, scheme);
    expect(`${name}: pixels of horizontal overflow`, await page.overflow(), 0);
    await page.screenshot(path.join(RESULTS, `${name}.png`), { whole: true });
  }
  await page.look(DESKTOP, 'light');
}
