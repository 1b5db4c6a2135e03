//! Aggregates, joins and sorts compared with row-at-a-time models; memory limits.

use crate::build;
use crate::testing::*;
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::expr::compare_values;
use nacre_operator::join::{HashJoin, JoinSide, JoinSpec};
use nacre_operator::operator::protocol::Operator;
use nacre_operator::sort::Sort;
use nacre_sql::expr::{Aggregate, AggregateFunction, BinaryOp, Expr};
use nacre_sql::plan::{Field, JoinKind, Plan, SortKey};
use nacre_types::{DataType, ErrorKind, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;

const I64: DataType = DataType::Int64;

/// Returns prepared batches.
struct Batches(std::vec::IntoIter<Batch>);

impl Operator for Batches {
    fn next(&mut self, _: &Context<'_>) -> Result<Option<Batch>> {
        Ok(self.0.next())
    }
}

/// The rows, cut into batches at random; some flat, some dictionary-coded, some with rows that are
/// not selected.
fn source_of(random: &mut Random, types: &[DataType], rows: &[Vec<Value>]) -> Box<dyn Operator> {
    let mut batches = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let n = (1 + random.below(700) as usize).min(rows.len() - at);
        let mut padded = Vec::new();
        let mut selection = Vec::new();
        let padding = random.below(3) == 0;
        for row in &rows[at..at + n] {
            if padding && random.below(2) == 0 {
                padded.push(types.iter().map(|t| random_value(random, *t, 50, 4)).collect());
            }
            selection.push(padded.len() as u32);
            padded.push(row.clone());
        }
        let mut one = batch(
            &types
                .iter()
                .enumerate()
                .map(|(i, t)| (*t, padded.iter().map(|r: &Vec<Value>| r[i].clone()).collect()))
                .collect::<Vec<_>>(),
        );
        if random.below(2) == 0 {
            one.columns = one.columns.iter().map(|c| Arc::new(dictionary(c))).collect();
        }
        if padding {
            one.selection = Some(selection);
        }
        batches.push(one);
        at += n;
    }
    Box::new(Batches(batches.into_iter()))
}

fn rows(random: &mut Random, types: &[DataType], n: usize, domain: u64) -> Vec<Vec<Value>> {
    (0..n).map(|_| types.iter().map(|t| random_value(random, *t, domain, 6)).collect()).collect()
}

fn order(a: &[Value], b: &[Value]) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(a, b)| compare_values(a, b))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by(|a, b| order(a, b));
    rows
}

fn aggregate(
    function: &'static AggregateFunction,
    arg: Option<Expr>,
    distinct: bool,
    data_type: DataType,
) -> Aggregate {
    Aggregate {
        function: function.into(),
        args: arg.into_iter().collect(),
        order: Vec::new(),
        distinct,
        filter: None,
        data_type,
    }
}

/// The expected aggregates of one group, whose columns are `(key…, x, y, z)`.
fn model(rows: &[&Vec<Value>], x: usize) -> Vec<Value> {
    let ints: Vec<i128> = rows.iter().filter_map(|r| nacre_types::key::integer(&r[x])).collect();
    let mut distinct = ints.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let sum = |v: &[i128]| if v.is_empty() { Value::Null } else { dec(v.iter().sum(), 0) };
    let average = match ints.len() {
        0 => Value::Null,
        n => dec(
            nacre_types::decimal::divide_rounded(ints.iter().sum::<i128>() * 1_000_000, n as i128),
            6,
        ),
    };
    let best = |column: usize, wanted: Ordering| {
        let values = rows.iter().map(|r| r[column].clone()).filter(|v| !v.is_null());
        values
            .reduce(|a, b| if compare_values(&b, &a) == wanted { b } else { a })
            .unwrap_or(Value::Null)
    };
    vec![
        int(rows.len() as i64),
        int(ints.len() as i64),
        sum(&ints),
        average,
        best(x, Ordering::Less),
        best(x + 1, Ordering::Greater),
        best(x + 2, Ordering::Less),
        int(distinct.len() as i64),
        sum(&distinct),
    ]
}

fn aggregates(x: usize) -> Vec<Aggregate> {
    let (arg, text, float) = (
        || Some(col(x, I64)),
        Some(col(x + 1, DataType::TEXT)),
        Some(col(x + 2, DataType::Float64)),
    );
    vec![
        aggregate(&COUNT, None, false, I64),
        aggregate(&COUNT, arg(), false, I64),
        aggregate(&SUM, arg(), false, decimal(38, 0)),
        aggregate(&AVG, arg(), false, decimal(38, 6)),
        aggregate(&MIN, arg(), false, I64),
        aggregate(&MAX, text, false, DataType::TEXT),
        aggregate(&MIN, float, false, DataType::Float64),
        aggregate(&COUNT, arg(), true, I64),
        aggregate(&SUM, arg(), true, decimal(38, 0)),
    ]
}

#[test]
fn aggregates_agree_with_a_model() {
    let fixture = Fixture::new();
    let mut random = Random::new(7);
    let wide = decimal(30, 2);
    for (keys, domain) in [
        (vec![], 5),
        (vec![I64], 40),
        (vec![I64], 1 << 40),
        (vec![DataType::TEXT], 200),
        (vec![DataType::Boolean, DataType::Date], 30),
        (vec![I64, I64], 1 << 45),
        (vec![wide, DataType::TEXT, DataType::Float64], 6),
        (vec![I64, DataType::Float64, DataType::TEXT, DataType::Int8], 9),
    ] {
        for n in [0, 1, 3000] {
            let mut types = keys.clone();
            types.extend([I64, DataType::TEXT, DataType::Float64]);
            let input = rows(&mut random, &types, n, domain);
            let groups = keys.iter().enumerate().map(|(i, t)| col(i, *t)).collect();
            let source = source_of(&mut random, &types, &input);
            let mut operator = nacre_operator::aggregate::HashAggregate::new(
                source,
                types,
                groups,
                aggregates(keys.len()),
            )
            .unwrap();
            let found = sorted(run(&mut operator, &fixture.context()).unwrap());

            let by_key = sorted(input);
            let mut expected: Vec<Vec<Value>> = by_key
                .chunk_by(|a, b| order(&a[..keys.len()], &b[..keys.len()]).is_eq())
                .map(|group| {
                    let members: Vec<&Vec<Value>> = group.iter().collect();
                    group[0][..keys.len()]
                        .iter()
                        .cloned()
                        .chain(model(&members, keys.len()))
                        .collect()
                })
                .collect();
            if keys.is_empty() && n == 0 {
                expected.push(model(&[], 0));
            }
            assert_eq!(found, expected, "{keys:?}, {n} rows of {domain}");
        }
    }
}

#[test]
fn aggregate_filters_come_before_their_arguments() {
    let fixture = Fixture::new();
    let source = batch(&[(I64, vec![int(0), int(2), int(5)])]);
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(10), I64), col(0, I64), I64);
    let mut spec = aggregate(&SUM, Some(inverse), false, decimal(38, 0));
    spec.filter = Some(compare(BinaryOp::NotEqual, col(0, I64), lit(int(0), I64)));
    let source = Box::new(Batches(vec![source].into_iter()));
    let mut operator =
        nacre_operator::aggregate::HashAggregate::new(source, vec![I64], Vec::new(), vec![spec])
            .unwrap();
    assert_eq!(run(&mut operator, &fixture.context()).unwrap(), [[dec(7, 0)]]);
}

#[test]
fn sums_do_not_wrap() {
    let fixture = Fixture::new();
    let sum = |data_type, values: Vec<Value>| {
        let spec = aggregate(&SUM, Some(col(0, data_type)), false, decimal(38, 0));
        let source = Box::new(Batches(vec![batch(&[(data_type, values)])].into_iter()));
        run(
            &mut nacre_operator::aggregate::HashAggregate::new(
                source,
                vec![data_type],
                Vec::new(),
                vec![spec],
            )
            .unwrap(),
            &fixture.context(),
        )
    };
    assert_eq!(
        sum(I64, vec![int(i64::MIN), int(i64::MIN), int(-1)]).unwrap(),
        [[dec(2 * i64::MIN as i128 - 1, 0)]]
    );
    let most = 10i128.pow(38) - 1;
    let error = sum(decimal(38, 0), vec![dec(most, 0), dec(1, 0)]).unwrap_err();
    assert_eq!(error.sqlstate(), "22003");
}

fn join_model(
    kind: JoinKind,
    left: &[Vec<Value>],
    right: &[Vec<Value>],
    widths: (usize, usize),
    matches: impl Fn(&[Value], &[Value]) -> bool,
) -> Vec<Vec<Value>> {
    let mut out = Vec::new();
    let mut right_matched = vec![false; right.len()];
    for l in left {
        let mut matched = false;
        for (at, r) in right.iter().enumerate() {
            if matches(l, r) {
                matched = true;
                right_matched[at] = true;
                if kind.sides() == (true, true) {
                    out.push([&l[..], &r[..]].concat());
                }
            }
        }
        match kind {
            JoinKind::Semi if matched => out.push(l.clone()),
            JoinKind::Anti if !matched => out.push(l.clone()),
            JoinKind::Mark => out.push([&l[..], &[Value::Boolean(matched)]].concat()),
            JoinKind::Left | JoinKind::Full if !matched => {
                out.push([&l[..], &vec![Value::Null; widths.1]].concat())
            }
            _ => {}
        }
    }
    if matches!(kind, JoinKind::RightSemi | JoinKind::RightAnti) {
        let wanted = kind == JoinKind::RightSemi;
        out.extend(
            right.iter().zip(&right_matched).filter(|(_, m)| **m == wanted).map(|(r, _)| r.clone()),
        );
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        for (r, _) in right.iter().zip(right_matched).filter(|(_, matched)| !matched) {
            out.push([&vec![Value::Null; widths.0], &r[..]].concat());
        }
    }
    out
}

#[test]
fn joins_agree_with_a_model() {
    let fixture = Fixture::new();
    let mut random = Random::new(99);
    use JoinKind::*;
    let (left_types, right_types) = ([I64, DataType::TEXT, I64], [DataType::TEXT, I64]);
    for kind in [Inner, Left, Right, Full, Semi, Anti, Mark, RightSemi, RightAnti] {
        for keys in [0, 1, 2] {
            for with_residual in [false, true] {
                for (n, m) in [(150, 120), (0, 5), (5, 0), (60, 1)] {
                    let left = rows(&mut random, &left_types, n, 12);
                    let right = rows(&mut random, &right_types, m, 12);
                    let pairs = [
                        (col(0, I64), col(1, I64)),
                        (col(1, DataType::TEXT), col(0, DataType::TEXT)),
                    ];
                    let residual = || compare(BinaryOp::Less, col(2, I64), col(4, I64));
                    let (left_keys, right_keys) = pairs[..keys].iter().cloned().unzip();
                    let spec = JoinSpec {
                        kind,
                        left: JoinSide { keys: left_keys, types: left_types.to_vec() },
                        right: JoinSide { keys: right_keys, types: right_types.to_vec() },
                        residual: with_residual.then(residual),
                    };
                    let sources = (
                        source_of(&mut random, &left_types, &left),
                        source_of(&mut random, &right_types, &right),
                    );
                    let mut operator = HashJoin::new(sources.0, sources.1, spec, Vec::new());
                    let found = run(&mut operator, &fixture.context()).unwrap();
                    let equal = |a: &Value, b: &Value| !a.is_null() && a == b;
                    let expected = join_model(kind, &left, &right, (3, 2), |l, r| {
                        (keys < 1 || equal(&l[0], &r[1]))
                            && (keys < 2 || equal(&l[1], &r[0]))
                            && (!with_residual
                                || (!l[2].is_null()
                                    && !r[1].is_null()
                                    && compare_values(&l[2], &r[1]).is_lt()))
                    });
                    let what = format!(
                        "{kind:?}, {keys} keys, residual {with_residual}, {n} and {m} rows"
                    );
                    assert_eq!(sorted(found), sorted(expected), "{what}");
                }
            }
        }
    }
}

#[test]
fn sorts_agree_with_a_model() {
    let fixture = Fixture::new();
    let mut random = Random::new(3);
    for types in [
        vec![I64],
        vec![DataType::Int8, DataType::Date],
        vec![DataType::TEXT, I64],
        vec![DataType::Float64],
        vec![decimal(30, 2), DataType::Boolean],
        vec![I64, I64, DataType::TEXT],
    ] {
        for n in [0, 10, 12_000] {
            for limit in [None, Some(0), Some(1), Some(50), Some(20_000)] {
                let input = rows(&mut random, &types, n, 60);
                let keys: Vec<SortKey> = types
                    .iter()
                    .enumerate()
                    .map(|(i, t)| SortKey {
                        expr: col(i, *t),
                        descending: random.below(2) == 0,
                        nulls_first: random.below(2) == 0,
                    })
                    .collect();
                let compare = |a: &Vec<Value>, b: &Vec<Value>| {
                    for (i, key) in keys.iter().enumerate() {
                        let order = match (a[i].is_null(), b[i].is_null()) {
                            (true, true) => Ordering::Equal,
                            (true, false) if key.nulls_first => Ordering::Less,
                            (true, false) => Ordering::Greater,
                            (false, true) if key.nulls_first => Ordering::Greater,
                            (false, true) => Ordering::Less,
                            _ if key.descending => compare_values(&b[i], &a[i]),
                            _ => compare_values(&a[i], &b[i]),
                        };
                        if order.is_ne() {
                            return order;
                        }
                    }
                    Ordering::Equal
                };
                // A row number beside the keys shows whether equal rows kept their order.
                let numbered: Vec<Vec<Value>> = input
                    .iter()
                    .enumerate()
                    .map(|(at, r)| [&r[..], &[int(at as i64)]].concat())
                    .collect();
                let all: Vec<DataType> = types.iter().copied().chain([I64]).collect();
                let source = source_of(&mut random, &all, &numbered);
                let mut operator = Sort::new(source, &all, keys.clone(), limit, None);
                let found = run(&mut operator, &fixture.context()).unwrap();
                let mut expected = numbered;
                expected.sort_by(compare);
                expected.truncate(limit.unwrap_or(u64::MAX) as usize);
                assert!(found == expected, "{types:?}, {n} rows, limit {limit:?}");
            }
        }
    }
}

fn numbers(n: i64) -> Plan {
    let field = Field { name: "n".into(), data_type: I64, nullable: false };
    Plan::Values { fields: vec![field], rows: (0..n).map(|v| vec![lit(int(v), I64)]).collect() }
}

#[test]
fn plans_of_values_filters_projections_and_limits() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let filter = Plan::Filter {
        input: Box::new(numbers(5000)),
        predicate: compare(BinaryOp::GreaterOrEqual, col(0, I64), lit(int(10), I64)),
    };
    let project = Plan::Project {
        input: Box::new(filter),
        exprs: vec![binary(BinaryOp::Multiply, col(0, I64), lit(int(2), I64), I64)],
        fields: Vec::new(),
    };
    let limit = |offset: i64, limit: i64| Plan::Limit {
        input: Box::new(project.clone()),
        offset: Some(lit(int(offset), I64)),
        limit: Some(lit(int(limit), I64)),
    };
    let result = |plan: &Plan| run(&mut *build(plan, &context).unwrap(), &context);
    assert_eq!(result(&limit(1, 2)).unwrap(), [[int(22)], [int(24)]]);
    let across: Vec<Vec<Value>> = (2010..4110).map(|v| vec![int(v * 2)]).collect();
    assert_eq!(result(&limit(2000, 2100)).unwrap(), across);
    assert_eq!(result(&limit(4985, 100)).unwrap().len(), 5);
    assert!(result(&limit(0, 0)).unwrap().is_empty());
    assert_eq!(result(&limit(-1, 1)).unwrap_err().sqlstate(), "2201W");
    let nothing = Plan::Values { fields: Vec::new(), rows: vec![Vec::new()] };
    assert_eq!(result(&nothing).unwrap(), [Vec::<Value>::new()]);
}

#[test]
fn memory_limits_name_the_operator() {
    let mut fixture = Fixture::new();
    fixture.memory_limit = 10_000;
    let context = fixture.context();
    let sort = Plan::Sort {
        input: Box::new(numbers(9000)),
        keys: vec![SortKey { expr: col(0, I64), descending: true, nulls_first: false }],
        limit: None,
    };
    let group = Plan::Aggregate {
        input: Box::new(numbers(9000)),
        groups: vec![col(0, I64)],
        aggregates: Vec::new(),
        fields: Vec::new(),
    };
    let join = Plan::Join {
        left: Box::new(numbers(1)),
        right: Box::new(numbers(9000)),
        kind: JoinKind::Inner,
        keys: vec![(col(0, I64), col(0, I64))],
        residual: None,
    };
    for (name, plan) in [("sort", sort), ("aggregate", group), ("join", join)] {
        let error = run(&mut *build(&plan, &context).unwrap(), &context).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().starts_with(name), "{error}");
    }
}

#[test]
fn cancelling_stops() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    context.cancelled = &|| true;
    let error = run(&mut *build(&numbers(3), &context).unwrap(), &context).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
