/**
 * A page that reads a database whose bytes are behind a link: Nacre's in a bucket, with OPFS as a cache
 * of limited size, or a file of DuckDB's at a URL. `tools/bench-tier-browser.mjs` calls it step by step.
 */

import type { BlobsOptions } from 'nacredb';

import { openDuckdbAt } from './systems/duckdb';
import { openNacre } from './systems/nacre';
import type { System, Value } from './system';

const POINT =
  'select o_orderkey, o_custkey, o_totalprice, o_comment from orders where o_orderkey = ?';
const Q1 = `select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
    sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
    avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
  from lineitem where l_shipdate <= date '1998-09-02'
  group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus`;
const Q6 = `select sum(l_extendedprice * l_discount) from lineitem
  where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
    and l_discount between 0.05 and 0.07 and l_quantity < 24`;

let system: System;

/** The key of an order, by its number: eight of 32 keys are used. */
const keyOf = (order: number): number => Math.floor(order / 8) * 32 + (order % 8) + 1;

interface Step {
  ms: number;
  rows: Value[][];
}

async function step(work: () => Promise<Value[][]>): Promise<Step> {
  const started = performance.now();
  const rows = await work();
  return { ms: performance.now() - started, rows };
}

const tier = {
  openNacre: (blobs: BlobsOptions, diskLimit: number): Promise<Step> =>
    step(async () => {
      system = await openNacre({ blobs, diskLimit });
      return system.query(POINT, [keyOf(1)]);
    }),

  openDuckdb: (url: string): Promise<Step> =>
    step(async () => {
      system = await openDuckdbAt(url);
      return system.query(POINT, [keyOf(1)]);
    }),

  q1: (): Promise<Step> => step(() => system.query(Q1)),
  q6: (): Promise<Step> => step(() => system.query(Q6)),

  /** Reads orders one after another, until the time is over. */
  async points(orders: number[], limitMs: number): Promise<Step> {
    const statement = await system.prepare(POINT);
    return step(async () => {
      const until = performance.now() + limitMs;
      const rows = [];
      for (const order of orders) {
        rows.push(...(await statement.all([keyOf(order)])));
        if (performance.now() > until) break;
      }
      return rows;
    });
  },
};

export type Tier = typeof tier;

Object.assign(window, { tier });
