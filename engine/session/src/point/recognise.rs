//! Recognises point statements among bound statements.

use super::find::{Find, Way};
use super::slot::{Assigned, Computed, Slot};
use super::statement::{Action, Point};
use crate::catalog::StoreCatalog;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::{
    Equalities, Plan, RowStatement, ScanOutput, Statement, WriteStatement, equalities,
};
use nacre_types::{IndexId, TableSchema};
use std::sync::Arc;

/// Maximum rows of a point insert. More are worth a plan, which may even write segments.
const MOST_ROWS: usize = 4_096;
/// Maximum values of an `IN` list. More are looked up by a plan.
const MOST_KEYS: usize = 64;
/// Maximum number of indexes used together.
const MOST_INDEXES: usize = 4;

/// Recognises a statement that was bound against this catalog.
pub(crate) fn recognise(statement: &Statement, catalog: &StoreCatalog<'_>) -> Option<Point> {
    let Statement::Rows(statement) = statement else { return None };
    let (schema, action) = match statement {
        RowStatement::Query(plan) => select(plan)?,
        RowStatement::Write(write) => written(write)?,
        RowStatement::Lock { .. }
        | RowStatement::Returning { .. }
        | RowStatement::CreateTableAs { .. }
        | RowStatement::Explain(_)
        | RowStatement::Profile(_) => return None,
    };
    if schema.is_temporary() {
        return None;
    }
    // If the table is gone, the general path reports the error.
    Some(Point::new(catalog.table_of(schema).ok()?, action))
}

fn written(write: &WriteStatement) -> Option<(&Arc<TableSchema>, Action)> {
    match write {
        WriteStatement::Insert { table, source } => {
            Some((table, Action::Insert { rows: rows(source)? }))
        }
        WriteStatement::Upsert { table, source, keys, on_duplicate } => {
            let (rows, keys) = (rows(source)?, keys.clone());
            Some((table, Action::Upsert { rows, keys, on_duplicate: on_duplicate.clone() }))
        }
        WriteStatement::Delete { table, input } => {
            Some((table, Action::Delete { find: scanned(input)?.2 }))
        }
        WriteStatement::Update { table, input, assignments } => {
            let (_, projection, find) = scanned(input)?;
            let writes = |position: &usize| assignments.iter().any(|(at, _)| at == position);
            if table.primary_key.as_ref().is_some_and(|key| key.columns.iter().any(writes)) {
                return None;
            }
            let assigned =
                |(at, expr): &(usize, Expr)| Some((*at, Assigned::of(expr, projection)?));
            let assignments = assignments.iter().map(assigned).collect::<Option<_>>()?;
            Some((table, Action::Update { find, assignments }))
        }
        WriteStatement::Change { .. } | WriteStatement::Merge { .. } => None,
    }
}

/// The scan of a query, possibly below a projection that only selects columns.
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
            // Parts of documents are not columns of the table.
            if plan.fields().len() > projection.len() {
                return None;
            }
            Some((schema, Action::Select { find, projection: projection.to_vec() }))
        }
    }
}

/// A scan whose filters fix a key, or leading columns of an index.
fn scanned(plan: &Plan) -> Option<(&Arc<TableSchema>, &[usize], Find)> {
    let Plan::Scan { table, projection, filters, keys, .. } = plan else { return None };
    let output = ScanOutput { table, projection, keys };
    let Equalities { fixed, mut rest } = equalities(output, filters);
    let mut equal: Vec<(usize, Slot)> = Vec::with_capacity(fixed.len());
    let mut computed_keys: Vec<(usize, Slot, &Expr)> = Vec::new();
    for equality in fixed {
        let at = equality.column;
        let is_known = equal.iter().any(|(column, _)| *column == at)
            || computed_keys.iter().any(|(column, ..)| *column == at);
        match Slot::of(equality.value) {
            Some(slot) if !is_known && at >= table.columns.len() => {
                computed_keys.push((at, slot, equality.filter))
            }
            Some(slot) if !is_known => equal.push((at, slot)),
            _ => rest.push(equality.filter),
        }
    }
    let key = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    let is_fixed = |at: &usize| equal.iter().any(|(column, _)| column == at);
    if !key.is_empty() && key.iter().all(is_fixed) {
        rest.extend(computed_keys.drain(..).map(|(.., filter)| filter));
    }
    let is_computed = !computed_keys.is_empty();
    equal.extend(computed_keys.into_iter().map(|(at, slot, _)| (at, slot)));
    let way = if is_computed {
        // Only by the indexes that compute them.
        let (indexes, unique) = indexes(table, &equal)?;
        Way::Indexes { indexes, unique }
    } else if let Some(keyed) = in_key_order(key, &mut equal) {
        equal = keyed;
        Way::Key
    } else if let ([only], true) = (key, equal.is_empty())
        && let Some((at, keys)) =
            rest.iter().enumerate().find_map(|(at, f)| Some((at, listed(f, projection, *only)?)))
    {
        rest.remove(at);
        Way::Keys(keys)
    } else {
        let (indexes, unique) = indexes(table, &equal)?;
        Way::Indexes { indexes, unique }
    };
    Some((table, projection, Find::new(table, way, equal, computed(&rest, projection)?)))
}

/// Reorders the equalities so that those on the key come first, in key order; `None` unless they
/// fix the whole key.
fn in_key_order(key: &[usize], equal: &mut Vec<(usize, Slot)>) -> Option<Vec<(usize, Slot)>> {
    let fixes = |column: &usize| equal.iter().any(|(known, _)| known == column);
    if key.is_empty() || !key.iter().all(fixes) {
        return None;
    }
    let mut ordered = std::mem::take(equal);
    // Other columns follow the key.
    let rank = |column: &usize| key.iter().position(|at| at == column).unwrap_or(key.len());
    ordered.sort_by_key(|(column, _)| rank(column));
    Some(ordered)
}

/// The values of `column IN (values)`.
fn listed(filter: &Expr, projection: &[usize], column: usize) -> Option<Vec<Slot>> {
    let ExprKind::InList { arg, list, negated: false } = &filter.kind else { return None };
    let ExprKind::Column(at) = arg.kind else { return None };
    if list.len() > MOST_KEYS || projection.get(at) != Some(&column) {
        return None;
    }
    list.iter().map(Slot::of).collect()
}

fn computed(rest: &[&Expr], projection: &[usize]) -> Option<Vec<Computed>> {
    rest.iter().map(|expr| Computed::of(expr, projection)).collect()
}

/// Indexes with fixed leading columns and the number of those, and whether at most one row matches.
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
        // Skip an index that fixes no column beyond those of another.
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

/// The rows of a `VALUES` list.
fn rows(source: &Plan) -> Option<Vec<Vec<Slot>>> {
    let Plan::Values { rows, .. } = source else { return None };
    if rows.len() > MOST_ROWS {
        return None;
    }
    rows.iter().map(|row| row.iter().map(Slot::of).collect()).collect()
}
