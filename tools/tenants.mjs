/**
 * `npm run tenants -- [--tenants N] [--requests N]`: requests to the Durable Objects of many tenants in one
 * process of Cloudflare's runtime, all in one isolate, several tenants at once. Some objects leave memory
 * and come back, some transactions fail, and a few tenants have a bucket. Each answer is compared with what
 * the tenant has written, and at the end all rows of each. Prints the memory of the process over that of one
 * that does nothing, after each quarter, and that of the engine, of which the isolate has one: it must leave
 * room in the 128 MB of an isolate. `--seed` repeats the choices; `--built` takes the package as it was built
 * last.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { buildPackage } from './build.mjs';
import { Failure, main } from './lib.mjs';
import { Random } from './random.mjs';
import { setup } from './setup.mjs';
import { Workers } from './workers.mjs';

/** Requests at once, each to another tenant. */
const CLIENTS = 16;
/** Tenants for each one with a bucket below its storage. */
const PER_BUCKET = 40;
/** An object leaves memory within this time. */
const LEAVES_MS = 150;
/** Most that the engine may take of the memory of an isolate. */
const ENGINE_MB = 64;
const EMPTY = { worker: 'bench/edge/empty.mjs', classes: { TENANT: 'Bench' } };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A tenant, and the rows that its database must have. */
class Tenant {
  name;
  #random;
  #rows = new Map();
  #next = 1;
  #isNew = true;

  constructor(name, random) {
    this.name = name;
    this.#random = random;
  }

  /** Sends a request; answers what is wrong with the answer, or null. */
  async ask(workers) {
    if (this.#isNew) {
      this.#isNew = false;
      const create = 'create table t (id int primary key, note text, v int, key (note))';
      return this.#expect(workers, [[create]], [[]]);
    }
    const choice = this.#random.below(100);
    if (choice < 30) {
      return this.#insert(workers);
    }
    if (choice < 45) {
      return this.#update(workers);
    }
    if (choice < 50) {
      return this.#failed(workers);
    }
    if (choice < 52) {
      const { status } = await workers.send(this.name, [], { at: '/leave' });
      // A request that meets its end fails.
      await pause(LEAVES_MS);
      return status === 200 ? null : `leaving answers ${status}`;
    }
    if (choice < 75) {
      const id = this.#anyId();
      const found = this.#rows.has(id) ? [{ id, ...this.#rows.get(id) }] : [];
      return this.#expect(workers, [['select id, note, v from t where id = ?', [id]]], [found]);
    }
    if (choice < 85) {
      const note = this.#note();
      const n = [...this.#rows.values()].filter((row) => row.note === note).length;
      return this.#expect(
        workers,
        [['select count(*) as n from t where note = ?', [note]]],
        [[{ n }]],
      );
    }
    return this.#sums(workers);
  }

  /** Compares sums over all rows. */
  async #sums(workers) {
    const rows = [...this.#rows.values()];
    const n = rows.length;
    const sum = rows.reduce((all, { v }) => all + v, 0);
    const sql = 'select count(*) as n, coalesce(sum(v), 0)::int as sum from t';
    return this.#expect(workers, [[sql]], [[{ n, sum }]]);
  }

  /** Compares all rows. */
  async rows(workers) {
    const all = [...this.#rows].map(([id, row]) => ({ id, ...row })).sort((a, b) => a.id - b.id);
    return this.#expect(workers, [['select id, note, v from t order by id']], [all]);
  }

  #insert(workers) {
    const statements = [];
    for (let n = 1 + this.#random.below(20); n > 0; n--) {
      const [id, row] = [this.#next++, { note: this.#note(), v: this.#random.below(1_000) }];
      this.#rows.set(id, row);
      statements.push(['insert into t values (?, ?, ?)', [id, row.note, row.v]]);
    }
    return this.#expect(
      workers,
      statements,
      statements.map(() => []),
      '/together',
    );
  }

  #update(workers) {
    const id = this.#anyId();
    const row = this.#rows.get(id);
    if (row !== undefined) {
      row.v += 1;
    }
    return this.#expect(workers, [['update t set v = v + 1 where id = ?', [id]]], [[]]);
  }

  /** A transaction that the application ends by an error. */
  async #failed(workers) {
    const statements = [['delete from t'], ['insert into t values (0, ?, 0)', [this.#note()]]];
    const { status } = await workers.send(this.name, statements, {
      at: '/together',
      headers: { fail: '1' },
    });
    return status === 500 ? null : `a transaction that fails answers ${status}`;
  }

  async #expect(workers, statements, expected, at = '/sql') {
    const { status, body } = await workers.send(this.name, statements, { at });
    return status === 200 && isDeepStrictEqual(body, expected)
      ? null
      : `${statements[0][0]}: ${status} ${JSON.stringify(body)}, not ${JSON.stringify(expected)}`;
  }

  #anyId() {
    return 1 + this.#random.below(this.#next);
  }

  #note() {
    return `of ${this.name}, ${'x'.repeat(this.#random.below(40))}`;
  }
}

/** Runs requests; answers how many were wrong, and the megabytes after each quarter. */
export async function runTenants({ tenants: count, requests, seed }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-tenants-'));
  try {
    const empty = await Workers.start(path.join(folder, 'empty'), EMPTY);
    await empty.send(null, []);
    const emptyBytes = empty.residentBytes();
    await empty.stop();
    const workers = await Workers.start(path.join(folder, 'tenants'));
    try {
      const random = new Random(seed);
      const tenants = Array.from({ length: count }, (_, n) => {
        const kind = n % PER_BUCKET === 0 ? `small.of-${n}.1` : `of-${n}`;
        return new Tenant(kind, new Random(seed + n));
      });
      return await all(workers, tenants, requests, random, emptyBytes);
    } finally {
      await workers.stop();
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function all(workers, tenants, requests, random, emptyBytes) {
  const megabytes = [];
  const wrong = [];
  const began = performance.now();
  const note = (tenant, what) => what !== null && wrong.push(`${tenant.name}: ${what}`);
  const each = async (work, list) => {
    const waiting = [...list];
    const client = async () => {
      for (let tenant = waiting.shift(); tenant !== undefined; tenant = waiting.shift()) {
        note(tenant, await work(tenant));
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  };
  let [left, free] = [requests, tenants];
  const client = async () => {
    while (left > 0) {
      const number = --left;
      const tenant = random.pick(free);
      free = free.filter((other) => other !== tenant);
      note(tenant, await tenant.ask(workers));
      free = [...free, tenant];
      if (number % Math.ceil(requests / 4) === 0) {
        megabytes.push(Math.round((workers.residentBytes() - emptyBytes) / 1e6));
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CLIENTS, tenants.length) }, client));
  const seconds = (performance.now() - began) / 1e3;
  await each((tenant) => tenant.rows(workers), tenants);
  const { body } = await workers.send(tenants[0].name, [], { at: '/memory' });
  const engineMegabytes = Math.round(body / 1e6);
  if (engineMegabytes > ENGINE_MB) {
    wrong.push(`the engine has ${engineMegabytes} MB`);
  }
  return { engineMegabytes, wrong, megabytes, perSecond: requests / seconds };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const option = (word, otherwise) =>
      process.argv.includes(word)
        ? Number(process.argv[process.argv.indexOf(word) + 1])
        : otherwise;
    await setup();
    await buildPackage({ keepEngine: process.argv.includes('--built') });
    const [tenants, requests] = [option('--tenants', 200), option('--requests', 10_000)];
    const seed = option('--seed', Date.now() % 1_000_000);
    console.log(`seed ${seed}`);
    const { wrong, megabytes, engineMegabytes, perSecond } = await runTenants({
      tenants,
      requests,
      seed,
    });
    wrong.slice(0, 20).forEach((line) => console.log(line));
    console.log(
      `tenants: tenants=${tenants} requests=${requests} wrong=${wrong.length} ` +
        `engine_mb=${engineMegabytes} memory_mb=${megabytes.join(',')} requests_per_s=${perSecond.toFixed(0)}`,
    );
    if (wrong.length > 0) {
      throw new Failure(`${wrong.length} answers are wrong`);
    }
  });
}
