//! Which bound statements are point statements.

use super::find::{Find, Way};
use super::slot::{Assigned, Computed, Slot};
use super::{Action, Point};
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::{Plan, Statement};
use nacre_table::Store;
use nacre_types::{DataType, IndexId, TableSchema, Timestamp};
use std::sync::Arc;

/// More rows are worth a plan: they may even be written as segments.
const MOST_ROWS: usize = 4_096;
/// More values of a list are looked up by a plan.
const MOST_KEYS: usize = 64;
/// Indexes used together.
const MOST_INDEXES: usize = 4;

impl Point {
    /// Recognises a statement that was bound under the catalog of this timestamp.
    pub fn recognise(statement: &Statement, store: &Store, at: Timestamp) -> Option<Point> {
        let (schema, action) = match statement {
            Statement::Query(plan) => select(plan)?,
            Statement::Insert { table, source } => (table, Action::Insert { rows: rows(source)? }),
            Statement::Upsert { table, source, keys, on_duplicate } => {
                let (rows, keys) = (rows(source)?, keys.clone());
                (table, Action::Upsert { rows, keys, on_duplicate: on_duplicate.clone() })
            }
            Statement::Delete { table, input } => {
                (table, Action::Delete { find: scanned(input)?.2 })
            }
            Statement::Update { table, input, assignments } => {
                let (_, projection, find) = scanned(input)?;
                let writes = |position: usize| assignments.iter().any(|(at, _)| *at == position);
                if table
                    .primary_key
                    .as_ref()
                    .is_some_and(|key| key.columns.iter().any(|at| writes(*at)))
                {
                    return None;
                }
                let assigned = assignments
                    .iter()
                    .map(|(at, expr)| Some((*at, Assigned::of(expr, projection)?)));
                (table, Action::Update { find, assignments: assigned.collect::<Option<_>>()? })
            }
            _ => return None,
        };
        Some(Point { table: store.table_of(schema, at).ok()?, action })
    }
}

/// A scan, perhaps under a projection that only picks columns.
fn select(plan: &Plan) -> Option<(&Arc<TableSchema>, Action)> {
    match plan {
        Plan::Project { input, exprs, .. } => {
            let (schema, scanned, find) = scanned(input)?;
            let pick = |expr: &Expr| match expr.kind {
                ExprKind::Column(at) => scanned.get(at).copied(),
                _ => None,
            };
            Some((
                schema,
                Action::Select { find, projection: exprs.iter().map(pick).collect::<Option<_>>()? },
            ))
        }
        plan => {
            let (schema, projection, find) = scanned(plan)?;
            Some((schema, Action::Select { find, projection: projection.to_vec() }))
        }
    }
}

/// What the filters of a scan say.
#[derive(Default)]
struct Filters<'a> {
    /// `column = value`, each column once.
    equal: Vec<(usize, Slot)>,
    /// `column IN (values)`.
    one_of: Option<(usize, &'a Expr, Vec<Slot>)>,
    rest: Vec<&'a Expr>,
}

impl<'a> Filters<'a> {
    fn add(&mut self, filter: &'a Expr, table: &TableSchema, projection: &[usize]) -> Option<()> {
        match &filter.kind {
            ExprKind::And(list) => {
                return list.iter().try_for_each(|filter| self.add(filter, table, projection));
            }
            ExprKind::Binary { op: BinaryOp::Equal, left, right } => {
                let (column, value) = match (&left.kind, &right.kind) {
                    (ExprKind::Column(at), _) => (*at, &**right),
                    (_, ExprKind::Column(at)) => (*at, &**left),
                    _ => (usize::MAX, &**left),
                };
                if let (Some(position), Some(slot)) = (projection.get(column), Slot::of(value))
                    // Intervals are equal that keys tell apart.
                    && table.columns[*position].data_type != DataType::Interval
                    && self.equal.iter().all(|(known, _)| known != position)
                {
                    self.equal.push((*position, slot));
                    return Some(());
                }
            }
            ExprKind::InList { arg, list, negated: false }
                if self.one_of.is_none() && list.len() <= MOST_KEYS =>
            {
                if let ExprKind::Column(at) = arg.kind
                    && let Some(slots) = list.iter().map(Slot::of).collect::<Option<Vec<_>>>()
                {
                    self.one_of = Some((*projection.get(at)?, filter, slots));
                    return Some(());
                }
            }
            _ => {}
        }
        self.rest.push(filter);
        Some(())
    }
}

/// A scan whose filters say what some key is.
fn scanned(plan: &Plan) -> Option<(&Arc<TableSchema>, &[usize], Find)> {
    let Plan::Scan { table, projection, filters } = plan else { return None };
    let mut said = Filters::default();
    filters.iter().try_for_each(|filter| said.add(filter, table, projection))?;
    let Filters { mut equal, one_of, mut rest } = said;
    let key = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    let has =
        |column: &usize, equal: &[(usize, Slot)]| equal.iter().any(|(known, _)| known == column);
    let way = if !key.is_empty() && key.iter().all(|column| has(column, &equal)) {
        rest.extend(one_of.map(|(_, filter, _)| filter));
        Way::Key
    } else if let (Some((column, ..)), [only], true) = (&one_of, key, equal.is_empty())
        && column == only
    {
        let slots = one_of.map(|(_, _, slots)| slots)?;
        return Some((
            table,
            projection,
            Find::new(table, Way::Keys(slots), equal, computed(&rest, projection)?),
        ));
    } else {
        rest.extend(one_of.map(|(_, filter, _)| filter));
        let (indexes, unique) = indexes(table, &equal)?;
        Way::Indexes { indexes, unique }
    };
    if let Way::Key = way {
        // In the order of the key; what else is said comes after.
        equal.sort_by_key(|(column, _)| {
            key.iter().position(|at| at == column).unwrap_or(usize::MAX)
        });
    }
    Some((table, projection, Find::new(table, way, equal, computed(&rest, projection)?)))
}

fn computed(rest: &[&Expr], projection: &[usize]) -> Option<Vec<Computed>> {
    rest.iter().map(|expr| Computed::of(expr, projection)).collect()
}

/// Indexes whose first columns have values, and how many of them; whether there is at most one row with these values.
fn indexes(table: &TableSchema, equal: &[(usize, Slot)]) -> Option<(Vec<(IndexId, usize)>, bool)> {
    let mut found: Vec<(IndexId, Vec<usize>)> = Vec::new();
    for index in &table.indexes {
        let positions = table.index_positions(index)?;
        let known: Vec<usize> = positions
            .iter()
            .copied()
            .take_while(|at| equal.iter().any(|(column, _)| column == at))
            .collect();
        if index.unique && known.len() == positions.len() {
            return Some((vec![(index.id, known.len())], true));
        }
        // What says no more than another one is left out.
        if known.is_empty()
            || found.iter().any(|(_, other)| known.iter().all(|at| other.contains(at)))
        {
            continue;
        }
        found.retain(|(_, other)| !other.iter().all(|at| known.contains(at)));
        found.push((index.id, known));
    }
    found.truncate(MOST_INDEXES);
    let found: Vec<(IndexId, usize)> =
        found.into_iter().map(|(index, known)| (index, known.len())).collect();
    (!found.is_empty()).then_some((found, false))
}

/// Rows of values.
fn rows(source: &Plan) -> Option<Vec<Vec<Slot>>> {
    let Plan::Values { rows, .. } = source else { return None };
    if rows.len() > MOST_ROWS {
        return None;
    }
    rows.iter().map(|row| row.iter().map(Slot::of).collect()).collect()
}
