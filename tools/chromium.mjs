/**
 * A Chromium to drive: one that is installed, else Playwright's, else one from the system's
 * packages. `CHROMIUM_PATH` names one explicitly.
 */

import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { bin, Failure, probe, root, run } from './lib.mjs';

/** Headless, deterministic, and silent on the network. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const INSTALLED = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];

/** Path of a Chromium that starts, or null. */
export function findChromium() {
  const named = process.env.CHROMIUM_PATH;
  if (named !== undefined) {
    return fs.existsSync(named) ? named : null;
  }
  return (
    [...INSTALLED, playwrightsOwn()].find((place) => place !== null && fs.existsSync(place)) ?? null
  );
}

function playwrightsOwn() {
  try {
    const require = createRequire(path.join(root, 'package.json'));
    return require('playwright-core').chromium.executablePath();
  } catch {
    return null;
  }
}

/** What to give to Playwright's `chromium.launch`. */
export function launchOptions() {
  const executablePath = findChromium();
  if (executablePath === null) {
    throw new Failure('there is no Chromium: run npm run setup');
  }
  return { executablePath, args: CHROMIUM_ARGS, headless: true };
}

/** Installs a Chromium when there is none. */
export async function ensureChromium() {
  if (findChromium() !== null) {
    return;
  }
  console.log('setup: installing Chromium with Playwright');
  try {
    await run(bin('playwright-core'), ['install', 'chromium'], { quiet: true });
  } catch {
    if (probe('apt-get', ['--version']) === null) {
      throw new Failure('Chromium could not be installed: install one and set CHROMIUM_PATH');
    }
    console.log('setup: that failed, installing the package chromium');
    const asRoot = process.getuid?.() === 0 ? [] : ['sudo'];
    const [command, ...rest] = [...asRoot, 'apt-get', 'install', '-y', 'chromium'];
    await run(command, rest, { quiet: true });
  }
  if (findChromium() === null) {
    throw new Failure('Chromium could not be installed: install one and set CHROMIUM_PATH');
  }
}
