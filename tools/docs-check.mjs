/**
 * `npm run docs:check`: builds the site, opens it in headless Chromium and prints one line a step.
 * Pages open, their examples are there, search finds a page, dark mode is dark, the page of the
 * start works as it is written, axe finds nothing, and nothing is logged as an error. Leaves
 * screenshots in `test-results`.
 */

import * as fs from 'node:fs';
import * as http from 'node:http';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { chromium } from 'playwright-core';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { buildDocs, SITE } from './docs.mjs';
import { Failure, main, root } from './lib.mjs';
import { serveFolder } from './serve-folder.mjs';
import { servePage } from './serve-page.mjs';
import { setup } from './setup.mjs';

const RESULTS = path.join(root, 'test-results');
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 375, height: 812 };
/** One page of each kind: the front page, prose, code beside code, a long page, a generated one. */
const PAGES = ['', 'start.html', 'migrate/pglite.html', 'SQL.html', 'reference/api/database.html'];

function expect(what, actual, wanted) {
  const same = typeof wanted === 'function' ? wanted(actual) : actual === wanted;
  if (!same) {
    throw new Failure(`${what}: ${JSON.stringify(actual)}`);
  }
}

function report(step, text) {
  console.log(`${step.padEnd(12)} ${text}`);
}

/** A page whose errors in the console, failed requests and requests to other hosts are collected. */
async function openPage(context, problems) {
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') {
      problems.push(message.text());
    }
  });
  page.on('request', (request) => {
    if (!/^(http:\/\/(localhost|127\.0\.0\.1)|data:|blob:)/.test(request.url())) {
      problems.push(`a request to ${request.url()}`);
    }
  });
  return page;
}

/** The page itself: no error, no overflow, no finding of axe. */
async function checkPage(page, address, name, scheme) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(address + name, { waitUntil: 'networkidle' });
  expect(`${name}: a heading`, await page.locator('h1').count(), (count) => count >= 1);
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(`${name}: pixels of horizontal overflow`, overflow, 0);
  await page.addScriptTag({ path: AXE });
  const findings = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
  });
  expect(`${name} (${scheme}): findings of axe`, findings.join('\n'), '');
}

async function search(page, address) {
  await page.goto(`${address}start.html`, { waitUntil: 'networkidle' });
  await page.keyboard.press('Control+k');
  await page.locator('.VPLocalSearchBox input').fill('evict');
  const first = page.locator('.VPLocalSearchBox .result').first();
  await first.waitFor();
  const text = await page.locator('.VPLocalSearchBox .results').innerText();
  expect('results for “evict”', text, (found) => found.includes('Persist data'));
  await page.locator('.VPLocalSearchBox .result', { hasText: 'Keep the browser' }).first().click();
  await page.waitForURL('**/tasks/persist.html#*');
  report('search', '“evict” leads to Persist data');
}

async function dark(page, address) {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(`${address}start.html`, { waitUntil: 'networkidle' });
  const lightness = () =>
    page.evaluate(() => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
      const context = canvas.getContext('2d');
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, 1, 1);
      return context.getImageData(0, 0, 1, 1).data[1];
    });
  expect('the light page', await lightness(), (value) => value > 200);
  await page.locator('.VPNavBarAppearance button').click();
  expect('the dark page', await lightness(), (value) => value < 80);
  await page.reload();
  expect('the dark page after a reload', await lightness(), (value) => value < 80);
  await page.locator('.VPNavBarAppearance button').click();
  report('dark mode', 'by the system, and by a switch that is remembered');
}

/** The page that `start.md` shows, beside the built package. */
async function firstPage(page) {
  const text = fs.readFileSync(path.join(root, 'docs/start.md'), 'utf8');
  const [, html] = /```html\n([\s\S]*?)```/.exec(text);
  const server = await servePage(html);
  await page.route('**/favicon.ico', (route) => route.fulfill({ status: 204 }));
  try {
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.locator('input').fill('mother-of-pearl');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('li', { hasText: 'mother-of-pearl' }).waitFor();
    await page.reload();
    await page.locator('li', { hasText: 'mother-of-pearl' }).waitFor();
    report('first page', 'adds a note, and has it after a reload');
  } finally {
    server.close();
  }
}

async function screenshots(page, address) {
  fs.mkdirSync(RESULTS, { recursive: true });
  for (const [name, place, viewport, scheme] of [
    ['docs-home', '', DESKTOP, 'light'],
    ['docs-light', 'start.html', DESKTOP, 'light'],
    ['docs-dark', 'migrate/pglite.html', DESKTOP, 'dark'],
    ['docs-reference', 'reference/api/database.html', DESKTOP, 'light'],
    ['docs-phone', 'tasks/persist.html', PHONE, 'light'],
  ]) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(address + place, { waitUntil: 'networkidle' });
    await page.screenshot({ path: path.join(RESULTS, `${name}.png`) });
  }
  report('screenshots', 'test-results/docs-{home,light,dark,reference,phone}.png');
}

/** Runs all steps. The package and the site are built before. */
export async function checkDocs() {
  const serve = serveFolder(path.join(root, SITE), '/docs/');
  const server = http.createServer((request, response) =>
    serve(request, response, () => response.writeHead(404).end()),
  );
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launch(launchOptions());
  const problems = [];
  try {
    const address = `http://127.0.0.1:${server.address().port}/docs/`;
    const context = await browser.newContext({ viewport: DESKTOP });
    const page = await openPage(context, problems);
    for (const name of PAGES) {
      await checkPage(page, address, name, 'light');
      await checkPage(page, address, name, 'dark');
    }
    await page.setViewportSize(PHONE);
    for (const name of PAGES) {
      await checkPage(page, address, name, 'light');
    }
    await page.setViewportSize(DESKTOP);
    report('pages', `${PAGES.length} pages, light, dark and on a phone: axe finds nothing`);
    await search(page, address);
    await dark(page, address);
    await screenshots(page, address);
    await firstPage(await openPage(await browser.newContext(), problems));
    expect('errors in the console', problems.join('\n'), '');
    console.log('docs: all steps passed');
  } finally {
    await browser.close();
    server.close();
  }
}

if (process.argv[1] === import.meta.filename) {
  await main(async () => {
    await setup({ browser: true });
    await buildPackage();
    await buildDocs();
    await checkDocs();
  });
}
