/** Steps of `check.mjs` for the keyboard and for what axe finds. */

import { DESKTOP, expect, PHONE, report } from './check-lib.mjs';

const LOOKS = [
  ['light', DESKTOP, 'light'],
  ['dark', DESKTOP, 'dark'],
  ['phone', PHONE, 'light'],
  ['dark phone', PHONE, 'dark'],
];

/** Both pages, in every look, and the console with each kind of result. */
export async function accessible(page, address) {
  await keyboard(page);
  for (const query of ['aggregate', 'profile', 'wrong']) {
    await page.take(query);
    await everyLook(page, query);
  }
  await page.take('modes');
  await page.view('Chart');
  await everyLook(page, 'chart');
  await page.view('Table');
  await page.goto(`${address}against.html`);
  await page.waitFor('.against-controls');
  await everyLook(page, 'against');
  await page.goto(address);
  await page.waitFor('.console', 120_000);
  report('axe', `no violations: 5 views, ${LOOKS.map(([name]) => name).join(', ')}`);
}

async function everyLook(page, what) {
  for (const [name, viewport, scheme] of LOOKS) {
    await page.look(viewport, scheme);
    expect(`axe on ${what}, ${name}`, await page.axe(), (found) => found.length === 0);
    expect(`${what}, ${name}: pixels of horizontal overflow`, await page.overflow(), 0);
  }
  await page.look(DESKTOP, 'light');
}

/** From the result, Tab reaches everything in order, and Escape leaves the editor. */
async function keyboard(page) {
  await page.take('aggregate');
  const seen = [];
  for (let i = 0; i < 12; i += 1) {
    await page.press('Tab');
    seen.push(await page.focused());
  }
  expect('what Tab reaches after a card', seen, (names) => new Set(names).size > 8);
  report('keyboard', `Tab reaches ${new Set(seen).size} controls in 12 steps`);
}
