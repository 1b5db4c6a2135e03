//! Helpers of this crate's tests: a database in memory that contexts read, short ways to write
//! expressions and batches, and a seeded generator.

use nacre_builtin::registry::{self, ScalarEntry, scalar};
use nacre_column::{Batch, Vector};
pub(crate) use nacre_function::aggregate::count::COUNT;
pub(crate) use nacre_function::aggregate::extreme::{MAX, MIN};
pub(crate) use nacre_function::aggregate::sum::{AVG, SUM};
use nacre_function::entry::window::WindowFunction;
use nacre_host::memory::MemoryStore;
use nacre_host::{Clock, Host, LocalStore, Parallelism};
use nacre_operator::context::Context;
use nacre_operator::context::statistics::Statistics;
use nacre_operator::memory::Memory;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_table::{Store, StoreOptions, Transaction};
use nacre_testing::Fixed;
pub(crate) use nacre_testing::Random;
use nacre_types::{DataType, Result, Value};
use std::sync::Arc;

/// A statement's surroundings, owned.
pub(crate) struct Fixture {
    pub store: Arc<Store>,
    pub transaction: Transaction,
    pub parameters: Vec<Value>,
    pub statistics: Statistics,
    pub memory: Memory,
    pub memory_limit: usize,
    clock: Arc<dyn Clock>,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::on(Arc::new(Fixed::default()))
    }

    /// With threads of its own.
    pub fn on(parallelism: Arc<dyn Parallelism>) -> Fixture {
        Fixture::with(Arc::new(MemoryStore::new()), parallelism)
    }

    /// With files of its own, too.
    pub fn with(files: Arc<dyn LocalStore>, parallelism: Arc<dyn Parallelism>) -> Fixture {
        let fixed = Arc::new(Fixed::default());
        Fixture::of_host(Host { store: files, clock: fixed.clone(), entropy: fixed, parallelism })
    }

    /// With a clock of its own.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Fixture {
        let fixed = Arc::new(Fixed::default());
        let store = Arc::new(MemoryStore::new());
        Fixture::of_host(Host { store, clock, entropy: fixed.clone(), parallelism: fixed })
    }

    fn of_host(host: Host) -> Fixture {
        let clock = host.clock.clone();
        let options = StoreOptions {
            segment_rows: 10_000,
            flush_bytes: usize::MAX,
            ..StoreOptions::default()
        };
        let store = Store::open(host, options).unwrap();
        let transaction = store.begin().unwrap();
        Fixture {
            store,
            transaction,
            parameters: Vec::new(),
            statistics: Statistics::default(),
            memory: Memory::new(0),
            memory_limit: 1 << 30,
            clock,
        }
    }

    /// A host with new files in memory, and the clock.
    pub fn host(&self) -> Host {
        let fixed = Arc::new(Fixed::default());
        let store = Arc::new(MemoryStore::new());
        Host { store, clock: self.clock.clone(), entropy: fixed.clone(), parallelism: fixed }
    }

    pub fn context(&self) -> Context<'_> {
        let mut context = Context::new(
            &self.transaction,
            &self.parameters,
            &self.statistics,
            &self.memory,
            &|| false,
        );
        self.memory.set_limit(self.memory_limit);
        context.now_us = 1_000_000;
        context
    }
}

/// All rows of an operator.
pub(crate) fn run(operator: &mut dyn Operator, context: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    loop {
        match operator.next(context)? {
            Some(batch) => {
                assert!(batch.selected() > 0 && batch.rows <= nacre_types::limits::VECTOR_ROWS);
                rows.extend(rows_of(&batch));
            }
            None => return Ok(rows),
        }
    }
}

/// The selected rows of a batch.
pub(crate) fn rows_of(batch: &Batch) -> Vec<Vec<Value>> {
    let all: Vec<u32> = (0..batch.rows as u32).collect();
    let rows = batch.selection.as_ref().unwrap_or(&all);
    rows.iter().map(|row| batch.row(*row as usize)).collect()
}

/// A batch of flat columns.
pub(crate) fn batch(columns: &[(DataType, Vec<Value>)]) -> Batch {
    let rows = columns.first().map_or(0, |c| c.1.len());
    Batch::new(
        columns.iter().map(|(t, values)| Arc::new(Vector::from_values(*t, values))).collect(),
        rows,
    )
}

/// The same values, dictionary-coded.
pub(crate) fn dictionary(vector: &Vector) -> Vector {
    let mut distinct: Vec<Value> = Vec::new();
    let mut codes = Vec::new();
    for row in 0..vector.len() {
        let value = vector.value(row);
        if value.is_null() {
            codes.push(0);
            continue;
        }
        let code = distinct.iter().position(|d| *d == value).unwrap_or_else(|| {
            distinct.push(value);
            distinct.len() - 1
        });
        codes.push(code as u32);
    }
    if distinct.is_empty() {
        // A code must be in range even at a null row, which no dictionary without entries allows.
        return vector.clone();
    }
    let values = Vector::from_values(vector.data_type(), &distinct).flat().into_owned();
    Vector::dictionary(vector.data_type(), codes, Arc::new(values), vector.validity().cloned())
}

pub(crate) fn int(v: i64) -> Value {
    Value::Int(v)
}

pub(crate) fn text(v: &str) -> Value {
    Value::Text(v.into())
}

pub(crate) fn dec(unscaled: i128, scale: u8) -> Value {
    Value::Decimal { unscaled, scale }
}

pub(crate) fn decimal(precision: u8, scale: u8) -> DataType {
    DataType::Decimal { precision, scale }
}

pub(crate) fn col(index: usize, data_type: DataType) -> Expr {
    Expr::column(index, data_type)
}

pub(crate) fn lit(value: Value, data_type: DataType) -> Expr {
    Expr::literal(value, data_type)
}

pub(crate) fn binary(op: BinaryOp, left: Expr, right: Expr, data_type: DataType) -> Expr {
    Expr { kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, data_type }
}

pub(crate) fn compare(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    binary(op, left, right, DataType::Boolean)
}

pub(crate) fn cast(arg: Expr, data_type: DataType) -> Expr {
    Expr { kind: ExprKind::Cast(Box::new(arg)), data_type }
}

/// A call of the function of a name.
pub(crate) fn call(name: &str, args: Vec<Expr>, data_type: DataType) -> Expr {
    match scalar(name) {
        Some(ScalarEntry::Function(function)) => Expr::call(function, args, data_type),
        _ => panic!("no function {name}"),
    }
}

pub(crate) fn boolean(kind: ExprKind) -> Expr {
    Expr { kind, data_type: DataType::Boolean }
}

/// Returns a value of a type from a small domain, null one time in `nulls` (never for 0).
pub(crate) fn random_value(
    random: &mut Random,
    data_type: DataType,
    domain: u64,
    nulls: u64,
) -> Value {
    if nulls > 0 && random.below(nulls) == 0 {
        return Value::Null;
    }
    let n = random.below(domain) as i64;
    match data_type {
        DataType::Boolean => Value::Boolean(n % 2 == 0),
        DataType::Float64 => Value::Float(n as f64 / 4.0 - 2.0),
        DataType::Decimal { scale, .. } => dec(n as i128 - 5, scale),
        DataType::Date => Value::Date(n as i32 - 3),
        DataType::UInt64 => Value::UInt(n as u64),
        DataType::Text { .. } => Value::Text(format!("{}", n * 37 % 101)),
        _ => Value::Int(n - domain as i64 / 3),
    }
}

/// The window function of a name.
pub(crate) fn window_function(name: &str) -> &'static WindowFunction {
    registry::window(name).unwrap()
}
