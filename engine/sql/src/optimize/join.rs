//! Order of inner joins. A tree of inner joins is one set of relations and one set of conditions; pairs
//! are joined greedily by the fewest estimated rows, larger side left, smaller side right, because the
//! executor builds its hash table on the right.

use super::columns::{columns, conjuncts, only, remap, shift_columns};
use super::estimate::{distinct, rows, selectivity};
use super::push::{filter, key, push};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Catalog, JoinKind, Plan};
use nacre_types::TableSchema;
use std::sync::Arc;

/// A relation or a join of some.
struct Node {
    plan: Plan,
    /// Which columns of the whole it yields, in order.
    columns: Vec<usize>,
    relations: u64,
    rows: f64,
}

/// A condition that needs more than one relation.
struct Condition {
    expr: Expr,
    relations: u64,
}

/// Where a relation's columns are in the whole, and its table if it is one.
struct Relation {
    start: usize,
    width: usize,
    table: Option<(Arc<TableSchema>, Vec<usize>)>,
}

/// Joins in a good order; `conditions` are over the plan's output, whose columns stay as they are.
pub(crate) fn order(plan: Plan, mut conditions: Vec<Expr>, catalog: &dyn Catalog) -> Plan {
    let fields = plan.fields();
    let mut inputs = Vec::new();
    flatten(plan, 0, &mut inputs, &mut conditions);
    let relations: Vec<Relation> = inputs.iter().map(relation).collect();
    let owner = |column: usize| relations.iter().position(|r| column >= r.start && column < r.start + r.width);
    let mask = |expr: &Expr| {
        let mut mask = 0u64;
        columns(expr, &mut |at| mask |= owner(at).map_or(0, |r| 1 << r));
        mask
    };
    let (mut own, mut shared, mut constant) = (vec![Vec::new(); inputs.len()], Vec::new(), Vec::new());
    for mut expr in conditions {
        let relations_used = mask(&expr);
        match relations_used.count_ones() {
            0 => constant.push(expr),
            1 => {
                let at = relations_used.trailing_zeros() as usize;
                shift_columns(&mut expr, -(relations[at].start as isize));
                own[at].push(expr);
            }
            _ => {
                for (at, relation) in relations.iter().enumerate() {
                    if relations_used & (1 << at) != 0 {
                        own[at].extend(implied(&expr, relation));
                    }
                }
                shared.push(Condition { expr, relations: relations_used });
            }
        }
    }
    let mut nodes = Vec::with_capacity(inputs.len());
    for (at, ((plan, start), conditions)) in inputs.into_iter().zip(own).enumerate() {
        let plan = push(plan, conditions, catalog);
        let rows = rows(&plan, catalog);
        let columns = (start..start + relations[at].width).collect();
        nodes.push(Node { plan, columns, relations: 1 << at, rows });
    }
    while nodes.len() > 1 {
        let (i, j, rows) = cheapest(&nodes, &shared, &relations, catalog);
        let b = nodes.remove(j);
        let a = nodes.remove(i);
        let node = combine(a, b, rows, &mut shared);
        nodes.insert(i, node);
    }
    let Some(node) = nodes.pop() else { return Plan::Values { fields, rows: Vec::new() } };
    let plan = filter(node.plan, constant);
    if node.columns.iter().copied().eq(0..fields.len()) {
        return plan;
    }
    let mut exprs = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let position = node.columns.iter().position(|c| *c == at).unwrap_or(at);
        exprs.push(Expr::column(position, field.data_type));
    }
    Plan::Project { input: Box::new(plan), exprs, fields }
}

/// What an `OR` over several relations says about one: `(a = 1 and b = 2) or (a = 3 and b = 4)` implies
/// `a = 1 or a = 3`. Only a hint that filters early; the condition itself stays.
fn implied(expr: &Expr, relation: &Relation) -> Option<Expr> {
    let ExprKind::Or(branches) = &expr.kind else { return None };
    if branches.len() > 64 {
        return None;
    }
    let inside = |at: usize| at >= relation.start && at < relation.start + relation.width;
    let mut list: Vec<Expr> = Vec::with_capacity(branches.len());
    for branch in branches {
        let parts: &[Expr] = match &branch.kind {
            ExprKind::And(parts) => parts,
            _ => std::slice::from_ref(branch),
        };
        let mut any = false;
        let mut own = |e: &&Expr| {
            columns(e, &mut |_| any = true);
            std::mem::take(&mut any) && only(e, &inside)
        };
        let own: Vec<Expr> = parts.iter().filter(&mut own).cloned().collect();
        if own.is_empty() {
            return None;
        }
        let mut branch = super::columns::all(own);
        shift_columns(&mut branch, -(relation.start as isize));
        if !list.contains(&branch) {
            list.push(branch);
        }
    }
    match list.len() {
        1 => list.pop(),
        _ => Some(Expr { kind: ExprKind::Or(list), data_type: expr.data_type }),
    }
}

/// Takes a tree of inner joins apart; conditions move to the columns of the whole.
fn flatten(plan: Plan, start: usize, inputs: &mut Vec<(Plan, usize)>, conditions: &mut Vec<Expr>) {
    match plan {
        Plan::Join { left, right, kind: JoinKind::Inner, keys, residual } if inputs.len() < 62 => {
            let width = left.fields().len();
            let mut own = Vec::new();
            if let Some(residual) = residual {
                conjuncts(residual, &mut own);
            }
            for (l, mut r) in keys {
                shift_columns(&mut r, width as isize);
                let kind = ExprKind::Binary { op: BinaryOp::Equal, left: Box::new(l), right: Box::new(r) };
                own.push(Expr { kind, data_type: nacre_types::DataType::Boolean });
            }
            own.iter_mut().for_each(|c| shift_columns(c, start as isize));
            conditions.append(&mut own);
            flatten(*left, start, inputs, conditions);
            flatten(*right, start + width, inputs, conditions);
        }
        other => inputs.push((other, start)),
    }
}

fn relation((plan, start): &(Plan, usize)) -> Relation {
    let table = match plan {
        Plan::Scan { table, projection, .. } => Some((table.clone(), projection.clone())),
        _ => None,
    };
    Relation { start: *start, width: plan.fields().len(), table }
}

/// The pair whose join yields the fewest rows; pairs without a condition only when no other is left.
fn cheapest(
    nodes: &[Node],
    shared: &[Condition],
    relations: &[Relation],
    catalog: &dyn Catalog,
) -> (usize, usize, f64) {
    let mut best = (0, 1, f64::INFINITY);
    let mut best_connected = false;
    for i in 0..nodes.len() {
        for j in i + 1..nodes.len() {
            let (a, b) = (&nodes[i], &nodes[j]);
            let usable = |c: &&Condition| {
                c.relations & !(a.relations | b.relations) == 0
                    && c.relations & a.relations != 0
                    && c.relations & b.relations != 0
            };
            let mut between: Vec<&Expr> = Vec::new();
            let mut rows = a.rows * b.rows;
            let mut connected = false;
            for condition in shared.iter().filter(usable) {
                if matches!(condition.expr.kind, ExprKind::Binary { op: BinaryOp::Equal, .. }) {
                    between.push(&condition.expr);
                    connected = true;
                } else {
                    rows *= selectivity(&condition.expr);
                }
            }
            if connected {
                rows /= matches(&between, a.relations, relations, catalog).max(a.rows.min(b.rows).min(2.0));
            }
            let rows = rows.max(1.0);
            if (connected, -rows) > (best_connected, -best.2) || (i, j) == (0, 1) {
                best = (i, j, rows);
                best_connected = connected;
            }
        }
    }
    best
}

/// Distinct combinations of the matched columns: what the product of both sides is divided by.
fn matches(equalities: &[&Expr], left: u64, relations: &[Relation], catalog: &dyn Catalog) -> f64 {
    // Matched table columns by relation.
    let mut matched: Vec<(usize, Vec<usize>)> = Vec::new();
    for equality in equalities {
        columns(equality, &mut |at| {
            let found = relations.iter().position(|r| at >= r.start && at < r.start + r.width);
            let Some(relation) = found else { return };
            let column = relations[relation].table.as_ref().and_then(|(_, p)| p.get(at - relations[relation].start));
            let column = column.copied().unwrap_or(usize::MAX);
            match matched.iter_mut().find(|(r, _)| *r == relation) {
                Some((_, list)) => list.push(column),
                None => matched.push((relation, vec![column])),
            }
        });
    }
    // The best informed relation of each side; a whole primary key is exact.
    let mut sides = [(1.0f64, false), (1.0f64, false)];
    for (relation, list) in &matched {
        let side = usize::from(left & (1 << relation) == 0);
        let info = match &relations[*relation].table {
            Some((table, _)) => distinct(table, list, catalog),
            None => (10.0, false),
        };
        let current = &mut sides[side];
        if (info.1, info.0) > (current.1, current.0) {
            *current = info;
        }
    }
    match (sides[0], sides[1]) {
        ((a, true), (b, true)) => a.max(b),
        ((a, true), _) | (_, (a, true)) => a,
        ((a, _), (b, _)) => a.max(b),
    }
}

/// Joins two nodes under every condition that both together can decide.
fn combine(a: Node, b: Node, rows: f64, shared: &mut Vec<Condition>) -> Node {
    let (left, right) = if a.rows >= b.rows { (a, b) } else { (b, a) };
    let relations = left.relations | right.relations;
    let width = left.columns.len();
    let mut columns = left.columns;
    columns.extend(right.columns);
    let (mut keys, mut residual) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < shared.len() {
        if shared[at].relations & !relations != 0 {
            at += 1;
            continue;
        }
        let mut expr = shared.remove(at).expr;
        remap(&mut expr, &|column| columns.iter().position(|c| *c == column).unwrap_or(column));
        match key(expr, width) {
            Ok(pair) => keys.push(pair),
            Err(expr) => residual.push(expr),
        }
    }
    let residual = if residual.is_empty() { None } else { Some(super::columns::all(residual)) };
    let (left, right) = (Box::new(left.plan), Box::new(right.plan));
    let plan = Plan::Join { left, right, kind: JoinKind::Inner, keys, residual };
    Node { plan, columns, relations, rows }
}
