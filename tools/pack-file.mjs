/**
 * The example `browser-file` driven in Chromium from a `file://` URL: the page has no server and no
 * private file system, writes and reads, saves its database as a file, and opens that one again.
 */

import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Failure } from './lib.mjs';

/** Drives `notes.html` in a folder. */
export async function checkFile(browser, folder) {
  const context = await browser.newContext({ acceptDownloads: true });
  try {
    const page = await context.newPage();
    const problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    const shows = (text) => page.getByText(text, { exact: true }).first().waitFor();
    try {
      await page.goto(pathToFileURL(path.join(folder, 'notes.html')).href);
      await shows('0 notes');
      await page.fill('[name=text]', 'mother of pearl');
      await page.click('form button:not([type])');
      await shows('1 notes');
      await page.click('#longest');
      await shows('longest: mother of pearl');
      const saved = page.waitForEvent('download');
      await page.click('#save');
      const file = path.join(folder, 'saved.tar');
      await (await saved).saveAs(file);

      await page.reload();
      await shows('0 notes');
      await page.setInputFiles('#open', file);
      await shows('1 notes');
      await shows('mother of pearl');
    } catch (error) {
      const shown = await page.textContent('output').catch(() => '');
      throw new Failure(`the page shows '${shown}': ${[...problems, error].join('; ')}`);
    }
  } finally {
    await context.close();
  }
}
