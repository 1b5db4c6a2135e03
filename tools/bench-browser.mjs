/**
 * `npm run bench -- browser [--rows N] [--scale F] [--rounds N] [--only PHASE,…] [--built]`: Nacre
 * beside SQLite (default and tuned), DuckDB-Wasm and PGlite in Chromium, on databases in OPFS that
 * all are open in one page. Results must be equal. With `--built` the package is taken as it was built
 * last. The pages are in `bench/web`; the other systems' packages are those that the demo compares, in
 * the versions that its manifest fixes.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildTpch } from '../web/build-tpch.mjs';
import { bundlePages, servePages, versions } from './bench-browser/pages.mjs';
import * as phases from './bench-browser/phases.mjs';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { Failure, root } from './lib.mjs';
import { setup } from './setup.mjs';

const PHASES = [
  'start',
  'load',
  'points',
  'commits',
  'scans',
  'tpch',
  'first',
  'threads',
  'memory',
];
/** Phases that need all systems open in one page, and the rows loaded. */
const IN_ONE_PAGE = ['load', 'points', 'commits', 'scans', 'tpch'];
const TPCH_TABLES = [
  ...['region', 'nation', 'supplier', 'customer'],
  ...['part', 'partsupp', 'orders', 'lineitem'],
];

function options(args) {
  const given = { rows: 1_000_000, scale: 0.1, rounds: 5, count: 5000, commits: 500 };
  let only = PHASES;
  let isBuilt = false;
  for (let at = 0; at < args.length; at += 1) {
    const name = args[at].replace(/^--/, '');
    if (name === 'built') {
      isBuilt = true;
    } else if (name === 'only') {
      only = (args[(at += 1)] ?? '').split(',');
    } else if (name in given && Number(args[at + 1]) > 0) {
      given[name] = Number(args[(at += 1)]);
    } else {
      throw new Failure(
        'usage: npm run bench -- browser [--rows N] [--scale F] [--rounds N] [--count N] [--commits N] [--only PHASE,…] [--built]',
      );
    }
  }
  const wrong = only.find((name) => !PHASES.includes(name));
  if (wrong !== undefined) {
    throw new Failure(`there is no phase '${wrong}'; the phases are ${PHASES.join(', ')}`);
  }
  return { ...given, only, isBuilt };
}

/** Lines of TPC-H's tables, by the demo's generator. */
async function generate(folder, scale) {
  await buildTpch();
  const generated = path.join(root, 'web/src/generated/nacre_web_tpch');
  const { initSync, Rows } = await import(pathToFileURL(`${generated}.js`).href);
  initSync({ module: fs.readFileSync(`${generated}_bg.wasm`) });
  for (const table of TPCH_TABLES) {
    const rows = Rows.of(table, scale);
    const file = path.join(folder, `${table}.tbl`);
    fs.writeFileSync(file, '');
    while (rows.left > 0) {
      fs.appendFileSync(file, rows.take(100_000));
    }
    rows.free();
  }
}

/** Bytes in memory of the largest renderer that this Chromium runs. */
async function largestRenderer(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const sizes = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => /VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${id}/status`, 'utf8')))
    .map((match) => Number(match?.[1] ?? 0) * 1024);
  return Math.max(...sizes);
}

/** Milliseconds that processors have worked for the pages of this Chromium. */
async function processorMs(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const times = processInfo.filter(({ type }) => type === 'renderer').map(({ cpuTime }) => cpuTime);
  return times.reduce((sum, seconds) => sum + seconds, 0) * 1000;
}

/** Runs the workload. */
export async function bench(args) {
  const { isBuilt, only, ...counts } = options(args);
  if (!isBuilt) {
    await setup({ browser: true });
    await buildPackage();
  }
  const folder = await bundlePages();
  // Without a profile, Chromium keeps the files of a page in memory, in buffers that it copies
  // whenever they have to grow.
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-bench-'));
  let server, context;
  try {
    if (only.includes('tpch')) {
      await generate(profile, counts.scale);
    }
    server = await servePages(folder, profile);
    const { chromium } = await import('playwright-core');
    context = await chromium.launchPersistentContext(
      path.join(profile, 'chromium'),
      launchOptions(),
    );
    console.log(`${versions().join(', ')}, Chromium ${context.browser()?.version() ?? ''}`);
    const session = await context.browser().newBrowserCDPSession();
    const address = `http://localhost:${server.address().port}`;
    const run = {
      ...counts,
      context,
      address,
      largestRenderer: () => largestRenderer(session),
      processorMs: () => processorMs(session),
    };
    report(await measure(run, only));
  } finally {
    await context?.close();
    server?.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

async function measure(run, only) {
  const figures = {};
  if (only.includes('start')) {
    Object.assign(figures, await phases.start(run));
  }
  const inOnePage = IN_ONE_PAGE.filter((name) => only.includes(name));
  if (inOnePage.length > 0 || only.includes('first')) {
    const page = await phases.openAll(run);
    // The other phases read what this one has loaded.
    for (const name of new Set(['load', ...inOnePage])) {
      Object.assign(figures, await phases[name](run, page));
    }
    await page.close();
  }
  for (const name of ['first', 'threads', 'memory'].filter((each) => only.includes(each))) {
    Object.assign(figures, await phases[name](run));
  }
  return figures;
}

function report(figures) {
  const each = Object.entries(figures).map(([name, value]) => `${name}=${value.toFixed(2)}`);
  console.log(`browser: ${each.join(' ')}`);
}
