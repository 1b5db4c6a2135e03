// The eight TPC-H tables, in load order: small tables first, so that the progress screen moves at
// once.

/** Kind of a field in a TBL line. Integers become numbers; all other fields are passed as text. */
export type Field = 'integer' | 'decimal' | 'text' | 'date';

/** One table of the schema. */
export interface TableDefinition {
  name: string;
  columns: { name: string; type: string; field: Field }[];
  key: string[];
}

const integer = (name: string) => ({ name, type: 'integer', field: 'integer' as const });
const bigint = (name: string) => ({ name, type: 'bigint', field: 'integer' as const });
const money = (name: string) => ({ name, type: 'decimal(15, 2)', field: 'decimal' as const });
const date = (name: string) => ({ name, type: 'date', field: 'date' as const });
const text = (name: string, length: number) => ({
  name,
  type: `varchar(${length})`,
  field: 'text' as const,
});

export const TABLES: TableDefinition[] = [
  {
    name: 'region',
    columns: [integer('r_regionkey'), text('r_name', 25), text('r_comment', 152)],
    key: ['r_regionkey'],
  },
  {
    name: 'nation',
    columns: [
      integer('n_nationkey'),
      text('n_name', 25),
      integer('n_regionkey'),
      text('n_comment', 152),
    ],
    key: ['n_nationkey'],
  },
  {
    name: 'supplier',
    columns: [
      bigint('s_suppkey'),
      text('s_name', 25),
      text('s_address', 40),
      integer('s_nationkey'),
      text('s_phone', 15),
      money('s_acctbal'),
      text('s_comment', 101),
    ],
    key: ['s_suppkey'],
  },
  {
    name: 'customer',
    columns: [
      bigint('c_custkey'),
      text('c_name', 25),
      text('c_address', 40),
      integer('c_nationkey'),
      text('c_phone', 15),
      money('c_acctbal'),
      text('c_mktsegment', 10),
      text('c_comment', 117),
    ],
    key: ['c_custkey'],
  },
  {
    name: 'part',
    columns: [
      bigint('p_partkey'),
      text('p_name', 55),
      text('p_mfgr', 25),
      text('p_brand', 10),
      text('p_type', 25),
      integer('p_size'),
      text('p_container', 10),
      money('p_retailprice'),
      text('p_comment', 23),
    ],
    key: ['p_partkey'],
  },
  {
    name: 'partsupp',
    columns: [
      bigint('ps_partkey'),
      bigint('ps_suppkey'),
      integer('ps_availqty'),
      money('ps_supplycost'),
      text('ps_comment', 199),
    ],
    key: ['ps_partkey', 'ps_suppkey'],
  },
  {
    name: 'orders',
    columns: [
      bigint('o_orderkey'),
      bigint('o_custkey'),
      text('o_orderstatus', 1),
      money('o_totalprice'),
      date('o_orderdate'),
      text('o_orderpriority', 15),
      text('o_clerk', 15),
      integer('o_shippriority'),
      text('o_comment', 79),
    ],
    key: ['o_orderkey'],
  },
  {
    name: 'lineitem',
    columns: [
      bigint('l_orderkey'),
      bigint('l_partkey'),
      bigint('l_suppkey'),
      integer('l_linenumber'),
      money('l_quantity'),
      money('l_extendedprice'),
      money('l_discount'),
      money('l_tax'),
      text('l_returnflag', 1),
      text('l_linestatus', 1),
      date('l_shipdate'),
      date('l_commitdate'),
      date('l_receiptdate'),
      text('l_shipinstruct', 25),
      text('l_shipmode', 10),
      text('l_comment', 44),
    ],
    key: ['l_orderkey', 'l_linenumber'],
  },
];

/** The statement that creates a table. */
export function createTable({ name, columns, key }: TableDefinition): string {
  const lines = columns.map((column) => `  ${column.name} ${column.type} not null`);
  return `create table ${name} (\n${lines.join(',\n')},\n  primary key (${key.join(', ')})\n)`;
}
