//! Definitions of the TPC-H tables, and their generated rows. Lengths of `CHAR` and `VARCHAR`, and
//! `DECIMAL(15,2)` for amounts, follow clause 1.4 of the TPC-H specification.

use nacredb::{Batch, DataType, VectorBuilder};
use std::fmt::{Display, Write};
use std::sync::Arc;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// Number of rows per batch.
const BATCH_ROWS: usize = 8192;

/// A table to generate.
pub struct Table {
    pub name: &'static str,
    pub ddl: &'static str,
    /// Approximate number of generator steps, for the progress bar.
    pub units: u64,
    pub batches: Box<dyn Batches>,
}

/// A batch of rows and the number of generator steps so far.
pub struct Produced {
    pub batch: Batch,
    pub units: u64,
}

/// Generates rows in batches.
pub trait Batches {
    /// Returns the next batch, with columns of the given types, or `None` at the end.
    fn next_batch(&mut self, types: &[DataType]) -> Option<Produced>;
}

/// Writes the columns of one row, in order.
struct Row<'a> {
    builders: &'a mut [VectorBuilder],
    at: usize,
    text: &'a mut String,
}

impl Row<'_> {
    fn int(&mut self, value: impl Into<i64>) -> &mut Self {
        self.builders[self.at].push_i64(value.into());
        self.at += 1;
        self
    }

    fn text(&mut self, value: &str) -> &mut Self {
        self.builders[self.at].push_bytes(value.as_bytes());
        self.at += 1;
        self
    }

    /// Appends a value that the generator can only print.
    fn display(&mut self, value: impl Display) -> &mut Self {
        self.text.clear();
        // Writing into a String cannot fail.
        let _ = write!(self.text, "{value}");
        self.builders[self.at].push_bytes(self.text.as_bytes());
        self.at += 1;
        self
    }
}

/// A generator's iterator and the function that writes one of its rows.
struct Generator<I, F> {
    rows: I,
    write: F,
    units: u64,
}

impl<T, I: Iterator<Item = T>, F: Fn(&T, &mut Row<'_>)> Batches for Generator<I, F> {
    fn next_batch(&mut self, types: &[DataType]) -> Option<Produced> {
        let mut builders: Vec<VectorBuilder> =
            types.iter().map(|t| VectorBuilder::new(*t)).collect();
        let mut text = String::new();
        let mut rows = 0;
        for item in self.rows.by_ref().take(BATCH_ROWS) {
            let mut row = Row { builders: &mut builders, at: 0, text: &mut text };
            (self.write)(&item, &mut row);
            debug_assert_eq!(row.at, types.len(), "a row has one value per column");
            rows += 1;
        }
        self.units += rows as u64;
        let batch = Batch::new(builders.into_iter().map(|b| Arc::new(b.finish())).collect(), rows);
        (rows > 0).then_some(Produced { batch, units: self.units })
    }
}

fn batches<T: 'static>(
    rows: impl Iterator<Item = T> + 'static,
    write: impl Fn(&T, &mut Row<'_>) + 'static,
) -> Box<dyn Batches> {
    Box::new(Generator { rows, write, units: 0 })
}

/// Returns all eight tables, referenced tables first.
pub fn all(scale: f64) -> Vec<Table> {
    let scaled = |base: f64| (base * scale).max(1.0) as u64;
    let table = |name, ddl, units, batches| Table { name, ddl, units, batches };
    vec![
        table("region", REGION, 5, {
            batches(RegionGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.r_regionkey).text(r.r_name).text(r.r_comment);
            })
        }),
        table("nation", NATION, 25, {
            batches(NationGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.n_nationkey).text(r.n_name).int(r.n_regionkey).text(r.n_comment);
            })
        }),
        table("supplier", SUPPLIER, scaled(10e3), {
            batches(SupplierGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.s_suppkey).display(r.s_name).display(&r.s_address).int(r.s_nationkey);
                row.display(&r.s_phone).int(r.s_acctbal.0).text(&r.s_comment);
            })
        }),
        table("customer", CUSTOMER, scaled(150e3), {
            batches(CustomerGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.c_custkey).display(r.c_name).display(&r.c_address).int(r.c_nationkey);
                row.display(&r.c_phone).int(r.c_acctbal.0).text(r.c_mktsegment).text(r.c_comment);
            })
        }),
        table("part", PART, scaled(200e3), {
            batches(PartGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.p_partkey)
                    .display(&r.p_name)
                    .display(r.p_mfgr)
                    .display(r.p_brand)
                    .text(r.p_type);
                row.int(r.p_size).text(r.p_container).int(r.p_retailprice.0).text(r.p_comment);
            })
        }),
        table("partsupp", PARTSUPP, scaled(800e3), {
            batches(PartSuppGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.ps_partkey).int(r.ps_suppkey).int(r.ps_availqty).int(r.ps_supplycost.0);
                row.text(r.ps_comment);
            })
        }),
        table("orders", ORDERS, scaled(1.5e6), {
            batches(OrderGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.o_orderkey)
                    .int(r.o_custkey)
                    .display(r.o_orderstatus)
                    .int(r.o_totalprice.0);
                row.int(r.o_orderdate.to_unix_epoch()).text(r.o_orderpriority).display(r.o_clerk);
                row.int(r.o_shippriority).text(r.o_comment);
            })
        }),
        table("lineitem", LINEITEM, scaled(6.0012e6), {
            batches(LineItemGenerator::new(scale, 1, 1).iter(), |r, row| {
                row.int(r.l_orderkey).int(r.l_partkey).int(r.l_suppkey).int(r.l_linenumber);
                // The generator yields whole numbers, the column stores hundredths.
                row.int(r.l_quantity * 100)
                    .int(r.l_extendedprice.0)
                    .int(r.l_discount.0)
                    .int(r.l_tax.0);
                row.text(r.l_returnflag).text(r.l_linestatus).int(r.l_shipdate.to_unix_epoch());
                row.int(r.l_commitdate.to_unix_epoch()).int(r.l_receiptdate.to_unix_epoch());
                row.text(r.l_shipinstruct).text(r.l_shipmode).text(r.l_comment);
            })
        }),
    ]
}

const REGION: &str = "create table region (
  r_regionkey integer not null,
  r_name char(25) not null,
  r_comment varchar(152) not null,
  primary key (r_regionkey))";

const NATION: &str = "create table nation (
  n_nationkey integer not null,
  n_name char(25) not null,
  n_regionkey integer not null,
  n_comment varchar(152) not null,
  primary key (n_nationkey))";

const SUPPLIER: &str = "create table supplier (
  s_suppkey bigint not null,
  s_name char(25) not null,
  s_address varchar(40) not null,
  s_nationkey integer not null,
  s_phone char(15) not null,
  s_acctbal decimal(15,2) not null,
  s_comment varchar(101) not null,
  primary key (s_suppkey))";

const CUSTOMER: &str = "create table customer (
  c_custkey bigint not null,
  c_name varchar(25) not null,
  c_address varchar(40) not null,
  c_nationkey integer not null,
  c_phone char(15) not null,
  c_acctbal decimal(15,2) not null,
  c_mktsegment char(10) not null,
  c_comment varchar(117) not null,
  primary key (c_custkey))";

const PART: &str = "create table part (
  p_partkey bigint not null,
  p_name varchar(55) not null,
  p_mfgr char(25) not null,
  p_brand char(10) not null,
  p_type varchar(25) not null,
  p_size integer not null,
  p_container char(10) not null,
  p_retailprice decimal(15,2) not null,
  p_comment varchar(23) not null,
  primary key (p_partkey))";

const PARTSUPP: &str = "create table partsupp (
  ps_partkey bigint not null,
  ps_suppkey bigint not null,
  ps_availqty integer not null,
  ps_supplycost decimal(15,2) not null,
  ps_comment varchar(199) not null,
  primary key (ps_partkey, ps_suppkey))";

const ORDERS: &str = "create table orders (
  o_orderkey bigint not null,
  o_custkey bigint not null,
  o_orderstatus char(1) not null,
  o_totalprice decimal(15,2) not null,
  o_orderdate date not null,
  o_orderpriority char(15) not null,
  o_clerk char(15) not null,
  o_shippriority integer not null,
  o_comment varchar(79) not null,
  primary key (o_orderkey))";

const LINEITEM: &str = "create table lineitem (
  l_orderkey bigint not null,
  l_partkey bigint not null,
  l_suppkey bigint not null,
  l_linenumber integer not null,
  l_quantity decimal(15,2) not null,
  l_extendedprice decimal(15,2) not null,
  l_discount decimal(15,2) not null,
  l_tax decimal(15,2) not null,
  l_returnflag char(1) not null,
  l_linestatus char(1) not null,
  l_shipdate date not null,
  l_commitdate date not null,
  l_receiptdate date not null,
  l_shipinstruct char(25) not null,
  l_shipmode char(10) not null,
  l_comment varchar(44) not null,
  primary key (l_orderkey, l_linenumber))";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the column types that a DDL statement declares.
    fn types(ddl: &str) -> Vec<DataType> {
        let lines = ddl.lines().skip(1).filter(|line| line.contains("not null"));
        let number = |text: &str| text.split(['(', ')']).nth(1).and_then(|n| n.parse().ok());
        lines
            .map(|line| match line.split_whitespace().nth(1).unwrap() {
                "integer" => DataType::Int32,
                "bigint" => DataType::Int64,
                "date" => DataType::Date,
                "decimal(15,2)" => DataType::Decimal { precision: 15, scale: 2 },
                text => DataType::Text { max_chars: Some(number(text).unwrap()) },
            })
            .collect()
    }

    #[test]
    fn rows_match_the_printed_form() {
        let printed: Vec<Vec<String>> = vec![
            RegionGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            NationGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            SupplierGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            CustomerGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            PartGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            PartSuppGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            OrderGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
            LineItemGenerator::new(0.001, 1, 1).iter().map(|r| r.to_string()).collect(),
        ];
        for (table, printed) in all(0.001).into_iter().zip(printed) {
            let types = types(table.ddl);
            let mut batches = table.batches;
            let mut rows = Vec::new();
            while let Some(produced) = batches.next_batch(&types) {
                assert_eq!(produced.batch.columns.len(), types.len());
                for row in 0..produced.batch.rows {
                    let cells = produced.batch.columns.iter().map(|c| c.value(row).to_string());
                    rows.push(cells.map(|cell| cell + "|").collect::<String>());
                }
            }
            assert_eq!(rows.len(), printed.len(), "{}", table.name);
            for (row, printed) in rows.iter().zip(&printed) {
                // Quantity is the only amount that the generator prints without hundredths.
                let row = match table.name {
                    "lineitem" => row.replacen(".00|", "|", 1),
                    _ => row.clone(),
                };
                assert_eq!(&row, printed, "{}", table.name);
            }
        }
    }

    #[test]
    fn texts_fit_their_columns() {
        for table in all(0.01) {
            let types = types(table.ddl);
            let mut batches = table.batches;
            while let Some(produced) = batches.next_batch(&types) {
                for (column, data_type) in produced.batch.columns.iter().zip(&types) {
                    let DataType::Text { max_chars: Some(limit) } = data_type else { continue };
                    for row in 0..produced.batch.rows {
                        assert!(
                            column.value(row).to_string().len() <= *limit as usize,
                            "{}",
                            table.name
                        );
                    }
                }
            }
        }
    }
}
