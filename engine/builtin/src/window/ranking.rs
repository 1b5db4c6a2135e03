//! Functions of a row's position in its partition.

use nacre_function::entry::coerce;
use nacre_function::entry::definition::{Arguments, Arity};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::window::{WindowFunction, WindowRow};
use nacre_types::{DataType, Error, Result, Value};

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&WindowFunction] = &[
    &WindowFunction {
        names: &["row_number"],
        doc: Doc::new(
            "row_number()",
            "The number of the row in its partition, from 1.",
            "row_number() over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "3",
        ),
        arity: Arity::exactly(0),
        typing: |_, _| Ok((Vec::new(), DataType::Int64)),
        value: |row| Ok(Value::Int(row.before() as i64 + 1)),
    },
    &WindowFunction {
        names: &["rank"],
        doc: Doc::new(
            "rank()",
            "The number of the first row of equal order.",
            "rank() over (order by n) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "2",
        ),
        arity: Arity::exactly(0),
        typing: |_, _| Ok((Vec::new(), DataType::Int64)),
        value: |row| Ok(Value::Int((row.peers.start - row.partition.start) as i64 + 1)),
    },
    &WindowFunction {
        names: &["dense_rank"],
        doc: Doc::new(
            "dense_rank()",
            "The number of the row's order among the distinct ones.",
            "dense_rank() over (order by n) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "2",
        ),
        arity: Arity::exactly(0),
        typing: |_, _| Ok((Vec::new(), DataType::Int64)),
        value: |row| Ok(Value::Int(row.dense_rank)),
    },
    &WindowFunction {
        names: &["percent_rank"],
        doc: Doc::new(
            "percent_rank()",
            "The share of other rows of the partition that come before rows of equal order.",
            "percent_rank() over (order by n) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "0.5",
        ),
        arity: Arity::exactly(0),
        typing: |_, _| Ok((Vec::new(), DataType::Float64)),
        value: |row| {
            let (before, others) = (row.peers.start - row.partition.start, row.partition.len() - 1);
            Ok(Value::Float(if others == 0 { 0.0 } else { before as f64 / others as f64 }))
        },
    },
    &WindowFunction {
        names: &["cume_dist"],
        doc: Doc::new(
            "cume_dist()",
            "The share of rows of the partition up to the last of equal order.",
            "cume_dist() over (order by n) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "1.0",
        ),
        arity: Arity::exactly(0),
        typing: |_, _| Ok((Vec::new(), DataType::Float64)),
        value: |row| {
            let up_to = row.peers.end - row.partition.start;
            Ok(Value::Float(up_to as f64 / row.partition.len() as f64))
        },
    },
    &WindowFunction {
        names: &["ntile"],
        doc: Doc::new(
            "ntile(n)",
            "The number of the row's bucket, of `n` nearly equal ones.",
            "ntile(2) over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
            "2",
        ),
        arity: Arity::exactly(1),
        typing: bucket_count,
        value: bucket,
    },
];

fn bucket_count(
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<(Vec<Operand>, DataType)> {
    let name = arguments.name;
    let [count] = arguments.exactly()?;
    let count = coerce::integer(binding, count, name)?;
    Ok((vec![binding.cast(count, DataType::Int64)?], DataType::Int64))
}

fn bucket(row: &WindowRow<'_>) -> Result<Value> {
    let buckets = match row.argument(0) {
        // More buckets than rows are allowed.
        Some(Value::Int(n)) if n > 0 => usize::try_from(n).unwrap_or(usize::MAX),
        Some(Value::Null) => return Ok(Value::Null),
        _ => {
            return Err(Error::type_error("ntile takes a positive number").with_sqlstate("22014"));
        }
    };
    let (at, size) = (row.before(), row.partition.len());
    // The first buckets have one row more.
    let (small, larger) = (size / buckets, size % buckets);
    let boundary = larger * (small + 1);
    let before =
        if at < boundary { at / (small + 1) } else { larger + (at - boundary) / small.max(1) };
    Ok(Value::Int(before as i64 + 1))
}
