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

async function add(page: Page, category: string, what: string, amount: string): Promise<void> {
  await page.fill('[name=category]', category);
  await page.fill('[name=what]', what);
  await page.fill('[name=amount]', amount);
  await page.click('#add button');
  await page.getByText(what, { exact: true }).waitFor();
}

test('its sources type-check', () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', folder], { stdio: 'pipe' });
});

test('expenses are added up by category, removed, and found after a reload', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const errors: unknown[] = [];
  page.on('pageerror', (error) => errors.push(error));
  await page.goto(server.resolvedUrls!.local[0]!);
  await page.getByText('No expenses yet.').waitFor();
  await add(page, 'Food', 'Bread', '3.10');
  await add(page, 'Food', 'Cheese', '6.90');
  await add(page, 'Travel', "Train, 'first' class", '40');
  await add(page, 'Books', 'A mistake', '99.99');
  await page.getByRole('button', { name: 'Remove A mistake' }).click();
  await page.getByText('A mistake').waitFor({ state: 'detached' });
  const bars = () => page.locator('.bar').allTextContents();
  expect(await bars()).toEqual(['Travel40.00', 'Food10.00']);

  const second = await context.newPage();
  await second.goto(page.url());
  await second.getByText('Bread').waitFor();
  await add(second, 'Books', 'A novel', '5');
  await page.getByText('A novel', { exact: true }).waitFor();
  await second.getByRole('button', { name: 'Remove A novel' }).click();
  await page.getByText('A novel', { exact: true }).waitFor({ state: 'detached' });
  await second.close();

  await page.reload();
  await page.getByText('Bread').waitFor();
  expect(await bars()).toEqual(['Travel40.00', 'Food10.00']);
  expect(await page.locator('.fill').first().getAttribute('style')).toContain('80%');
  expect(await page.locator('#rows tr').count()).toBe(3);
  if (process.env['NACRE_SCREENSHOT'] !== undefined) {
    await page.screenshot({ path: path.join(process.env['NACRE_SCREENSHOT'], 'expenses.png') });
  }
  expect(errors).toEqual([]);
  await context.close();
});
