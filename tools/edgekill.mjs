/**
 * `npm run edgekill -- --times N`: three Durable Objects, one of them with a bucket below its storage, are
 * written to by several clients each, and read by one; again and again the runtime's process is killed at a
 * random moment, or one object ends at a random call of its storage. Each read, and after each time each
 * database, must have every row that was acknowledged before (else `lost`), no row that was never tried,
 * and both rows of a transaction or none (else `phantom`). So must what a Worker reads from the bucket after
 * an upload. `--seed` repeats the choices; `--keep-engine` takes the engine as it was built last.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildPackage } from './build.mjs';
import { Failure, main } from './lib.mjs';
import { Random } from './random.mjs';
import { setup } from './setup.mjs';
import { Workers } from './workers.mjs';

const TENANTS = 3;
const CLIENTS = 3;
/** Times after which new objects take over, so that reading them stays quick. */
const PER_OBJECT = 40;
const STUCK_MS = 20_000;
/** What is compared. */
const JUDGED = [['select id from t'], ['select sum(v)::int as sum from account']];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What the clients of one object have sent, and what was answered. */
class Tenant {
  name;
  /** Where the bucket has its files, or null. */
  prefix;
  acknowledged = new Set();
  /** Rows that may be there or not. */
  unknown = new Set();
  /** The other row of a row's transaction. */
  partner = new Map();
  #next = 1;

  constructor(name, prefix) {
    this.name = name;
    this.prefix = prefix;
  }

  /** Sends one statement or transaction. */
  async write(workers, below) {
    const ids = below(2) === 0 ? [this.#next] : [this.#next, this.#next + 1];
    this.#next += ids.length;
    const note = 'x'.repeat(below(8) === 0 ? 5_000 : 20);
    const statements = ids.map((id) => ['insert into t values (?, ?)', [id, note]]);
    if (ids.length === 2) {
      ids.forEach((id, at) => this.partner.set(id, ids[1 - at]));
      // A transaction that is half there would leave a sum that is not zero.
      statements.push(['update account set v = v + (case id when 1 then 1 else -1 end)']);
    }
    const at = ids.length === 2 ? '/together' : '/sql';
    ids.forEach((id) => this.unknown.add(id));
    const { status, body } = await workers.send(this.name, statements, { at });
    if (status === 200) {
      ids.forEach((id) => this.unknown.delete(id));
      ids.forEach((id) => this.acknowledged.add(id));
    } else if (['constraint', 'corrupt'].includes(body?.kind)) {
      throw new Failure(`${this.name}: ${body.kind}: ${body.message}`);
    }
  }

  /** Reads while others write; counts what is wrong with the answer. */
  async read(workers, below, total, report) {
    const known = [...this.acknowledged];
    const last = Math.max(0, known.length - 1 - below(20));
    const statements = [...JUDGED, ['select id from t where id = ?', [known[last] ?? 0]]];
    const { status, body } = await workers.send(this.name, statements);
    if (status === 200) {
      total.reads++;
      const [rows, sum, row] = body;
      this.#compare(new Set(known), rows, sum, total, (what) => report(`a read of ${what}`));
      if (known.length > 0 && row.length === 0) {
        total.lost++;
        report(`${this.name}: a read by key lost ${known[last]}`);
      }
    } else if (body?.kind === 'corrupt') {
      throw new Failure(`${this.name}: ${body.message}`);
    }
  }

  /** Compares the database with what was answered. */
  async judge(workers, total, report) {
    const { status, body } = await settled(workers, this.name, JUDGED);
    if (status !== 200) {
      throw new Failure(`${this.name}: ${JSON.stringify(body)}`);
    }
    const found = this.#compare(this.acknowledged, ...body, total, report);
    // What is there now stays, and what is not there does not come any more.
    this.unknown.clear();
    found.forEach((id) => this.acknowledged.add(id));
  }

  /** Uploads, and compares what a Worker reads from the bucket. */
  async judgeBucket(workers, total, report) {
    const uploaded = await settled(workers, this.name, [], '/upload');
    const options = JSON.stringify({ blobs: { prefix: this.prefix }, readOnly: true });
    const { status, body } = await workers.send(null, JUDGED, {
      at: '/bucket',
      headers: { options },
    });
    if (uploaded.status !== 200 || status !== 200) {
      throw new Failure(`${this.name}: ${JSON.stringify([uploaded.body, body])}`);
    }
    total.buckets++;
    this.#compare(this.acknowledged, ...body, total, (what) => report(`the bucket of ${what}`));
  }

  /** Counts rows that are missing and that should not be there; answers those that are. */
  #compare(expected, rows, [{ sum }], total, report) {
    const found = new Set(rows.map(({ id }) => id));
    const lost = [...expected].filter((id) => !found.has(id));
    const isHalf = (id) => this.partner.has(id) && !found.has(this.partner.get(id));
    const isKnown = (id) => this.acknowledged.has(id) || this.unknown.has(id);
    const phantom = [...found].filter((id) => !isKnown(id) || isHalf(id));
    if (sum !== 0) {
      phantom.push(`a sum of ${sum}`);
    }
    total.lost += lost.length;
    total.phantom += phantom.length;
    if (lost.length + phantom.length > 0) {
      report(`${this.name}: lost ${lost.join(' ')}, phantom ${phantom.join(' ')}`);
    }
    return found;
  }
}

/**
 * Sends statements; again if the engine was given up meanwhile, because another object was reset in the
 * middle of a call. The object opens its database again then.
 */
async function settled(workers, name, statements, at) {
  for (let attempts = 3; ; attempts--) {
    const answer = await workers.send(name, statements, { at });
    if (answer.body?.kind !== 'closed' || attempts === 0) {
      return answer;
    }
  }
}

async function open(workers, name, prefix = null) {
  const { status, body } = await settled(workers, name, [
    ['create table if not exists t (id bigint primary key, note text)'],
    ['create table if not exists account (id int primary key, v int)'],
    ['insert into account values (1, 0), (2, 0) on conflict do nothing'],
  ]);
  if (status !== 200) {
    throw new Failure(`${name}: ${JSON.stringify(body)}`);
  }
  return new Tenant(name, prefix);
}

/** Fails if work takes so long that something must hang. */
async function within(work, what) {
  let timer;
  const stuck = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`stuck: ${what}`)), STUCK_MS);
  });
  await Promise.race([work, stuck]).finally(() => clearTimeout(timer));
}

/** Kills this many times; answers how many rows were lost or made up. */
export async function edgekill(times, seed) {
  const random = new Random(seed);
  const below = (limit) => random.below(limit);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-edgekill-'));
  const total = {
    runs: 0,
    lost: 0,
    phantom: 0,
    kills: 0,
    aborts: 0,
    rows: 0,
    reads: 0,
    buckets: 0,
  };
  let workers = await Workers.start(folder);
  let tenants = [];
  const leave = async () => {
    for (const tenant of tenants) {
      total.rows += tenant.acknowledged.size;
      if (tenant.prefix !== null) {
        await within(tenant.judgeBucket(workers, total, console.log), 'reading the bucket');
      }
    }
  };
  try {
    for (; total.runs < times; total.runs++) {
      if (total.runs % PER_OBJECT === 0) {
        await leave();
        // The first one has a bucket below its storage.
        const prefix = `of-${total.runs}`;
        const others = Array.from({ length: TENANTS - 1 }, (_, n) => `${prefix}-${n + 1}`);
        tenants = await Promise.all([
          open(workers, `small.${prefix}.1`, prefix),
          ...others.map((name) => open(workers, name)),
        ]);
      }
      let isOver = false;
      const client = async (work) => {
        while (!isOver) {
          // Without an answer nothing is known.
          await work().catch((error) => {
            if (error instanceof Failure) {
              throw error;
            }
            return pause(5);
          });
        }
      };
      const running = Promise.all(
        tenants.flatMap((tenant) => [
          ...Array.from({ length: CLIENTS }, () => client(() => tenant.write(workers, below))),
          client(() => tenant.read(workers, below, total, console.log)),
        ]),
      );
      await pause(20 + below(150));
      if (below(2) === 0) {
        total.kills++;
        workers.kill();
        isOver = true;
        await within(running, 'clients of a killed process');
        await workers.stop();
        workers = await Workers.start(folder);
      } else {
        total.aborts++;
        const headers = { 'abort-after': String(1 + below(40)) };
        const victim = tenants[below(TENANTS)].name;
        await workers.send(victim, [], { headers }).catch(() => {});
        await pause(30 + below(60));
        isOver = true;
        await within(running, 'clients of an object that has ended');
        // It lives until it has made its last call, which has to be before the rows are judged.
        await workers.send(victim, [], { headers: { 'abort-after': 'Infinity' } }).catch(() => {});
      }
      const judged = tenants.map((tenant) => tenant.judge(workers, total, console.log));
      await within(Promise.all(judged), 'reading the objects');
      if ((total.runs + 1) % 50 === 0) {
        console.log(`  ${total.runs + 1} times`);
      }
    }
    await leave();
  } finally {
    await workers.stop();
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  console.log(
    `edgekill: ${Object.entries(total)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ')}`,
  );
  return total;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const option = (word, otherwise) =>
      process.argv.includes(word)
        ? Number(process.argv[process.argv.indexOf(word) + 1])
        : otherwise;
    await setup();
    await buildPackage({ keepEngine: process.argv.includes('--keep-engine') });
    const seed = option('--seed', Date.now() % 1_000_000);
    console.log(`seed ${seed}`);
    const { lost, phantom } = await edgekill(option('--times', 100), seed);
    if (lost + phantom > 0) {
      throw new Failure(`${lost} lost, ${phantom} phantom`);
    }
  });
}
