//! Orders inner joins. A tree of inner joins is flattened into relations and conditions and rebuilt
//! in the order that [`search`] finds, with the smaller side on the right, where the executor
//! builds its hash table.

use super::estimate::Estimates;
use super::graph::{Graph, classes, equation, implied_by_classes, relations_of};
use super::search::{Tree, search};
use crate::analysis::columns::{all, columns, conjuncts, only, remap, shift_columns};
use crate::analysis::conditions::{filter, key_pairs};
use crate::analysis::may_fail::expr_may_fail;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_types::DataType;
use nacre_types::invariant::broken;

/// The most relations ordered together: a set of them must fit in one word.
const MAX_RELATIONS: usize = u64::BITS as usize;

/// Reorders joins. `conditions` are over the plan's output, whose columns keep their positions;
/// `push` moves conditions into a relation.
pub(crate) fn order(
    plan: Plan,
    mut conditions: Vec<Expr>,
    estimates: &Estimates<'_>,
    push: fn(Plan, Vec<Expr>, &Estimates<'_>) -> Plan,
) -> Plan {
    let fields = plan.fields();
    // A condition that may fail runs after all conditions below it.
    let mut above: Vec<Expr> = conditions.extract_if(.., |c| expr_may_fail(c)).collect();
    let mut flat =
        Flat { room: MAX_RELATIONS - 1, inputs: Vec::new(), conditions, late: Vec::new() };
    flat.flatten(plan, 0);
    let Flat { inputs, mut conditions, mut late, .. } = flat;
    conditions.append(&mut late);
    conditions.append(&mut above);
    let places: Vec<(usize, usize)> =
        inputs.iter().map(|(plan, start)| (*start, plan.fields().len())).collect();
    let (mut own, mut shared, mut constant) =
        (vec![Vec::new(); inputs.len()], Vec::new(), Vec::new());
    let mut equations = Vec::new();
    for mut expr in conditions {
        let relations = relations_of(&expr, &places);
        match relations.count_ones() {
            0 => constant.push(expr),
            1 => {
                let at = relations.trailing_zeros() as usize;
                shift_columns(&mut expr, -(places[at].0 as isize));
                own[at].push(expr);
            }
            _ => {
                if let Some(pair) = equation(&expr) {
                    equations.push(pair);
                    continue;
                }
                for (at, (start, width)) in places.iter().enumerate() {
                    if relations & (1 << at) != 0 {
                        own[at].extend(implied(&expr, *start, *width));
                    }
                }
                shared.push((expr, relations));
            }
        }
    }
    let classes = classes(&equations);
    let types: Vec<DataType> = fields.iter().map(|f| f.data_type).collect();
    implied_by_classes(&classes, &places, &types, &mut own);
    let (mut plans, mut starts) =
        (Vec::with_capacity(inputs.len()), Vec::with_capacity(inputs.len()));
    for ((plan, start), conditions) in inputs.into_iter().zip(own) {
        plans.push(push(plan, conditions, estimates));
        starts.push(start);
    }
    let graph = Graph::new(&plans, &starts, classes, shared, estimates);
    let Some(tree) = search(&graph) else { return Plan::Values { fields, rows: Vec::new() } };
    let mut plans: Vec<Option<Plan>> = plans.into_iter().map(Some).collect();
    let (plan, yields) = assemble(&tree, &mut plans, &graph, &types);
    let plan = filter(plan, constant);
    if yields.iter().copied().eq(0..fields.len()) {
        return plan;
    }
    let mut exprs = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let position = position(&yields, at);
        exprs.push(Expr::column(position, field.data_type));
    }
    Plan::Project { input: Box::new(plan), exprs, fields }
}

/// Builds the plan of a tree and returns which columns it yields, in order. Each condition is
/// checked by the lowest join that has its columns.
fn assemble(
    tree: &Tree,
    plans: &mut [Option<Plan>],
    graph: &Graph,
    types: &[DataType],
) -> (Plan, Vec<usize>) {
    let (left, right) = match tree {
        Tree::Relation(at) => {
            let relation = &graph.relations[*at];
            let plan = plans[*at]
                .take()
                .unwrap_or_else(|| broken(format_args!("relation {at} is joined twice")));
            return (plan, (relation.start..relation.start + relation.width).collect());
        }
        Tree::Join(left, right) => (left, right),
    };
    let (l, r) = (left.relations(), right.relations());
    let (left, mut yields) = assemble(left, plans, graph, types);
    let (right, others) = assemble(right, plans, graph, types);
    let side = |list: &[usize], column: usize| Expr::column(position(list, column), types[column]);
    let mut keys: Vec<(Expr, Expr)> =
        graph.keys(l, r).into_iter().map(|(a, b)| (side(&yields, a), side(&others, b))).collect();
    let width = yields.len();
    yields.extend(others);
    let mut residual = Vec::new();
    for condition in &graph.conditions {
        let (here, in_one) = (
            condition.relations & !(l | r) == 0,
            [l, r].iter().any(|s| condition.relations & !s == 0),
        );
        if !here || in_one {
            continue;
        }
        let mut expr = condition.expr.clone();
        remap(&mut expr, &|column| position(&yields, column));
        match key_pairs(expr, width) {
            Ok(pairs) => keys.extend(pairs),
            Err(expr) => residual.push(expr),
        }
    }
    let residual = if residual.is_empty() { None } else { Some(all(residual)) };
    let (left, right) = (Box::new(left), Box::new(right));
    (Plan::Join { left, right, kind: JoinKind::Inner, keys, residual }, yields)
}

/// The position of `column` in `list`.
fn position(list: &[usize], column: usize) -> usize {
    list.iter().position(|c| *c == column).unwrap_or_else(|| {
        broken(format_args!("a condition reads column {column}, which its join does not have"))
    })
}

/// What an `OR` over several relations implies about one of them: `(a = 1 and b = 2) or (a = 3 and
/// b = 4)` implies `a = 1 or a = 3`. The implied condition only filters early; the original stays.
fn implied(expr: &Expr, start: usize, width: usize) -> Option<Expr> {
    let ExprKind::Or(branches) = &expr.kind else { return None };
    if branches.len() > 64 {
        return None;
    }
    let inside = |at: usize| at >= start && at < start + width;
    let mut list: Vec<Expr> = Vec::with_capacity(branches.len());
    for branch in branches {
        let parts: &[Expr] = match &branch.kind {
            ExprKind::And(parts) => parts,
            _ => std::slice::from_ref(branch),
        };
        let mut any = false;
        let mut own = |e: &&Expr| {
            columns(e, &mut |_| any = true);
            // The branch's conditions on other relations may protect one that can fail.
            std::mem::take(&mut any) && only(e, &inside) && !expr_may_fail(e)
        };
        let own: Vec<Expr> = parts.iter().filter(&mut own).cloned().collect();
        if own.is_empty() {
            return None;
        }
        let mut branch = all(own);
        shift_columns(&mut branch, -(start as isize));
        if !list.contains(&branch) {
            list.push(branch);
        }
    }
    match list.len() {
        1 => list.pop(),
        _ => Some(Expr { kind: ExprKind::Or(list), data_type: expr.data_type }),
    }
}

/// A flattened tree of inner joins. Conditions are over the columns of all relations together.
struct Flat {
    /// How many more joins may be flattened. A join beyond that stays one relation, ordered by
    /// itself.
    room: usize,
    /// Relations and their first columns.
    inputs: Vec<(Plan, usize)>,
    /// Conditions that cannot fail.
    conditions: Vec<Expr>,
    /// Conditions that may fail, lower ones first: an upper one must only see rows that the lower
    /// ones pass.
    late: Vec<Expr>,
}

impl Flat {
    fn flatten(&mut self, plan: Plan, start: usize) {
        match plan {
            Plan::Join { left, right, kind: JoinKind::Inner, keys, residual } if self.room > 0 => {
                self.room -= 1;
                let width = left.fields().len();
                let mut own = Vec::new();
                if let Some(residual) = residual {
                    conjuncts(residual, &mut own);
                }
                for (l, mut r) in keys {
                    shift_columns(&mut r, width as isize);
                    let kind = ExprKind::Binary {
                        op: BinaryOp::Equal,
                        left: Box::new(l),
                        right: Box::new(r),
                    };
                    own.push(Expr { kind, data_type: DataType::Boolean });
                }
                let mut late = self.take(own, start);
                self.flatten(*left, start);
                self.flatten(*right, start + width);
                self.late.append(&mut late);
            }
            Plan::Filter { input, predicate } if over_inner_join(&input) => {
                let mut own = Vec::new();
                conjuncts(predicate, &mut own);
                let mut late = self.take(own, start);
                self.flatten(*input, start);
                self.late.append(&mut late);
            }
            other => self.inputs.push((other, start)),
        }
    }

    /// Adds conditions over the columns from `start` on, and returns those that may fail.
    fn take(&mut self, mut own: Vec<Expr>, start: usize) -> Vec<Expr> {
        own.iter_mut().for_each(|c| shift_columns(c, start as isize));
        let (late, mut conditions): (Vec<_>, Vec<_>) = own.into_iter().partition(expr_may_fail);
        self.conditions.append(&mut conditions);
        late
    }
}

fn over_inner_join(plan: &Plan) -> bool {
    match plan {
        Plan::Filter { input, .. } => over_inner_join(input),
        other => matches!(other, Plan::Join { kind: JoinKind::Inner, .. }),
    }
}
