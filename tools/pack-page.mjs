/**
 * The notes page of `examples`, driven in Chromium from a folder of static files: it opens its
 * database, writes, is loaded again, reads, and uses what is in the second part of the engine.
 * Answers what it loaded for that.
 */

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as path from 'node:path';
import { Failure } from './lib.mjs';
import { brotliSize } from './size.mjs';

const MEDIA = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const TIMEOUT_MS = 60_000;

/**
 * Serves a folder on a free port of this machine, with the headers that its `headers.json` asks
 * for, if it has one. `loaded` collects the names of the files that were asked for.
 */
export async function serveFolder(folder) {
  const asked = path.join(folder, 'headers.json');
  const headers = fs.existsSync(asked) ? JSON.parse(fs.readFileSync(asked, 'utf8')) : {};
  const loaded = new Set();
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const name = pathname === '/' ? 'index.html' : path.normalize(pathname).slice(1);
    fs.readFile(path.join(folder, name), (error, data) => {
      if (!error) {
        loaded.add(name);
      }
      const type = MEDIA[path.extname(name)] ?? 'text/plain';
      response.writeHead(error ? 404 : 200, { ...headers, 'content-type': type });
      response.end(error ? 'not found' : data);
    });
  });
  await new Promise((resolve) => server.listen(0, 'localhost', resolve));
  const url = `http://localhost:${server.address().port}/`;
  return { url, loaded, close: () => server.close() };
}

/** Drives the page in `folder`, and answers the sizes of what it loads, compressed with Brotli. */
export async function checkPage(browser, folder) {
  const server = await serveFolder(folder);
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    const problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') {
        problems.push(message.text());
      }
    });
    await page.goto(server.url);
    await shows(page, '0 notes', problems);
    await page.fill('[name=text]', 'mother of pearl');
    await page.click('form button:not([type])');
    await shows(page, '1 notes', problems);
    const first = sizes(folder, server.loaded);

    await page.reload();
    await shows(page, '1 notes', problems);
    const [note] = await page.locator('li').allTextContents();
    await page.click('#longest');
    await shows(page, 'longest: mother of pearl', problems);
    if (note !== 'mother of pearl' || problems.length > 0) {
      throw new Failure(`the page showed '${note}' after a reload: ${problems.join('; ')}`);
    }
    const all = sizes(folder, server.loaded);
    return { first, all };
  } finally {
    await context.close();
    server.close();
  }
}

/** Waits until the page's status is `text`. */
async function shows(page, text, problems) {
  const status = page.locator('output');
  const isShown = (wanted) => {
    const { textContent } = document.querySelector('output') ?? {};
    return textContent === wanted || /Error/.test(textContent ?? '');
  };
  await page.waitForFunction(isShown, text).catch(() => {});
  const shown = await status.textContent().catch(() => '');
  if (shown !== text) {
    throw new Failure(`the page shows '${shown}', not '${text}': ${problems.join('; ')}`);
  }
}

function sizes(folder, names) {
  const sum = (extension) =>
    [...names]
      .filter((name) => path.extname(name) === extension)
      .reduce((bytes, name) => bytes + brotliSize(fs.readFileSync(path.join(folder, name))), 0);
  return { script: sum('.js'), wasm: sum('.wasm') };
}
