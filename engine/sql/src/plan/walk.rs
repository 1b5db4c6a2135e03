//! Traversal of plans: columns, inputs and expressions.

use crate::explain::text::path_text;
use crate::expr::{Aggregate, Expr};
use crate::plan::tree::{Field, JoinKind, Plan, PlanNode, SortKey};
use nacre_types::hash::Set;
use nacre_types::{DataType, TableSchema};
use std::any::Any;
use std::sync::Arc;

/// Calls a function on each direct input of a plan, by shared or by mutable references: the one list
/// of inputs for both.
macro_rules! for_each_input {
    ($plan:expr, $f:ident, $iter:ident, $of_node:ident, $shared:path) => {
        match $plan {
            Plan::Scan { .. } | Plan::Values { .. } | Plan::Given { .. } => {}
            Plan::Filter { input, .. }
            | Plan::Project { input, .. }
            | Plan::Aggregate { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. } => $f(input),
            Plan::Node(node) => node.$of_node($f),
            Plan::Shared { input, .. } => $f($shared(input)),
            Plan::Union { inputs, .. } => inputs.$iter().for_each($f),
            Plan::Join { left, right, .. } | Plan::Recursive { base: left, step: right, .. } => {
                $f(left);
                $f(right);
            }
        }
    };
}

/// Calls a function on each expression of a plan node itself, by shared or by mutable references: the
/// one list of expressions for both.
macro_rules! for_each_expr {
    ($plan:expr, $f:ident, $iter:ident, $exprs:ident, $of_node:ident) => {
        match $plan {
            Plan::Scan { filters, .. } => filters.$iter().for_each($f),
            Plan::Values { rows, .. } => rows.$iter().flatten().for_each($f),
            Plan::Filter { predicate, .. } => $f(predicate),
            Plan::Project { exprs, .. } => exprs.$iter().for_each($f),
            Plan::Aggregate { groups, aggregates, .. } => {
                let parts = aggregates.$iter().flat_map(Aggregate::$exprs);
                groups.$iter().chain(parts).for_each($f);
            }
            Plan::Join { keys, residual, .. } => {
                keys.$iter().flat_map(|(l, r)| [l, r]).chain(residual).for_each($f);
            }
            Plan::Sort { keys, .. } => keys.$iter().for_each(|SortKey { expr, .. }| $f(expr)),
            Plan::Node(node) => node.$of_node($f),
            Plan::Limit { offset, limit, .. } => offset.$iter().chain(limit).for_each($f),
            Plan::Union { .. }
            | Plan::Given { .. }
            | Plan::Recursive { .. }
            | Plan::Shared { .. } => {}
        }
    };
}

impl Plan {
    /// All rows of a table.
    pub(crate) fn scan(table: Arc<TableSchema>, projection: Vec<usize>) -> Plan {
        debug_assert!(
            projection.iter().all(|at| *at < table.columns.len()),
            "a scan reads a column that table {} does not have",
            table.name
        );
        Plan::filtered_scan(table, projection, Vec::new())
    }

    /// The rows of a table that pass filters over the projected columns.
    pub fn filtered_scan(
        table: Arc<TableSchema>,
        projection: Vec<usize>,
        filters: Vec<Expr>,
    ) -> Plan {
        let (paths, keys) = (Vec::new(), Vec::new());
        Plan::Scan { table, projection, paths, filters, keys }
    }

    /// A plan with no rows and no columns, left in place of a plan that was taken.
    pub fn nothing() -> Plan {
        Plan::Values { fields: Vec::new(), rows: Vec::new() }
    }

    /// Output columns.
    pub fn fields(&self) -> Vec<Field> {
        match self {
            Plan::Scan { table, projection, paths, .. } => {
                let field = |at: &usize| {
                    let c = &table.columns[*at];
                    Field { name: c.name.clone(), data_type: c.data_type, nullable: c.nullable }
                };
                let path = |e: &Expr| Field {
                    name: path_text(table, e),
                    data_type: e.data_type,
                    nullable: true,
                };
                projection.iter().map(field).chain(paths.iter().map(path)).collect()
            }
            Plan::Values { fields, .. }
            | Plan::Project { fields, .. }
            | Plan::Aggregate { fields, .. }
            | Plan::Union { fields, .. }
            | Plan::Given { fields, .. }
            | Plan::Recursive { fields, .. } => fields.clone(),
            Plan::Node(node) => node.fields(),
            Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => {
                input.fields()
            }
            Plan::Shared { input, .. } => input.fields(),
            Plan::Join { left, right, kind, .. } => {
                if kind.sides() == (false, true) {
                    return right.fields();
                }
                let mut fields = left.fields();
                if kind.sides() == (true, false) {
                    if kind.marks() {
                        let nullable = *kind == JoinKind::MarkIn;
                        fields.push(Field {
                            name: "mark".into(),
                            data_type: DataType::Boolean,
                            nullable,
                        });
                    }
                    return fields;
                }
                let mut others = right.fields();
                if matches!(kind, JoinKind::Right | JoinKind::Full) {
                    fields.iter_mut().for_each(|f| f.nullable = true);
                }
                if matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Single) {
                    others.iter_mut().for_each(|f| f.nullable = true);
                }
                fields.append(&mut others);
                fields
            }
        }
    }
}

impl Plan {
    /// Types of the output columns.
    pub fn types(&self) -> Vec<DataType> {
        match self {
            Plan::Scan { table, projection, paths, .. } => {
                let stored = projection.iter().map(|at| table.columns[*at].data_type);
                stored.chain(paths.iter().map(|e| e.data_type)).collect()
            }
            Plan::Values { fields, .. }
            | Plan::Union { fields, .. }
            | Plan::Given { fields, .. }
            | Plan::Recursive { fields, .. } => fields.iter().map(|f| f.data_type).collect(),
            Plan::Project { exprs, .. } => exprs.iter().map(|e| e.data_type).collect(),
            Plan::Aggregate { groups, aggregates, .. } => groups
                .iter()
                .map(|g| g.data_type)
                .chain(aggregates.iter().map(|a| a.data_type))
                .collect(),
            Plan::Join { left, right, kind, .. } => {
                let (keeps_left, keeps_right) = kind.sides();
                let mut types = if keeps_left { left.types() } else { Vec::new() };
                if keeps_right {
                    types.extend(right.types());
                }
                if kind.marks() {
                    types.push(DataType::Boolean);
                }
                types
            }
            Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => {
                input.types()
            }
            Plan::Node(node) => node.fields().into_iter().map(|f| f.data_type).collect(),
            Plan::Shared { input, .. } => input.types(),
        }
    }
}

impl Plan {
    /// Calls `f` on each direct input.
    pub fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        for_each_input!(self, f, iter, for_each_input, Arc::as_ref)
    }

    /// Whether `test` holds for this node or one below it, parents first. Visits a shared plan
    /// once, however often it is used.
    pub fn any_node<'p>(&'p self, test: &mut dyn FnMut(&'p Plan) -> bool) -> bool {
        fn any<'p>(
            plan: &'p Plan,
            seen: &mut Set<u32>,
            test: &mut dyn FnMut(&'p Plan) -> bool,
        ) -> bool {
            if let Plan::Shared { id, .. } = plan
                && !seen.insert(*id)
            {
                return false;
            }
            let mut found = test(plan);
            plan.for_each_input(&mut |input| found = found || any(input, seen, test));
            found
        }
        any(self, &mut Set::default(), test)
    }

    /// Downcasts a [`Plan::Node`] to the operator type `N`.
    pub fn as_node<N: PlanNode>(&self) -> Option<&N> {
        match self {
            Plan::Node(node) => (&**node as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Calls `f` on each expression of the node itself.
    pub fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        for_each_expr!(self, f, iter, exprs, for_each_expr)
    }

    /// Calls `f` on each direct input, mutably. Copies shared inputs so that changes stay in this
    /// plan.
    pub fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        for_each_input!(self, f, iter_mut, for_each_input_mut, Arc::make_mut)
    }

    /// The same without shared plans, which are optimised separately, and once.
    pub(crate) fn for_each_own_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        self.for_each_input_mut(&mut |input| {
            if !matches!(input, Plan::Shared { .. }) {
                f(input);
            }
        });
    }

    /// Calls `f` on each expression of the node itself, mutably.
    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for_each_expr!(self, f, iter_mut, exprs_mut, for_each_expr_mut)
    }
}
