/**
 * `npm run bench -- tier-browser [--scale F] [--count N] [--built]`: orders and line items of TPC-H in a
 * bucket behind a link of 20 ms and 100 Mbit/s, 2 GB of them, read in Chromium with 200 MB of OPFS: from
 * opening to the first row, queries 1 and 6, and rows by key, each cold and again. Beside it DuckDB-Wasm
 * with the same rows in a file of its own, behind the same link: its extension for Parquet would be
 * fetched from its makers' server. Answers must be equal.
 */

import { createServer } from 'node:http';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { bundlePages, servePages } from './bench-browser/pages.mjs';
import { python } from './bench-python.mjs';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { Failure, root, run } from './lib.mjs';
import { startLink } from './link.mjs';
import { setup } from './setup.mjs';
import { startGateway } from './versitygw.mjs';

const BUCKET = 'bench';
const DISK_LIMIT = 200_000_000;
/** Orders of TPC-H at scale 1. */
const ORDERS = 1_500_000;
const LINK = { roundTripMs: 20, bitsPerSecond: 100_000_000 };
/** After which reading by key ends, in milliseconds. */
const POINTS_MS = 120_000;

export async function bench(args) {
  const option = (word, otherwise) =>
    args.includes(word) ? Number(args[args.indexOf(word) + 1]) : otherwise;
  const [scale, count] = [option('--scale', 12), option('--count', 1_000)];
  await setup({ browser: true });
  await buildPackage({ keepEngine: args.includes('--built') });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-bench-tier-'));
  const gateway = await startGateway({ bucket: BUCKET });
  if (gateway === null) {
    throw new Failure('the workload needs the S3 server');
  }
  const files = serveFiles(folder);
  try {
    await makeData(folder, gateway, scale);
    await new Promise((resolve) => files.listen(0, '127.0.0.1', resolve));
    const orders = chosen(count, Math.round(scale * ORDERS));
    const blobs = (endpoint) => ({
      url: `s3://${BUCKET}/tpch`,
      endpoint,
      credentials: gateway.credentials,
    });
    const nacre = await measure(gateway.endpoint, orders, ({ page, endpoint }) =>
      page.evaluate(
        ([at, limit]) => window.tier.openNacre(at, limit),
        [blobs(endpoint), DISK_LIMIT],
      ),
    );
    const duckdb = await measure(
      `http://127.0.0.1:${files.address().port}`,
      orders,
      ({ page, endpoint }) =>
        page.evaluate((url) => window.tier.openDuckdb(url), `${endpoint}/tpch.duckdb`),
    );
    report(nacre, duckdb);
  } finally {
    files.close();
    await gateway.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Numbers of orders, scattered over all. */
function chosen(count, orders) {
  return Array.from({ length: count }, (_, at) => (at * 7_368_787 + 12_345) % orders);
}

/** Nacre's database in the bucket, and DuckDB's in the folder. */
async function makeData(folder, gateway, scale) {
  const { file, tpchgen } = await python();
  const env = {
    AWS_ACCESS_KEY_ID: gateway.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: gateway.credentials.secretAccessKey,
    NACRE_BENCH_BUCKET: BUCKET,
    NACRE_BENCH_DIRECT: gateway.endpoint,
  };
  const workload = ['nacre-bench-compare', '--features', 'bundled', '--'];
  const args = ['tier', '--scale', String(scale)];
  await run('cargo', ['run', '-q', '--release', '-p', ...workload, ...args], { cwd: root, env });
  const generated = ['--tables', 'orders,lineitem', '-c', 'ZSTD(1)', '--output-dir', folder];
  await run(tpchgen, ['parquet', '--scale-factor', String(scale), ...generated], { quiet: true });
  const script = path.join(root, 'bench/compare/duckdb_file.py');
  await run(file, [script, folder, path.join(folder, 'tpch.duckdb')], { quiet: true });
}

/** A server of files that answers ranges. */
function serveFiles(folder) {
  return createServer((request, response) => {
    const file = path.join(
      folder,
      path.basename(new URL(request.url, 'http://localhost').pathname),
    );
    const size = fs.statSync(file, { throwIfNoEntry: false })?.size;
    const cors = {
      'access-control-allow-origin': '*',
      'access-control-allow-headers': '*',
      'access-control-expose-headers': '*',
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
    };
    if (size === undefined || request.method === 'OPTIONS') {
      response.writeHead(size === undefined ? 404 : 204, cors).end();
      return;
    }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const [start, end] = [Number(from ?? 0), to ? Math.min(Number(to), size - 1) : size - 1];
    const partial = from !== undefined && { 'content-range': `bytes ${start}-${end}/${size}` };
    response.writeHead(partial ? 206 : 200, {
      ...cors,
      ...partial,
      'content-length': end - start + 1,
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    fs.createReadStream(file, { start, end }).pipe(response);
  });
}

/** Takes all steps in a browser with an empty profile, behind a link to a server. */
async function measure(server, orders, open) {
  const link = await startLink({ to: server, ...LINK });
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-bench-tier-'));
  const pages = await servePages(await bundlePages(), profile);
  let browser;
  try {
    const { chromium } = await import('playwright-core');
    browser = await chromium.launchPersistentContext(profile, launchOptions());
    const page = await browser.newPage();
    page.setDefaultTimeout(600_000);
    page.on('pageerror', (error) => console.error(`page: ${error.message}`));
    await page.goto(`http://localhost:${pages.address().port}/tier.html`);
    await page.waitForFunction(() => window.tier !== undefined);
    const steps = {};
    const step = async (name, work) => {
      const before = link.counted();
      const { ms, rows } = await work();
      const after = link.counted();
      const [requests, bytes] = ['requests', 'bytes'].map((one) => after[one] - before[one]);
      steps[name] = { ms, rows, requests, bytes };
      const [seconds, mb] = [(ms / 1000).toFixed(2), (bytes / 1e6).toFixed(1)];
      console.log(
        `${name.padStart(12)} ${seconds.padStart(8)} s ${String(requests).padStart(6)} requests ${mb.padStart(8)} MB, ${rows.length} rows`,
      );
    };
    const points = () =>
      page.evaluate(([all, limit]) => window.tier.points(all, limit), [orders, POINTS_MS]);
    await step('first_row', () => open({ page, endpoint: link.endpoint }));
    await step('points', points);
    await step('points_again', points);
    for (const name of ['q6', 'q1']) {
      await step(name, () => page.evaluate((query) => window.tier[query](), name));
      await step(`${name}_again`, () => page.evaluate((query) => window.tier[query](), name));
    }
    return steps;
  } finally {
    await browser?.close();
    pages.close();
    await link.stop();
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

function report(nacre, duckdb) {
  // Averages of decimals have six digits after the point here, and are binary there.
  const equal = (a, b) =>
    typeof a === 'number' && typeof b === 'number'
      ? Math.abs(a - b) <= Math.max(1e-6, 1e-7 * Math.abs(b))
      : String(a) === String(b);
  const figures = Object.keys(nacre).map((name) => {
    const [ours, theirs] = [nacre[name], duckdb[name]];
    const both = Math.min(ours.rows.length, theirs.rows.length);
    for (let at = 0; at < both; at += 1) {
      const [a, b] = [ours.rows[at], theirs.rows[at]];
      if (a.length !== b.length || !a.every((value, column) => equal(value, b[column]))) {
        throw new Failure(`${name}: ${a.join()} is not the peer's ${b.join()}`);
      }
    }
    const each = ({ ms, rows }) => ms / Math.max(1, rows.length);
    return `${name}_over_duckdb=${(each(ours) / each(theirs)).toFixed(2)}`;
  });
  const { first_row: first, points, points_again: again } = nacre;
  const perRow = (value, step) => (value / Math.max(1, step.rows.length)).toFixed(1);
  const queries = ['q6', 'q1'].flatMap((name) => [name, `${name}_again`]);
  const own = [
    `first_row_ms=${first.ms.toFixed(0)}`,
    `first_row_requests=${first.requests}`,
    `point_cold_ms=${perRow(points.ms, points)}`,
    `point_cold_kib=${perRow(points.bytes / 1024, points)}`,
    `point_again_ms=${perRow(again.ms, again)}`,
    `point_again_kib=${perRow(again.bytes / 1024, again)}`,
    ...queries.flatMap((name) => [
      `${name}_ms=${nacre[name].ms.toFixed(0)}`,
      `${name}_requests=${nacre[name].requests}`,
      `${name}_mb=${(nacre[name].bytes / 1e6).toFixed(0)}`,
    ]),
  ];
  console.log(`tier-browser: ${[...own, ...figures].join(' ')}`);
}
