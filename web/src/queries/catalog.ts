// The ready-made statements. Each shows one thing that the engine does.

export interface ReadyQuery {
  id: string;
  title: string;
  why: string;
  sql: string;
}

export interface QueryGroup {
  title: string;
  queries: ReadyQuery[];
}

const ORDER = 4711;

export const GROUPS: QueryGroup[] = [
  {
    title: 'One row',
    queries: [
      {
        id: 'read',
        title: 'Read an order',
        why: 'By primary key: finds the row without decoding its neighbours.',
        sql: `select *\nfrom orders\nwhere o_orderkey = ${ORDER}`,
      },
      {
        id: 'change',
        title: 'Update an order',
        why: 'The old version gets a delete bit; the new one goes to the rowstore.',
        sql: `update orders\nset o_orderstatus = 'F', o_comment = 'changed in this tab'\nwhere o_orderkey = ${ORDER}`,
      },
      {
        id: 'return',
        title: 'Delete a line item',
        why: 'A delete never rewrites a segment: it sets one bit beside it.',
        sql: `delete from lineitem\nwhere l_orderkey = ${ORDER} and l_linenumber = 1`,
      },
    ],
  },
  {
    title: 'All rows',
    queries: [
      {
        id: 'aggregate',
        title: 'Aggregate all line items',
        why: 'TPC-H query 1: eight sums and averages over the largest table.',
        sql: `select
  l_returnflag,
  l_linestatus,
  sum(l_quantity) as sum_qty,
  sum(l_extendedprice) as sum_base_price,
  sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
  avg(l_quantity) as avg_qty,
  avg(l_discount) as avg_disc,
  count(*) as count_order
from lineitem
where l_shipdate <= date '1998-09-02'
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus`,
      },
      {
        id: 'customers',
        title: 'Top customers',
        why: 'Two joins, grouped by customer, the ten largest totals.',
        sql: `select
  c_name,
  n_name as nation,
  count(*) as orders,
  sum(o_totalprice) as spent
from orders
join customer on c_custkey = o_custkey
join nation on n_nationkey = c_nationkey
group by c_name, n_name
order by spent desc
limit 10`,
      },
      {
        id: 'modes',
        title: 'Late deliveries',
        why: 'Compares two date columns and counts by shipping mode.',
        sql: `select
  l_shipmode,
  count(*) as lines,
  sum(case when l_receiptdate > l_commitdate then 1 else 0 end) as late,
  sum(l_extendedprice * l_discount) as given_away
from lineitem
where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
group by l_shipmode
order by late desc`,
      },
      {
        id: 'months',
        title: 'Revenue by month',
        why: 'A line over time: choose Chart above the result.',
        sql: `select
  date_trunc('month', o_orderdate) as month,
  sum(o_totalprice) as revenue,
  count(*) as orders
from orders
where o_orderdate < date '1998-08-01'
group by date_trunc('month', o_orderdate)
order by month`,
      },
      {
        id: 'browse',
        title: 'Browse all line items',
        why: 'Sends all 60,000 rows to the page; the table draws only what is visible.',
        sql: `select l_orderkey, l_linenumber, l_quantity, l_extendedprice, l_shipdate, l_shipmode, l_comment
from lineitem
order by l_orderkey, l_linenumber`,
      },
    ],
  },
  {
    title: 'Transactions',
    queries: [
      {
        id: 'both',
        title: 'Update and sum in one transaction',
        why: 'The sum sees the update before it is committed.',
        sql: `begin;

update lineitem
set l_discount = 0.10
where l_orderkey = ${ORDER};

select count(*) as lines, sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem;

commit;`,
      },
      {
        id: 'undo',
        title: 'Update and roll back',
        why: 'After the rollback the order is unchanged.',
        sql: `begin;

update orders
set o_totalprice = 0
where o_orderkey = ${ORDER};

rollback;

select o_orderkey, o_totalprice
from orders
where o_orderkey = ${ORDER};`,
      },
    ],
  },
  {
    title: 'Under the hood',
    queries: [
      {
        id: 'flush',
        title: 'Flush the rowstore',
        why: 'Recent changes become one more immutable segment.',
        sql: 'optimize table orders flush',
      },
      {
        id: 'plan',
        title: 'Show a plan',
        why: 'How a join would run, without running it.',
        sql: `explain
select n_name, count(*)
from customer
join nation on n_nationkey = c_nationkey
where c_acctbal > 0
group by n_name`,
      },
      {
        id: 'profile',
        title: 'Time every operator',
        why: 'Runs a query and shows how long each step of its plan took.',
        sql: `profile
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem
join orders on o_orderkey = l_orderkey
join customer on c_custkey = o_custkey
join nation on n_nationkey = c_nationkey
where o_orderdate >= date '1995-01-01' and o_orderdate < date '1996-01-01'
group by n_name
order by revenue desc
limit 10`,
      },
      {
        id: 'wrong',
        title: 'Make a mistake',
        why: 'Errors have a kind and a position, and change nothing.',
        sql: 'select o_orderkey, o_total\nfrom orders\nlimit 3',
      },
    ],
  },
];
