/**
 * The Worker of `npm run bench -- edge`: a Durable Object with the same rows in Nacre, whose files are in
 * the object's storage, and in a table of that storage, which is SQLite; another object with a bucket
 * below its storage; and readers of that bucket without an object.
 */

import { connect } from './edge.js';

const CREATE = 'create table t (id bigint primary key, region int, amount double, note text)';
const row = (id) => [id, (id * 7919) % 100, id / 8, `note ${id}`];
const POINT = 'select * from t where id = ?';
const PAGE = 'select * from t where id >= ? order by id limit 100';
const AGGREGATE =
  'select region, count(*) as n, sum(amount) as s from t group by region order by region';

const types = { bigint: 'number', decimal: 'number' };
const PREFIX = 'bench';
/** The object with a bucket below its storage. */
const PUBLISHED = 'published';

export class Bench {
  #state;
  #env;
  #db = null;

  constructor(state, env) {
    this.#state = state;
    this.#env = env;
  }

  #open(isPublished) {
    const blobs = isPublished && { blobs: { bucket: this.#env.BUCKET, prefix: PREFIX } };
    this.#db ??= connect({ state: this.#state, types, ...blobs });
    return this.#db;
  }

  async alarm() {
    await (await this.#open(true)).alarm();
  }

  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [of, what] = pathname.slice(1).split('/');
    const number = (name) => Number(searchParams.get(name));
    const run =
      of === 'sqlite'
        ? this.#sqlite(what, number)
        : await this.#nacre(await this.#open(of === PUBLISHED), what, number);
    return Response.json(await run);
  }

  async #nacre(db, what, number) {
    if (what === 'load') {
      await db.exec(`create table if not exists ${CREATE.slice('create table '.length)}`);
      const rows = Array.from({ length: number('rows') }, (_, n) => row(number('from') + n));
      const [id, region, amount, note] = [0, 1, 2, 3].map((at) => rows.map((each) => each[at]));
      await db.insertRows('t', { id, region, amount, note });
      return rows.length;
    }
    if (what === 'settle') {
      await db.exec('optimize table t full');
      await db.upload();
      return (await db.storage()).bytes;
    }
    if (what === 'aggregate') {
      return repeat(number('count'), async () => (await db.query(AGGREGATE)).rows);
    }
    const statement = await db.prepare(what === 'points' ? POINT : PAGE);
    let sum = 0;
    for (const id of ids(number)) {
      for (const { amount } of statement.allSync([id])) {
        sum += amount;
      }
    }
    return sum;
  }

  #sqlite(what, number) {
    const { sql } = this.#state.storage;
    if (what === 'empty') {
      return 0;
    }
    if (what === 'load') {
      sql.exec(
        'create table if not exists t (id integer primary key, region int, amount real, note text)',
      );
      for (let n = 0; n < number('rows'); n++) {
        sql.exec('insert into t values (?, ?, ?, ?)', ...row(number('from') + n));
      }
      return number('rows');
    }
    if (what === 'aggregate') {
      return repeat(number('count'), () => [...sql.exec(AGGREGATE)]);
    }
    let sum = 0;
    for (const id of ids(number)) {
      for (const { amount } of sql.exec(what === 'points' ? POINT : PAGE, id)) {
        sum += amount;
      }
    }
    return sum;
  }
}

async function repeat(count, work) {
  let rows;
  for (let at = 0; at < count; at++) {
    rows = await work();
  }
  return rows;
}

/** Keys in random order, the same for both. */
function* ids(number) {
  let state = 1;
  for (let at = 0; at < number('count'); at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state % number('of');
  }
}

/** A bucket that counts its requests, how many times it was waited for, and the bytes of the answers. */
function counted(bucket) {
  const seen = { requests: 0, waits: 0, bytes: 0 };
  let pending = 0;
  const count = (object) => {
    seen.bytes += object?.size === undefined ? 0 : (object.range?.length ?? object.size);
    return object;
  };
  const call = (name) => {
    const of = async (...args) => {
      seen.requests++;
      seen.waits += pending++ === 0 ? 1 : 0;
      try {
        return await bucket[name](...args);
      } finally {
        pending--;
      }
    };
    return name === 'get' ? async (...args) => count(await of(...args)) : of;
  };
  const names = ['get', 'head', 'put', 'delete', 'list'];
  return { seen, bucket: Object.fromEntries(names.map((name) => [name, call(name)])) };
}

/** Opens the bucket's database to read it, runs one query twice, and answers what each part has read. */
async function read(env, what, number) {
  const { seen, bucket } = counted(env.BUCKET);
  const parts = {};
  const part = async (name, work) => {
    const before = { ...seen };
    const value = await work();
    parts[name] = Object.fromEntries(
      Object.entries(seen).map(([what, now]) => [what, now - before[what]]),
    );
    return value;
  };
  const db = await part('open', () =>
    connect({ blobs: { bucket, prefix: PREFIX }, readOnly: true, types }),
  );
  const [id] = ids(number);
  const sql = { points: POINT, pages: PAGE, aggregate: AGGREGATE }[what];
  const parameters = what === 'aggregate' ? [] : [id];
  const cold = await part('cold', async () => (await db.query(sql, parameters)).rows);
  const warm = await part('warm', async () => (await db.query(sql, parameters)).rows);
  await db.close();
  return { parts, same: JSON.stringify(cold) === JSON.stringify(warm), rows: cold.length };
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const [of, what] = pathname.slice(1).split('/');
    if (of === 'reader') {
      return Response.json(await read(env, what, (name) => Number(searchParams.get(name))));
    }
    const { TENANT } = env;
    return TENANT.get(TENANT.idFromName(of === PUBLISHED ? of : 'bench')).fetch(request);
  },
};
