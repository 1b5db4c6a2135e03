import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { run } from '../testing.js';

const folder = import.meta.dirname;
let server: ChildProcess;
let url: string;
let browser: Browser;

beforeAll(async () => {
  await run(process.execPath, ['--input-type=module', '-e', inFolder('build.mjs')]);
  server = spawn(process.execPath, [path.join(folder, 'server.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(server.stdout!, 'data')) as [Buffer];
  url = line.toString().trim();
  browser = await chromium.launch(launchOptions());
});

afterAll(async () => {
  await browser?.close();
  server?.kill();
});

/** A program that runs a script of the example in the example's folder. */
function inFolder(script: string): string {
  const file = JSON.stringify(path.join(folder, script));
  return `process.chdir(${JSON.stringify(folder)}); await import(${file});`;
}

/** Changes a byte of a built file while `during` runs. */
async function tampered(name: string, during: () => Promise<void>): Promise<void> {
  const file = path.join(folder, 'dist', name);
  const before = fs.readFileSync(file);
  fs.writeFileSync(file, Buffer.concat([before, Buffer.from('\n')]));
  try {
    await during();
  } finally {
    fs.writeFileSync(file, before);
  }
}

async function opened(): Promise<{ page: Page; messages: string[] }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const messages: string[] = [];
  page.on('console', (message) => messages.push(message.text()));
  page.on('pageerror', (error) => messages.push(error.message));
  await page.goto(url);
  return { page, messages };
}

test('the page works under its policy, and violates nothing', async () => {
  const { page, messages } = await opened();
  await page.getByText('0 notes').waitFor();
  await page.fill('[name=text]', 'mother of pearl');
  await page.click('form button:not([type])');
  await page.getByText('1 notes').waitFor();
  await page.reload();
  await page.getByText('mother of pearl').waitFor();
  await page.click('#longest');
  await page.getByText('longest: mother of pearl').waitFor();
  expect(messages).toEqual([]);
  // The policy is in force.
  const violated = page.evaluate(() => {
    return new Promise<string>((resolve) => {
      document.addEventListener('securitypolicyviolation', (event) =>
        resolve(event.violatedDirective),
      );
      fetch('http://127.0.0.1:1/').catch(() => {});
    });
  });
  expect(await violated).toBe('connect-src');
  await page.context().close();
});

test.each(['main.js', 'nacredb/index.js', 'nacredb/nacre_bg.wasm'])(
  'a changed %s is not used',
  async (name) => {
    await tampered(name, async () => {
      const { page, messages } = await opened();
      await expect.poll(() => messages.join('\n')).toMatch(/digest|integrity/);
      expect(await page.locator('output').textContent()).not.toContain('notes');
      await page.context().close();
    });
  },
);
