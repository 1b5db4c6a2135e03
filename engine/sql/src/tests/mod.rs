//! Golden tests of the whole front end: text in, plan lines or error out.

mod errors;
mod growth;
mod json;
mod literal_rows;
mod plans;
mod statement_syntax;
mod statements;
mod transaction_end;

use crate::plan::Catalog;
use crate::{RowStatement, Statement, bind, explain, parse};
use nacre_types::{Column, ColumnRule, DataType, Error, KeyColumns, TableSchema, Value};
use std::sync::Arc;

/// The tables of TPC-H at scale factor 1, and a table with a column of every type.
struct TestCatalog(Vec<(Arc<TableSchema>, u64)>);

impl Catalog for TestCatalog {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.0.iter().find(|(t, _)| t.name.eq_ignore_ascii_case(name)).map(|(t, _)| t.clone())
    }
    fn table_names(&self) -> Vec<String> {
        self.0.iter().map(|(t, _)| t.name.clone()).collect()
    }
    fn row_count(&self, table: &TableSchema) -> u64 {
        self.0.iter().find(|(t, _)| t.name == table.name).map_or(0, |(_, n)| *n)
    }
}

fn table(name: &str, rows: u64, key: &[usize], columns: &str) -> (Arc<TableSchema>, u64) {
    let money = DataType::Decimal { precision: 15, scale: 2 };
    let column = |(id, text): (usize, &str)| {
        let (name, kind) = text.split_once(':').unwrap();
        let data_type = match kind {
            "b" => DataType::Boolean,
            "i8" => DataType::Int8,
            "i" => DataType::Int32,
            "l" => DataType::Int64,
            "ul" => DataType::UInt64,
            "m" => money,
            "f" => DataType::Float32,
            "d" => DataType::Float64,
            "t" => DataType::TEXT,
            "v5" => DataType::Text { max_chars: Some(5) },
            "date" => DataType::Date,
            "ts" => DataType::Timestamp,
            "time" => DataType::Time,
            "json" => DataType::Json,
            "blob" => DataType::BLOB,
            other => panic!("{other}"),
        };
        let default = if name == "with_default" { Value::Int(7) } else { Value::Null };
        let nullable = name.ends_with("_n") || name == "with_default" || rows == 1000;
        let nullable = nullable && !key.contains(&id);
        Column {
            id: id as u32,
            name: name.into(),
            data_type,
            nullable,
            default,
            rule: ColumnRule::Constant,
        }
    };
    let columns = columns.split_whitespace().enumerate().map(column).collect();
    let primary_key =
        (!key.is_empty()).then(|| KeyColumns { name: "PRIMARY".into(), columns: key.to_vec() });
    (
        Arc::new(TableSchema {
            id: 1,
            name: name.into(),
            columns,
            primary_key,
            ..TableSchema::default()
        }),
        rows,
    )
}

fn catalog() -> TestCatalog {
    TestCatalog(vec![
        table("region", 5, &[0], "r_regionkey:i r_name:t r_comment:t"),
        table("nation", 25, &[0], "n_nationkey:i n_name:t n_regionkey:i n_comment:t"),
        table(
            "part",
            200_000,
            &[0],
            "p_partkey:i p_name:t p_mfgr:t p_brand:t p_type:t p_size:i p_container:t p_retailprice:m p_comment:t",
        ),
        table(
            "supplier",
            10_000,
            &[0],
            "s_suppkey:i s_name:t s_address:t s_nationkey:i s_phone:t s_acctbal:m s_comment:t",
        ),
        table(
            "partsupp",
            800_000,
            &[0, 1],
            "ps_partkey:i ps_suppkey:i ps_availqty:i ps_supplycost:m ps_comment:t",
        ),
        table(
            "customer",
            150_000,
            &[0],
            "c_custkey:i c_name:t c_address:t c_nationkey:i c_phone:t c_acctbal:m c_mktsegment:t c_comment:t",
        ),
        table(
            "orders",
            1_500_000,
            &[0],
            "o_orderkey:l o_custkey:i o_orderstatus:t o_totalprice:m o_orderdate:date o_orderpriority:t o_clerk:t o_shippriority:i o_comment:t",
        ),
        table(
            "lineitem",
            6_000_000,
            &[0, 3],
            "l_orderkey:l l_partkey:i l_suppkey:i l_linenumber:i l_quantity:m l_extendedprice:m l_discount:m l_tax:m l_returnflag:t l_linestatus:t l_shipdate:date l_commitdate:date l_receiptdate:date l_shipinstruct:t l_shipmode:t l_comment:t",
        ),
        table(
            "t",
            1000,
            &[0],
            "id:l a:i b:i tiny:i8 big:ul price:m ratio:d single:f name:t code:v5 day:date at:ts clock:time flag:b doc:json raw:blob with_default:i",
        ),
        table("u", 1000, &[], "id:l a:i c:t"),
    ])
}

fn plan(sql: &str, types: &[DataType]) -> Result<(Statement, Vec<DataType>), Error> {
    let parsed = parse(sql)?;
    assert_eq!(parsed.len(), 1, "{sql}");
    let given: Vec<_> = types.iter().map(|t| crate::Given::from(*t)).collect();
    let bound = bind(&parsed[0], &catalog(), &given)?;
    Ok((bound.statement, bound.parameters))
}

/// Compares the plan of a statement with the expected lines.
#[track_caller]
fn check(sql: &str, expected: &str) {
    let lines = match plan(sql, &[]) {
        Ok((statement, parameters)) => {
            let mut lines = explain(&statement);
            if !parameters.is_empty() {
                lines.push(format!("parameters {parameters:?}"));
            }
            lines
        }
        Err(e) => vec![format!("{} {e}", e.sqlstate())],
    };
    let expected: Vec<&str> =
        expected.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    let indent = expected.first().map_or(0, |l| l.len() - l.trim_start().len());
    let expected: Vec<&str> =
        expected.iter().map(|l| l.get(indent..).unwrap_or(l.trim_start())).collect();
    if lines != expected {
        panic!("{sql}\n--- got\n{}\n--- expected\n{}\n", lines.join("\n"), expected.join("\n"));
    }
}

/// Compares the error of a statement: its SQLSTATE, then its display text.
#[track_caller]
fn fails(sql: &str, expected: &str) {
    match plan(sql, &[]) {
        Ok((statement, _)) => panic!("{sql}\nbound to\n{}", explain(&statement).join("\n")),
        Err(e) => assert_eq!(format!("{} {e}", e.sqlstate()), expected, "{sql}"),
    }
}

/// Checks the result type of `SELECT <expr> FROM t`.
#[track_caller]
fn typed(expr: &str, expected: &str) {
    match plan(&format!("select {expr} from t"), &[]) {
        Ok((Statement::Rows(RowStatement::Query(plan)), _)) => {
            assert_eq!(plan.fields()[0].data_type.to_string(), expected, "{expr}");
        }
        Ok(other) => panic!("{other:?}"),
        Err(e) => panic!("{expr}: {e}"),
    }
}
