/**
 * `npm run tpch:browser -- --scale 0.01 --verify FOLDER`: the 22 TPC-H queries of FOLDER/queries in
 * Chromium, through the npm package, on tables in OPFS, compared with FOLDER/answers. The tables
 * are generated natively and loaded by the page. Prints a line a query, then
 * `tpch in the browser: right=22 of 22`; fails otherwise.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { buildPackage } from './build.mjs';
import { launchOptions } from './chromium.mjs';
import { Failure, main, run, target } from './lib.mjs';
import { servePage } from './serve-page.mjs';
import { setup } from './setup.mjs';

const TABLES = [
  'region',
  'nation',
  'part',
  'supplier',
  'partsupp',
  'customer',
  'orders',
  'lineitem',
];
/** Queries that may have rows of equal sort keys; the same list is in tests/tpch. */
const WITH_TIES = [3, 5, 10, 11, 18];
const PAGE = `<!doctype html><title>tpch</title><script type="module">
import { connect } from './index.js';

const ROWS = 500;
const db = await connect('opfs://tpch', { types: { date: 'string' } });

async function load(table) {
  const [ddl, text] = await Promise.all(
    [table + '.sql', table + '.tbl'].map(async (name) => (await fetch('data/' + name)).text()),
  );
  await db.exec('drop table if exists ' + table);
  await db.exec(ddl);
  const rows = text.trimEnd().split('\\n').map((line) => line.split('|'));
  const row = '(' + rows[0].map(() => '?').join(',') + ')';
  await db.transaction(async (tx) => {
    const waiting = [];
    for (let at = 0; at < rows.length; at += ROWS) {
      const some = rows.slice(at, at + ROWS);
      waiting.push(tx.query('insert into ' + table + ' values ' + some.map(() => row).join(','), some.flat()));
    }
    await Promise.all(waiting);
  });
  await db.exec('optimize table ' + table + ' flush');
  return rows.length;
}

async function query(sql) {
  const started = performance.now();
  const result = await db.query(sql);
  const ms = performance.now() - started;
  const rows = Array.from({ length: result.rowCount }, (_, row) => result.values(row).map((v) => (v === null ? 'NULL' : String(v))));
  return { ms, rows, numeric: result.columns.map(({ type }) => /INT|DECIMAL|FLOAT|DOUBLE/.test(type)) };
}

window.tpch = { load, query };
</script>`;

function arguments_() {
  const given = process.argv.slice(2);
  const value = (name) => (given.includes(name) ? given[given.indexOf(name) + 1] : undefined);
  const verify = value('--verify');
  if (verify === undefined) {
    throw new Failure(
      'npm run tpch:browser needs --verify FOLDER, with queries/ and answers/ in it',
    );
  }
  return { verify: path.resolve(verify), scale: value('--scale') ?? '0.01', data: value('--data') };
}

/** The tables as text, made natively. */
async function generate(folder, { scale, verify }) {
  await run('cargo', ['build', '-q', '--release', '-p', 'nacre-tpch']);
  const name = process.platform === 'win32' ? 'nacre-tpch.exe' : 'nacre-tpch';
  await run(path.join(target, 'release', name), [
    path.join(folder, 'db'),
    ...['--scale', scale, '--verify', verify, '--write', folder],
  ]);
}

/** What is wrong with a result; null when it is right. */
function difference(query, { rows, numeric }, answer) {
  const expected = answer
    .trimEnd()
    .split(/\r?\n/)
    .slice(1)
    .map((line) => line.split('|'));
  if (rows.length !== expected.length) {
    return `${rows.length} rows instead of ${expected.length}`;
  }
  const near = (a, b) => {
    const apart = Math.abs(Number(a) - Number(b));
    return apart <= 0.01 || apart <= 1e-9 * Math.max(Math.abs(Number(a)), Math.abs(Number(b)));
  };
  const same = (row, other) =>
    row.length === other.length &&
    row.every((v, i) => v === other[i] || (numeric[i] && near(v, other[i])));
  const first = expected.findIndex((row, i) => !same(rows[i], row));
  if (first === -1) {
    return null;
  }
  if (WITH_TIES.includes(query)) {
    const left = expected.slice(first);
    const takes = (row) => {
      const at = left.findIndex((other) => same(row, other));
      return at !== -1 && left.splice(at, 1).length === 1;
    };
    if (rows.slice(first).every(takes)) {
      return null;
    }
  }
  return `row ${first + 1}: ${rows[first].join('|')} instead of ${expected[first].join('|')}`;
}

await main(async () => {
  const args = arguments_();
  const answers = path.join(args.verify, 'answers', `sf${args.scale}`);
  if (!fs.existsSync(answers)) {
    throw new Failure(`there are no answers for scale ${args.scale} in ${args.verify}`);
  }
  await setup({ browser: true });
  await buildPackage();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-tpch-'));
  let server, browser;
  try {
    if (args.data === undefined) {
      await generate(folder, args);
    }
    server = await servePage(PAGE, args.data ?? folder);
    const { chromium } = await import('playwright-core');
    browser = await chromium.launch(launchOptions());
    const page = await browser.newPage();
    page.on('pageerror', (error) => console.error(`page: ${error.message}`));
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => window.tpch !== undefined, null, { timeout: 30_000 });
    for (const table of TABLES) {
      const rows = await page.evaluate((name) => window.tpch.load(name), table);
      console.log(`${table}: ${rows} rows`);
    }
    let right = 0;
    for (let query = 1; query <= 22; query++) {
      const file = `q${String(query).padStart(2, '0')}`;
      const sql = fs.readFileSync(path.join(args.verify, 'queries', `${file}.sql`), 'utf8');
      const answer = fs.readFileSync(path.join(answers, `${file}.csv`), 'utf8');
      try {
        const result = await page.evaluate((text) => window.tpch.query(text), sql);
        const wrong = difference(query, result, answer);
        right += wrong === null ? 1 : 0;
        const verdict = wrong === null ? 'right' : `WRONG: ${wrong}`;
        console.log(
          `${file} ${result.ms.toFixed(1).padStart(10)} ms ${result.rows.length} rows  ${verdict}`,
        );
      } catch (error) {
        console.log(`${file} FAILED: ${error.message}`);
      }
    }
    console.log(`tpch in the browser: right=${right} of 22`);
    process.exitCode = right === 22 ? 0 : 1;
  } finally {
    await browser?.close();
    server?.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
