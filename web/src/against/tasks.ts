// What is compared: one text of SQL for all systems, on the tables of TPC-H.

import { createTable, TABLES } from '../load/tables';
import type { Job } from './protocol';

/** How a task is reported. */
export type Unit = 'time' | 'rows/s' | 'reads/s' | 'commits/s';

/** A line of the report. */
export interface Measured {
  id: string;
  group: 'Start and load' | 'One row at a time' | 'All rows' | 'Both at once';
  title: string;
  why: string;
  unit: Unit;
  /** Operations per run. */
  count: number;
}

/** What is run once per round. */
export interface Task extends Measured {
  job(round: number): Job;
  /** A query that shows what the run changed. Without it, the run's own rows are compared. */
  check?(round: number): string;
}

export const START: Measured = {
  id: 'start',
  group: 'Start and load',
  title: 'Start',
  why: 'Fetch the code, compile it, and create an empty database.',
  unit: 'time',
  count: 1,
};

/** Its count is the number of rows. */
export const LOAD: Measured = {
  id: 'load',
  group: 'Start and load',
  title: 'Load the tables',
  why: 'From lines of text to committed rows in eight tables with primary keys.',
  unit: 'rows/s',
  count: 0,
};

/** The statements that create the tables. SQLite, DuckDB and PostgreSQL read them too. */
export const SCHEMA = TABLES.map(createTable);

const READS = 1000;
const COMMITS = 200;
const MIXED = 10;

/** Keys of orders, in an order without pattern. TPC-H uses eight of every 32 numbers. */
function orderKeys(count: number, orders: number, salt: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const order = ((index + 1) * 7919 + salt * 104_729) % orders;
    return Math.floor(order / 8) * 32 + (order % 8) + 1;
  });
}

const query = (id: string, title: string, why: string, sql: string): Task => ({
  id,
  group: 'All rows',
  title,
  why,
  unit: 'time',
  count: 1,
  job: () => ({ name: 'query', sql }),
});

/** The tasks after start and load, for a number of orders. */
export function tasks(orders: number): Task[] {
  return [
    {
      id: 'reads',
      group: 'One row at a time',
      title: 'Read rows by key',
      why: `${READS} orders by primary key, one prepared statement, one call each.`,
      unit: 'reads/s',
      count: READS,
      job: (round) => ({
        name: 'each',
        sql: 'select o_orderkey, o_totalprice, o_orderdate, o_comment from orders where o_orderkey = ?',
        parameters: orderKeys(READS, orders, round).map((key) => [key]),
      }),
    },
    {
      id: 'commits',
      group: 'One row at a time',
      title: 'Commit small transactions',
      why: `${COMMITS} updates of one order, each committed before the next begins.`,
      unit: 'commits/s',
      count: COMMITS,
      job: (round) => ({
        name: 'each',
        sql: 'update orders set o_comment = ? where o_orderkey = ?',
        parameters: orderKeys(COMMITS, orders, round).map((key) => [`round ${round}`, key]),
      }),
      check: (round) => `select count(*) from orders where o_comment = 'round ${round}'`,
    },
    query(
      'sum',
      'Sum with a filter',
      'TPC-H query 6: three filters, one sum.',
      `select sum(l_extendedprice * l_discount) as revenue
from lineitem
where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01'
  and l_discount between 0.05 and 0.07 and l_quantity < 24`,
    ),
    query(
      'group',
      'Group all rows',
      'TPC-H query 1: eight sums and averages in four groups.',
      `select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
  sum(l_extendedprice) as sum_base_price,
  sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
  avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price,
  avg(l_discount) as avg_disc, count(*) as count_order
from lineitem
where l_shipdate <= '1998-09-02'
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus`,
    ),
    query(
      'like',
      'Search text',
      'Comments of all line items that contain two words.',
      `select count(*) from lineitem where l_comment like '%final%deposits%'`,
    ),
    query(
      'distinct',
      'Count distinct values',
      'Customers per order status.',
      `select o_orderstatus, count(distinct o_custkey) as customers
from orders group by o_orderstatus order by o_orderstatus`,
    ),
    query(
      'q3',
      'Join three tables',
      'TPC-H query 3: the most valuable orders that are not shipped.',
      `select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
  and o_orderdate < '1995-03-15' and l_shipdate > '1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10`,
    ),
    query(
      'q5',
      'Join six tables',
      'TPC-H query 5: revenue by nation in Asia.',
      `select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
  and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
  and r_name = 'ASIA' and o_orderdate >= '1994-01-01' and o_orderdate < '1995-01-01'
group by n_name
order by revenue desc`,
    ),
    query(
      'q14',
      'Join and divide',
      'TPC-H query 14: the share of promotions.',
      `select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
  / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem, part
where l_partkey = p_partkey and l_shipdate >= '1995-09-01' and l_shipdate < '1995-10-01'`,
    ),
    {
      id: 'mixed',
      group: 'Both at once',
      title: 'Update and sum in one transaction',
      why: `${MIXED} transactions: update the lines of one order, sum the revenue of all, commit.`,
      unit: 'time',
      count: MIXED,
      job: (round) => ({
        name: 'mixed',
        update: 'update lineitem set l_discount = ? where l_orderkey = ?',
        query: 'select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem',
        parameters: orderKeys(MIXED, orders, round + 17).map((key, index) => [
          ((index + round) % 10) / 100,
          key,
        ]),
      }),
    },
  ];
}
