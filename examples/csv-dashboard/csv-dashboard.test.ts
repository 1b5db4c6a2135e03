import * as fs from 'node:fs';
import * as path from 'node:path';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { cargoBinary, emptyFolder, run } from '../testing.js';

const script = (name: string) => path.join(import.meta.dirname, name);

test('a CSV file becomes a database and a page of charts, and a second run changes nothing', async () => {
  const NACRE = await cargoBinary('nacre');
  const folder = emptyFolder();
  const [csv, page, database] = ['trips.csv', 'page.html', 'trips'].map((name) =>
    path.join(folder, name),
  ) as [string, string, string];
  await run(process.execPath, [script('make-data.mjs'), csv, '5000']);
  const make = () =>
    run(process.execPath, [script('dashboard.mjs'), csv, page, database], { NACRE });
  expect(await make()).toContain('5,000 trips');
  const html = fs.readFileSync(page, 'utf8');
  // The figures are those of the file.
  const trips = fs
    .readFileSync(csv, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','));
  const revenue = trips.reduce((sum, trip) => sum + Number(trip[6]), 0);
  expect(html).toContain(`<strong>${revenue.toLocaleString('en-US')}</strong>revenue`);
  const fromHarbour = trips.filter((trip) => trip[3] === 'Harbour').length;
  expect(html).toContain(`>${fromHarbour.toLocaleString('en-US')} (`);
  await make();
  expect(fs.readFileSync(page, 'utf8')).toBe(html);

  const browser = await chromium.launch(launchOptions());
  try {
    const view = await browser.newPage();
    await view.goto(`file://${page}`);
    expect(await view.locator('svg').count()).toBe(3);
    expect(await view.locator('svg').nth(2).locator('rect').count()).toBe(7);
    if (process.env['NACRE_SCREENSHOT'] !== undefined) {
      await view.screenshot({
        path: path.join(process.env['NACRE_SCREENSHOT'], 'trips.png'),
        fullPage: true,
      });
    }
  } finally {
    await browser.close();
  }
});
