/**
 * What `npm run bench -- browser` measures. Each phase drives pages, prints a line for each task, and
 * answers figures. Systems take turns, and each round begins with another one, so that a busy moment
 * of the machine hits all of them.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { Failure, root } from '../lib.mjs';
import { geomean, median, milliseconds, mustEqual, rate, Times } from './report.mjs';

const SYSTEMS = ['nacre', 'sqlite', 'tuned', 'duckdb', 'pglite'];
const GROUP =
  'select region, count(*) as n, sum(amount) as total, avg(amount) as mean from t group by region order by region';
const LIKE = "select count(*) from t where note like '%fjord%'";
/** Queries of TPC-H whose rows may have equal sort keys; the same list is in tests/tpch. */
const WITH_TIES = [3, 5, 10, 11, 18];
/** Until background work after a load has ended. */
const REST_MS = 5000;
const MIB = 1024 * 1024;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The systems, beginning with another one in each round. */
const turn = (names, round) => names.map((_, at) => names[(at + round) % names.length]);

/** Opens a page of the comparison in a new tab. */
export async function openPage({ context, address }, name, ready) {
  const page = await context.newPage();
  const failed = new Promise((_, reject) => {
    page.on('pageerror', ({ message }) => reject(new Failure(`${name}: ${message}`)));
  });
  failed.catch(() => {});
  await page.goto(`${address}/${name}`);
  const there = page.waitForFunction((what) => window[what] !== undefined, ready, {
    timeout: 120_000,
  });
  await Promise.race([there, failed]);
  return page;
}

/** Runs a task; also answers the milliseconds that processors worked for pages meanwhile. */
async function measured(run, task) {
  const before = await run.processorMs();
  const answer = await task();
  return { answer, processor: (await run.processorMs()) - before };
}

/** From the navigation to a row of a database that is there, above an empty page with an empty worker. */
export async function start(run) {
  const names = ['empty', 'nacre', 'sqlite', 'duckdb', 'pglite'];
  const times = new Times();
  for (let round = -1; round < run.rounds; round += 1) {
    const results = new Map();
    for (const name of turn(names, round + 1)) {
      // The first round creates the databases, and fills the browser's cache.
      const page = await openPage(
        run,
        `start-${name}.html${round < 0 ? '?create' : ''}`,
        'started',
      );
      const { ms, rows } = await page.evaluate(() => window.started);
      if (round < 0) {
        await pause(REST_MS);
      }
      await page.close();
      if (round >= 0) {
        times.add(name, ms);
        if (name !== 'empty') {
          results.set(name, rows);
        }
      }
    }
    if (round >= 0) {
      mustEqual('start', results);
    }
  }
  times.print('start');
  const above = (name) => times.median(name) - times.median('empty');
  return { start_over_sqlite: above('nacre') / above('sqlite') };
}

/** Opens all systems in one page. */
export async function openAll(run) {
  const page = await openPage(run, 'page.html', 'bench');
  for (const name of SYSTEMS) {
    await page.evaluate((system) => window.bench.open(system), name);
  }
  await page.evaluate((rows) => window.bench.make(rows), run.rows);
  return page;
}

/** A load of columns that the page has, into a table with a primary key; DuckDB also without one. */
export async function load(run, page) {
  const times = new Times();
  const plain = 'duckdb, no key';
  for (let round = 0; round < run.rounds; round += 1) {
    for (const name of turn([...SYSTEMS, plain], round)) {
      // The slowest takes a minute.
      if (name === 'pglite' && round > 0) {
        continue;
      }
      const asked = name === plain ? ['duckdb', 'without_key', false] : [name, 't', true];
      const { answer, processor } = await measured(run, () =>
        page.evaluate((given) => window.bench.load(...given), asked),
      );
      times.add(name, answer, processor);
      await pause(REST_MS / 5);
    }
  }
  await page.evaluate(() => window.bench.exec('duckdb', 'drop table without_key'));
  times.print(`load ${run.rows} rows`, rate(run.rows));
  await pause(REST_MS);
  return {
    load_over_duckdb: times.median('duckdb') / times.median('nacre'),
    load_over_duckdb_no_key: times.median(plain) / times.median('nacre'),
  };
}

/** Systems that take milliseconds for a row read a tenth of the keys. */
const SLOW = ['duckdb', 'pglite'];

/** Reads of rows by key: one call in a task, and a hundred. */
export async function points(run, page) {
  const [one, hundred, text] = [new Times(), new Times(), new Times()];
  const { count, rows } = run;
  const few = Math.ceil(count / 10);
  for (let round = 0; round < run.rounds; round += 1) {
    const results = new Map();
    const keys = await page.evaluate((given) => window.bench.keys(...given), [count, rows, round]);
    const read = async (times, name, what, ...given) => {
      const some = SLOW.includes(name) ? keys.slice(0, few) : keys;
      const { answer, processor } = await measured(run, () =>
        page.evaluate((all) => window.bench[all[0]](...all.slice(1)), [what, name, some, ...given]),
      );
      const share = count / some.length;
      times.add(name, answer.ms * share, processor * share);
      results.set(`${name}, ${what} ${given}`, answer.rows.slice(0, few));
    };
    for (const name of turn(SYSTEMS, round)) {
      await read(one, name, 'points', 1);
      await read(hundred, name, 'points', 100);
    }
    await read(text, 'nacre', 'byText');
    mustEqual('points', results);
  }
  one.print('points, 1 call', rate(count));
  hundred.print('points, 100 calls', rate(count));
  text.print('points, query()', rate(count));
  return {
    point_page_over_sqlite: one.median('tuned') / one.median('nacre'),
    point_page_100_over_sqlite: hundred.median('tuned') / hundred.median('nacre'),
    query_over_prepared: one.median('nacre') / text.median('nacre'),
  };
}

/** Rows that are inserted, each committed durably before the next. */
export async function commits(run, page) {
  const times = new Times();
  const create =
    'create table c (id bigint primary key, region integer, amount double precision, note text)';
  for (const name of SYSTEMS) {
    await page.evaluate((given) => window.bench.exec(...given), [name, 'drop table if exists c']);
    await page.evaluate((given) => window.bench.exec(...given), [name, create]);
  }
  for (let round = 0; round < run.rounds; round += 1) {
    for (const name of turn(SYSTEMS, round)) {
      const given = [name, round * run.commits, run.commits];
      const { answer, processor } = await measured(run, () =>
        page.evaluate((all) => window.bench.commits(...all), given),
      );
      times.add(name, answer, processor);
    }
  }
  const results = new Map();
  for (const name of SYSTEMS) {
    const sql = 'select count(*), sum(id), sum(amount), min(note), max(note) from c';
    const { rows } = await page.evaluate((given) => window.bench.query(...given), [name, sql]);
    results.set(name, rows);
  }
  mustEqual('commits', results);
  times.print('commits', rate(run.commits));
  return { commit_over_sqlite_tuned: times.median('tuned') / times.median('nacre') };
}

/** Queries over all rows of the table. */
export async function scans(run, page) {
  const figures = {};
  for (const [name, sql] of Object.entries({ group: GROUP, like: LIKE })) {
    const times = await query(run, page, name, sql, SYSTEMS);
    times.print(name);
    figures[`${name}_over_duckdb`] = times.median('nacre') / times.median('duckdb');
  }
  return figures;
}

async function query(run, page, what, sql, systems, ordered = true) {
  const times = new Times();
  for (let round = 0; round < run.rounds; round += 1) {
    const results = new Map();
    for (const name of turn(systems, round)) {
      const { answer, processor } = await measured(run, () =>
        page.evaluate((given) => window.bench.query(...given), [name, sql]),
      );
      times.add(name, answer.ms, processor);
      results.set(name, answer.rows);
    }
    mustEqual(what, results, ordered);
  }
  return times;
}

/** The 22 queries of TPC-H. */
export async function tpch(run, page) {
  const systems = ['nacre', 'duckdb'];
  for (const name of systems) {
    await page.evaluate((system) => window.bench.loadTpch(system), name);
  }
  await pause(REST_MS);
  const ratios = [];
  for (let number = 1; number <= 22; number += 1) {
    const file = `tests/tpch/queries/q${String(number).padStart(2, '0')}.sql`;
    const sql = fs.readFileSync(path.join(root, file), 'utf8');
    const ordered = !WITH_TIES.includes(number);
    const times = await query(run, page, `q${number}`, sql, systems, ordered);
    times.print(`q${number}`);
    ratios.push(times.median('nacre') / times.median('duckdb'));
  }
  return { tpch_over_duckdb: geomean(ratios), tpch_worst: Math.max(...ratios) };
}

/** Reads and commits in the engine's own thread. */
export async function threads(run) {
  const page = await openPage(run, 'threads.html', 'threads');
  const [reads, writes] = [new Times(), new Times()];
  const names = ['nacre', 'sqlite'];
  for (const name of names) {
    await page.evaluate((given) => window.threads.open(...given), [name, run.rows]);
  }
  await pause(REST_MS);
  const count = run.count * 10;
  for (let round = 0; round < run.rounds; round += 1) {
    const results = new Map();
    for (const name of turn(names, round)) {
      const { answer: all, processor } = await measured(run, () =>
        page.evaluate(
          (given) => window.threads.points(given[0], window.threads.keys(...given.slice(1))),
          [name, count, run.rows, round],
        ),
      );
      reads.add(name, all.ms, processor);
      const given = [name, round * run.commits, run.commits];
      const { answer, processor: ofWrites } = await measured(run, () =>
        page.evaluate((each) => window.threads.commits(...each), given),
      );
      writes.add(name, answer.ms, ofWrites);
      results.set(name, all.rows);
    }
    mustEqual('thread', results);
  }
  await page.close();
  reads.print('points in the thread', rate(count));
  writes.print('commits in the thread', rate(run.commits));
  return {
    point_thread_over_sqlite: reads.median('sqlite') / reads.median('nacre'),
    commit_thread_over_sqlite: writes.median('sqlite') / writes.median('nacre'),
  };
}

/** The first aggregate of a tab that has just opened the database, and later ones. */
export async function first(run) {
  const [early, warm] = [[], []];
  for (let round = 0; round < run.rounds; round += 1) {
    const page = await openPage(run, 'page.html', 'bench');
    await page.evaluate(() => window.bench.open('nacre'));
    for (let at = 0; at < 6; at += 1) {
      const { ms } = await page.evaluate((sql) => window.bench.query('nacre', sql), GROUP);
      (at === 0 ? early : warm).push(ms);
    }
    await page.close();
  }
  const [once, again] = [median(early), median(warm)];
  console.log(`${'first aggregate'.padEnd(24)} ${milliseconds(once)}, warm ${milliseconds(again)}`);
  return { first_over_warm: once / again };
}

/** Memory of a page that has loaded the rows: of its process, and of the engine's WebAssembly. */
export async function memory(run) {
  const [process_, wasm] = [new Times(), new Times()];
  for (const name of ['nacre', 'tuned', 'duckdb']) {
    const page = await openPage(run, 'page.html', 'bench');
    await page.evaluate((system) => window.bench.open(system), name);
    await page.evaluate((rows) => window.bench.make(rows), run.rows);
    await page.evaluate((system) => window.bench.load(system, 't', true), name);
    await pause(REST_MS);
    wasm.add(name, await page.evaluate(() => window.bench.memory()));
    process_.add(name, await run.largestRenderer());
    await page.close();
  }
  const shown = (bytes) => `${(bytes / MIB).toFixed(0)} MiB`;
  process_.print('memory of the process', shown);
  wasm.print('memory of WebAssembly', shown);
  return {
    rss_over_duckdb: process_.median('nacre') / process_.median('duckdb'),
    wasm_over_duckdb: wasm.median('nacre') / wasm.median('duckdb'),
  };
}
