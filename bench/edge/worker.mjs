/**
 * The Worker of `npm run bench -- edge`: a Durable Object with the same rows in Nacre, whose files are in
 * the object's storage, and in a table of that storage, which is SQLite.
 */

import { connect } from './edge.js';

const CREATE = 'create table t (id bigint primary key, region int, amount double, note text)';
const row = (id) => [id, (id * 7919) % 100, id / 8, `note ${id}`];
const POINT = 'select * from t where id = ?';
const PAGE = 'select * from t where id >= ? order by id limit 100';
const AGGREGATE =
  'select region, count(*) as n, sum(amount) as s from t group by region order by region';

export class Bench {
  #state;
  #db = null;

  constructor(state) {
    this.#state = state;
  }

  get #open() {
    this.#db ??= connect({ state: this.#state, types: { bigint: 'number', decimal: 'number' } });
    return this.#db;
  }

  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [of, what] = pathname.slice(1).split('/');
    const number = (name) => Number(searchParams.get(name));
    const run = of === 'nacre' ? await this.#nacre(what, number) : this.#sqlite(what, number);
    return Response.json(await run);
  }

  async #nacre(what, number) {
    const db = await this.#open;
    if (what === 'load') {
      await db.exec(`create table if not exists ${CREATE.slice('create table '.length)}`);
      const rows = Array.from({ length: number('rows') }, (_, n) => row(number('from') + n));
      const [id, region, amount, note] = [0, 1, 2, 3].map((at) => rows.map((each) => each[at]));
      await db.insertRows('t', { id, region, amount, note });
      return rows.length;
    }
    if (what === 'settle') {
      await db.exec('optimize table t full');
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

export default {
  fetch(request, { TENANT }) {
    return TENANT.get(TENANT.idFromName('bench')).fetch(request);
  },
};
