import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { build, preview, type PreviewServer } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { emptyFolder, root } from '../testing.js';

const folder = import.meta.dirname;
let server: PreviewServer;
let browser: Browser;

beforeAll(async () => {
  const outDir = emptyFolder();
  await build({ root: folder, logLevel: 'warn', build: { outDir, emptyOutDir: true } });
  server = await preview({
    root: folder,
    logLevel: 'warn',
    build: { outDir },
    preview: { port: 0 },
  });
  browser = await chromium.launch(launchOptions());
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

async function add(page: Page, what: string, shop: string): Promise<void> {
  await page.fill('[name=what]', what);
  await page.fill('[name=shop]', shop);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText(what, { exact: true }).waitFor();
}

test('its sources type-check', () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', folder], { stdio: 'pipe' });
});

test('every part follows the changes of another, and a reload finds the list', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const errors: unknown[] = [];
  page.on('pageerror', (error) => errors.push(error));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(server.resolvedUrls!.local[0]!);
  await page.getByText('Nothing to buy.').waitFor();
  await add(page, 'Bread', 'Bakery');
  await add(page, 'Rolls', 'Bakery');
  await add(page, 'Apples', 'Market');
  const shops = () => page.locator('nav button').allTextContents();
  await page.getByText('Market (1)').waitFor();
  expect(await shops()).toEqual(['All', 'Bakery (2)', 'Market (1)']);
  await page.getByLabel('Rolls').click();
  await page.getByText('Bakery (1)').waitFor();
  await page.getByText('Bakery (1)').click();
  await page.getByText('Apples').waitFor({ state: 'detached' });
  expect(await page.locator('li').allTextContents()).toEqual(['Bread', 'Rolls']);
  await page.getByRole('button', { name: 'Remove what is bought' }).click();
  await page.getByText('Rolls').waitFor({ state: 'detached' });

  await page.reload();
  await page.getByText('Apples').waitFor();
  expect(await page.locator('li').allTextContents()).toEqual(['Bread', 'Apples']);
  if (process.env['NACRE_SCREENSHOT'] !== undefined) {
    await page.screenshot({ path: path.join(process.env['NACRE_SCREENSHOT'], 'shopping.png') });
  }
  expect(errors).toEqual([]);
  await context.close();
});
