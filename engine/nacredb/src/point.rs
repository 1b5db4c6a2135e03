//! Point statements: one row by its whole primary key, read, inserted, updated or deleted. They are
//! recognised when a statement is bound and run without plan, operator or batch.
//!
//! Recognition is conservative: what is not obviously a point statement takes the general way, and so does an
//! execution whose key value the column could not hold. Both ways answer the same.

use crate::session::Session;
use crate::statement::Settings;
use nacre_column::{Batch, Vector};
use nacre_exec::{cast_value, evaluate};
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::{Plan, Statement};
use nacre_table::{Store, Table, Transaction};
use nacre_types::{Result, TableSchema, Timestamp, Value};
use std::sync::Arc;

/// A recognised point statement.
pub(crate) struct Point {
    table: Arc<Table>,
    action: Action,
}

enum Action {
    Select { key: Vec<Slot>, projection: Vec<usize> },
    Insert { row: Vec<Slot> },
    Update { key: Vec<Slot>, assignments: Vec<(usize, Assigned)> },
    Delete { key: Vec<Slot> },
}

/// A value known once the parameters are.
enum Slot {
    Parameter(usize),
    Literal(Value),
    Cast(Box<Expr>, Box<Slot>),
}

/// What a column is set to.
enum Assigned {
    Slot(Slot),
    /// An expression over columns of the row: those listed, in that order.
    Computed {
        expr: Expr,
        columns: Vec<usize>,
    },
}

/// What a point statement did.
pub(crate) enum Outcome {
    /// A read's row, if there is one.
    Row(Option<Vec<Value>>),
    /// Rows written.
    Written(u64),
    /// This execution needs the general way.
    General,
}

impl Point {
    /// Recognises a statement that was bound under the catalog of this timestamp.
    pub fn recognise(statement: &Statement, store: &Store, at: Timestamp) -> Option<Point> {
        let (schema, action) = match statement {
            Statement::Query(plan) => select(plan)?,
            Statement::Insert { table, source } => (table, Action::Insert { row: single_row(source)? }),
            Statement::Delete { table, input } => (table, Action::Delete { key: scanned(input)?.2 }),
            Statement::Update { table, input, assignments } => {
                let (_, projection, key) = scanned(input)?;
                let rekeys =
                    |position: &usize| table.primary_key.as_ref().is_some_and(|k| k.columns.contains(position));
                if assignments.iter().any(|(position, _)| rekeys(position)) {
                    return None;
                }
                let assignments = assignments.iter().map(|(at, expr)| Some((*at, assigned(expr, projection)?)));
                (table, Action::Update { key, assignments: assignments.collect::<Option<_>>()? })
            }
            _ => return None,
        };
        Some(Point { table: store.table_of(schema, at).ok()?, action })
    }

    /// Whether it only reads.
    pub fn reads(&self) -> bool {
        matches!(self.action, Action::Select { .. })
    }

    /// Reads the newest committed row: what a transaction of its own would read that begins now. `None`: this
    /// execution needs the general way.
    pub fn read_newest(&self, store: &Arc<Store>, parameters: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        let Action::Select { key, projection } = &self.action else { return Ok(None) };
        match self.key(key, parameters)? {
            Key::Some(key) => store.get(&self.table, &key, projection).map(Some),
            Key::Null => Ok(Some(None)),
            Key::Odd => Ok(None),
        }
    }

    /// Reads inside a transaction. `None` when this is no read, or this execution needs the general way.
    pub fn read(&self, transaction: &Transaction, parameters: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        let Action::Select { key, projection } = &self.action else { return Ok(None) };
        if !self.table.serves(transaction.snapshot()) {
            return Ok(None);
        }
        match self.key(key, parameters)? {
            Key::Some(key) => transaction.get(&self.table, &key, projection).map(Some),
            Key::Null => Ok(Some(None)),
            Key::Odd => Ok(None),
        }
    }

    /// Runs inside a transaction.
    pub fn run(&self, transaction: &mut Transaction, settings: &Settings<'_>) -> Result<Outcome> {
        let (table, parameters) = (&self.table, settings.parameters);
        if !table.serves(transaction.snapshot()) {
            return Ok(Outcome::General);
        }
        let key = match &self.action {
            Action::Select { .. } => {
                return Ok(self.read(transaction, parameters)?.map_or(Outcome::General, Outcome::Row));
            }
            Action::Update { key, .. } | Action::Delete { key } => match self.key(key, parameters)? {
                Key::Some(key) => key,
                Key::Odd => return Ok(Outcome::General),
                Key::Null => return Ok(Outcome::Written(0)),
            },
            Action::Insert { row } => {
                let row: Vec<Value> = row.iter().map(|slot| slot.value(parameters)).collect::<Result<_>>()?;
                transaction.insert_row(table, &row)?;
                return Ok(Outcome::Written(1));
            }
        };
        let Some((locator, row)) = transaction.locate(table, &key)? else { return Ok(Outcome::Written(0)) };
        match &self.action {
            Action::Update { assignments, .. } => {
                let mut changed = row.clone();
                for (position, assigned) in assignments {
                    changed[*position] = assigned.value(table.schema(), &row, transaction, settings)?;
                }
                transaction.update_row(table, &locator, &changed)?;
            }
            _ => {
                transaction.delete(table, &[locator])?;
            }
        }
        Ok(Outcome::Written(1))
    }

    fn key(&self, slots: &[Slot], parameters: &[Value]) -> Result<Key> {
        let schema = self.table.schema();
        let columns = schema.primary_key.iter().flat_map(|key| &key.columns);
        let mut key = Vec::with_capacity(slots.len());
        for (slot, column) in slots.iter().zip(columns) {
            let value = slot.value(parameters)?;
            if value.is_null() {
                return Ok(Key::Null);
            }
            if schema.columns[*column].check(&value).is_err() {
                return Ok(Key::Odd);
            }
            key.push(value);
        }
        Ok(Key::Some(key))
    }
}

enum Key {
    Some(Vec<Value>),
    /// A part is null, which equals nothing.
    Null,
    /// A value the column could not hold.
    Odd,
}

impl Slot {
    fn value(&self, parameters: &[Value]) -> Result<Value> {
        match self {
            Slot::Parameter(at) => Ok(parameters.get(*at).cloned().unwrap_or(Value::Null)),
            Slot::Literal(value) => Ok(value.clone()),
            Slot::Cast(expr, inner) => cast_value(&inner.value(parameters)?, expr.data_type),
        }
    }
}

impl Assigned {
    /// The value for a row of the table, which is given as it was.
    fn value(
        &self,
        schema: &TableSchema,
        row: &[Value],
        transaction: &Transaction,
        settings: &Settings<'_>,
    ) -> Result<Value> {
        let (expr, columns) = match self {
            Assigned::Slot(slot) => return slot.value(settings.parameters),
            Assigned::Computed { expr, columns } => (expr, columns),
        };
        let vector = |at: &usize| Arc::new(Vector::from_values(schema.columns[*at].data_type, [&row[*at]]));
        let batch = Batch::new(columns.iter().map(vector).collect(), 1);
        Ok(evaluate(expr, &batch, &Session::context(transaction, settings))?.value(0))
    }
}

fn assigned(expr: &Expr, projection: &[usize]) -> Option<Assigned> {
    if let Some(slot) = slot(expr) {
        return Some(Assigned::Slot(slot));
    }
    let (mut expr, mut columns) = (expr.clone(), Vec::new());
    gather_columns(&mut expr, projection, &mut columns)?;
    Some(Assigned::Computed { expr, columns })
}

/// Lists the columns of the table that an expression over a scan reads, and makes it read them by their place in the
/// list. `None` when it needs more than a row.
fn gather_columns(expr: &mut Expr, projection: &[usize], columns: &mut Vec<usize>) -> Option<()> {
    match &mut expr.kind {
        ExprKind::Column(at) => {
            let position = *projection.get(*at)?;
            *at = columns.iter().position(|known| *known == position).unwrap_or_else(|| {
                columns.push(position);
                columns.len() - 1
            });
        }
        ExprKind::Subquery(_) | ExprKind::Outer { .. } => return None,
        _ => {}
    }
    let mut complete = Some(());
    expr.for_each_child_mut(&mut |child| complete = complete.and(gather_columns(child, projection, columns)));
    complete
}

fn slot(expr: &Expr) -> Option<Slot> {
    match &expr.kind {
        ExprKind::Parameter(at) => Some(Slot::Parameter(*at)),
        ExprKind::Literal(value) => Some(Slot::Literal(value.clone())),
        ExprKind::Cast(inner) => Some(Slot::Cast(Box::new(expr.clone()), Box::new(slot(inner)?))),
        _ => None,
    }
}

/// A scan, perhaps under a projection that only picks columns.
fn select(plan: &Plan) -> Option<(&Arc<TableSchema>, Action)> {
    match plan {
        Plan::Project { input, exprs, .. } => {
            let (schema, scanned, key) = scanned(input)?;
            let pick = |expr: &Expr| match expr.kind {
                ExprKind::Column(at) => scanned.get(at).copied(),
                _ => None,
            };
            Some((schema, Action::Select { key, projection: exprs.iter().map(pick).collect::<Option<_>>()? }))
        }
        plan => {
            let (schema, projection, key) = scanned(plan)?;
            Some((schema, Action::Select { key, projection: projection.to_vec() }))
        }
    }
}

/// A scan whose filters are `column = value` for every key column once, and nothing else.
fn scanned(plan: &Plan) -> Option<(&Arc<TableSchema>, &[usize], Vec<Slot>)> {
    let Plan::Scan { table, projection, filters, .. } = plan else { return None };
    let columns = &table.primary_key.as_ref()?.columns;
    let mut found: Vec<Option<Slot>> = columns.iter().map(|_| None).collect();
    let conjuncts = filters.iter().flat_map(|filter| match &filter.kind {
        ExprKind::And(list) => list.as_slice(),
        _ => std::slice::from_ref(filter),
    });
    for conjunct in conjuncts {
        let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &conjunct.kind else { return None };
        let (column, value) = match (&left.kind, &right.kind) {
            (ExprKind::Column(at), _) => (*at, &**right),
            (_, ExprKind::Column(at)) => (*at, &**left),
            _ => return None,
        };
        let position = projection.get(column)?;
        let part = columns.iter().position(|key| key == position)?;
        if found[part].replace(slot(value)?).is_some() {
            return None;
        }
    }
    Some((table, projection, found.into_iter().collect::<Option<_>>()?))
}

/// One row of values.
fn single_row(source: &Plan) -> Option<Vec<Slot>> {
    let Plan::Values { rows, .. } = source else { return None };
    let [row] = rows.as_slice() else { return None };
    row.iter().map(slot).collect()
}
