/**
 * `npm run bench -- edge [--rows N] [--count N]`: a Durable Object in Cloudflare's runtime on this machine,
 * with the same rows in Nacre and in the object's own SQLite: points, pages of 100 rows and an aggregate
 * over all rows, in turns, results compared; what a cold start costs and the memory of the process, both
 * over those of a Worker that does nothing; and what a Worker without an object, which has nothing yet,
 * reads from a bucket for each kind of query.
 *
 * The clock of a Worker stands still while it computes, so all times are taken outside, around requests
 * that do something many times.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { buildPackage } from './build.mjs';
import { Failure } from './lib.mjs';
import { setup } from './setup.mjs';
import { Workers } from './workers.mjs';

const PART = 20_000;
const ROUNDS = 5;
const STARTS = 7;
const NACRE = { worker: 'bench/edge/worker.mjs', classes: { TENANT: 'Bench' } };
const EMPTY = { worker: 'bench/edge/empty.mjs', classes: { TENANT: 'Bench' } };

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function timed(work) {
  const began = performance.now();
  const value = await work();
  return { ms: performance.now() - began, value };
}

export async function bench(args) {
  const option = (word, otherwise) =>
    args.includes(word) ? Number(args[args.indexOf(word) + 1]) : otherwise;
  const [rows, count] = [option('--rows', 1_000_000), option('--count', 5_000)];
  await setup();
  await buildPackage({ keepEngine: args.includes('--built') });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-bench-edge-'));
  try {
    const ratios = await warm(folder, rows, count);
    const starts = await cold(folder);
    const requests = await attached(folder, rows);
    const figures = { ...starts, ...(await memory(folder, rows, count)), ...requests, ...ratios };
    const text = Object.entries(figures).map(([name, value]) => `${name}=${value.toFixed(2)}`);
    console.log(`edge: ${text.join(' ')}`);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Loads both, and compares their rates. */
async function warm(folder, rows, count) {
  const workers = await Workers.start(folder, NACRE);
  const ask = async (of, what, options = {}) => {
    const { status, body } = await workers.send(null, [], {
      at: `/${of}/${what}?${new URLSearchParams({ of: rows, ...options })}`,
    });
    if (status !== 200) {
      throw new Failure(`${of}/${what}: ${JSON.stringify(body)}`);
    }
    return body;
  };
  try {
    for (const of of ['nacre', 'sqlite']) {
      const { ms } = await timed(async () => {
        for (let from = 0; from < rows; from += PART) {
          await ask(of, 'load', { from, rows: Math.min(PART, rows - from) });
        }
      });
      console.log(`${of.padEnd(7)} load       ${Math.round((rows / ms) * 1e3)} rows/s`);
    }
    console.log(`${await ask('nacre', 'settle')} bytes in Nacre's files`);
    const ratios = {};
    const kinds = { points: count, pages: Math.ceil(count / 10), aggregate: 3 };
    for (const [what, times] of Object.entries(kinds)) {
      const taken = { nacre: [], sqlite: [] };
      for (let round = 0; round < ROUNDS; round++) {
        const found = [];
        for (const of of ['nacre', 'sqlite']) {
          const { ms, value } = await timed(() => ask(of, what, { count: times }));
          taken[of].push(ms);
          found.push(JSON.stringify(value));
        }
        if (found[0] !== found[1]) {
          throw new Failure(`${what}: ${found[0].slice(0, 200)} and ${found[1].slice(0, 200)}`);
        }
      }
      const [ours, theirs] = [median(taken.nacre), median(taken.sqlite)];
      const each = (ms) => `${((ms / times) * 1e3).toFixed(1)} µs`;
      console.log(`${what.padEnd(10)} nacre ${each(ours)}, sqlite ${each(theirs)}`);
      ratios[`${what}_over_do_sqlite`] = theirs / ours;
    }
    console.log(`${(workers.residentBytes() / 1e6).toFixed(0)} MB resident after the loads`);
    return ratios;
  } finally {
    await workers.stop();
  }
}

/** Requests and bytes of a reader that opens the bucket for each query. */
async function attached(folder, rows) {
  const workers = await Workers.start(folder, NACRE);
  const ask = async (at, options = {}) => {
    const { status, body } = await workers.send(null, [], {
      at: `${at}?${new URLSearchParams({ of: rows, count: 1, ...options })}`,
    });
    if (status !== 200) {
      throw new Failure(`${at}: ${JSON.stringify(body)}`);
    }
    return body;
  };
  try {
    for (let from = 0; from < rows; from += PART) {
      await ask('/published/load', { from, rows: Math.min(PART, rows - from) });
    }
    await ask('/published/settle');
    const read = {};
    for (const what of ['points', 'pages', 'aggregate']) {
      const { ms, value } = await timed(() => ask(`/reader/${what}`));
      const { parts, same, rows: found } = value;
      if (!same || found === 0) {
        throw new Failure(`${what} of a reader: ${JSON.stringify(value)}`);
      }
      const text = Object.entries(parts).map(
        ([name, { requests, waits, bytes }]) =>
          `${name} ${requests} requests in ${waits} waits, ${bytes} bytes`,
      );
      console.log(`reader  ${what.padEnd(10)} ${ms.toFixed(0)} ms, ${text.join(', ')}`);
      read[what] = parts.cold;
    }
    return {
      point_cold_requests: read.points.requests,
      point_cold_waits: read.points.waits,
      point_cold_kib: read.points.bytes / 1024,
    };
  } finally {
    await workers.stop();
  }
}

/** Memory of a process that has served queries of each kind, over that of one that does nothing. */
async function memory(folder, rows, count) {
  const resident = [];
  for (const what of [NACRE, EMPTY]) {
    const workers = await Workers.start(folder, what);
    for (const [kind, times] of Object.entries({
      points: count,
      pages: count / 10,
      aggregate: 3,
    })) {
      await workers.send(null, [], { at: `/nacre/${kind}?of=${rows}&count=${Math.ceil(times)}` });
    }
    resident.push(workers.residentBytes());
    await workers.stop();
  }
  return { memory_mb: (resident[0] - resident[1]) / 1e6 };
}

/** The first answer of a runtime that has just started: a row by its key, or nothing. */
async function cold(folder) {
  const taken = { nacre: [], empty: [] };
  for (let at = 0; at < STARTS; at++) {
    for (const [name, what] of [
      ['nacre', NACRE],
      ['empty', EMPTY],
    ]) {
      const workers = await Workers.start(folder, what);
      const { ms } = await timed(() =>
        workers.send(null, [], { at: '/nacre/points?count=1&of=1000' }),
      );
      taken[name].push(ms);
      await workers.stop();
    }
  }
  console.log(
    `cold: ${median(taken.nacre).toFixed(0)} ms, empty ${median(taken.empty).toFixed(0)} ms`,
  );
  return { cold_ms_over_empty: median(taken.nacre) - median(taken.empty) };
}
