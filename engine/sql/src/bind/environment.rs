//! The environment of name resolution: columns, aliases, aggregates and windows of the current
//! query, the rows of enclosing queries, and the common table expressions in scope.

use crate::analysis::subqueries::has_subquery;
use crate::analysis::volatile::is_volatile;
use crate::bind::placeholder::{has_aggregate, has_window};
use crate::bind::scope::Scope;
use crate::expr::{Aggregate, Expr, ExprKind};
use crate::plan::{Field, Plan, SortKey, WindowCall};
use nacre_function::entry::grouping::GroupingFunction;
use nacre_types::{Position, invariant};
use sqlparser::ast;
use std::sync::Arc;

/// Names that an expression may refer to, and the aggregates, windows and columns found in it.
pub(super) struct Env<'s> {
    pub(super) scope: &'s Scope,
    /// Output columns, which resolve names that are not in scope.
    pub(super) aliases: &'s [(String, Expr)],
    /// Outputs of the `SELECT` list before the one being bound, by alias. They resolve names that
    /// nothing else does.
    pub(super) earlier: Vec<(String, Expr)>,
    /// The columns that `COLUMNS(…)` stands for; `None` outside a `SELECT` list.
    pub(super) columns: Option<ColumnsCall>,
    /// Clause being bound, for error messages.
    pub(super) clause: &'static str,
    /// Aggregates found; `None` where they are not allowed.
    pub(super) aggregates: Option<Vec<Aggregate>>,
    pub(super) in_aggregate: bool,
    /// Inside an aggregate over a window: the aggregates of the query, which the arguments may use.
    pub(super) outer_aggregates: Option<Vec<Aggregate>>,
    /// Calls of `GROUPING` found; allowed where aggregates are.
    pub(super) groupings: Vec<GroupingCall>,
    /// Window functions found; `None` where they are not allowed.
    pub(super) windows: Option<Vec<Window>>,
    /// Columns named outside aggregates, for grouping errors.
    pub(super) seen: Vec<(usize, Option<Position>)>,
}

/// `COLUMNS(…)` in an item of a `SELECT` list, which is bound once for each of its columns.
#[derive(Default)]
pub(super) struct ColumnsCall {
    /// Positions of its columns; `None` until it is met.
    pub(super) matched: Option<Vec<usize>>,
    /// Which of them it stands for.
    pub(super) current: usize,
}

impl<'s> Env<'s> {
    pub(super) fn new(scope: &'s Scope, clause: &'static str) -> Env<'s> {
        Env {
            scope,
            aliases: &[],
            earlier: Vec::new(),
            columns: None,
            clause,
            aggregates: None,
            in_aggregate: false,
            outer_aggregates: None,
            groupings: Vec::new(),
            windows: None,
            seen: Vec::new(),
        }
    }

    /// Returns the expression of an earlier output with this alias. A window function, a subquery or
    /// a volatile function must stay one, and an aggregate may not contain another.
    pub(super) fn earlier_output(&self, alias: &str) -> Option<&Expr> {
        let found = self.earlier.iter().find(|(name, _)| name.eq_ignore_ascii_case(alias));
        let expr = &found?.1;
        let nests = self.in_aggregate && has_aggregate(expr);
        (!nests && !has_window(expr) && !has_subquery(expr) && !is_volatile(expr)).then_some(expr)
    }

    /// Returns the aggregate that a placeholder stands for.
    pub(super) fn aggregate(&self, at: usize) -> &Aggregate {
        let list = self.aggregates.as_deref().unwrap_or_default();
        invariant!(at < list.len(), "aggregate {at} of {}", list.len());
        &list[at]
    }

    /// Returns the call of `GROUPING` that a placeholder stands for.
    pub(super) fn grouping(&self, at: usize) -> &GroupingCall {
        invariant!(at < self.groupings.len(), "grouping {at} of {}", self.groupings.len());
        &self.groupings[at]
    }

    /// Returns the window function call that a placeholder stands for.
    pub(super) fn window(&self, at: usize) -> &Window {
        let list = self.windows.as_deref().unwrap_or_default();
        invariant!(at < list.len(), "window function {at} of {}", list.len());
        &list[at]
    }
}

/// The row of an enclosing query.
pub(crate) struct Frame {
    pub id: u32,
    pub scope: Scope,
    /// Expressions over the row that subqueries use, collected so far.
    pub args: Arguments,
    /// Aggregates of the enclosing query found so far; `None` where they are not allowed.
    pub aggregates: Option<Vec<Aggregate>>,
    /// Clause of the enclosing query, for error messages, and whether the subquery is inside one of
    /// its aggregates.
    pub place: (&'static str, bool),
}

/// Expressions that a subquery takes from an enclosing row, each with the position of its first
/// use.
pub(crate) type Arguments = Vec<(Expr, Option<Position>)>;

impl Frame {
    /// Returns the reference that stands for `expr`, an expression over this row; adds an argument
    /// if it is new.
    pub fn outer(&mut self, expr: Expr, at: Option<Position>) -> Expr {
        let data_type = expr.data_type;
        let known = self.args.iter().position(|(e, _)| *e == expr);
        let index = known.unwrap_or_else(|| {
            self.args.push((expr, at));
            self.args.len() - 1
        });
        Expr { kind: ExprKind::Outer { frame: self.id, index }, data_type }
    }
}

/// A common table expression in scope.
pub(crate) struct Cte<'a> {
    pub cte: &'a ast::Cte,
    /// Number of enclosing rows visible to the body.
    pub frames: usize,
    /// Number and plan of the shared result; set at the first use.
    pub bound: Option<(u32, Arc<Plan>)>,
    /// Number of the `WITH RECURSIVE` it belongs to, if any.
    pub recursive: Option<u32>,
    /// Meaning of its name inside its own definition.
    pub itself: Itself,
}

/// Meaning of a reference to a common table expression while its own definition is bound.
#[derive(Clone, Default)]
pub(crate) enum Itself {
    /// An ordinary reference.
    #[default]
    Elsewhere,
    /// Not allowed here; the text names the unsupported feature.
    Refused(&'static str),
    /// An error that sets `seen`: tells recursive parts of the definition from the others.
    Watched { seen: bool },
    /// The rows of the previous iteration; `uses` counts the references.
    Rows { id: u32, fields: Vec<Field>, uses: usize },
}

/// A call of a function of grouping sets.
#[derive(Clone, PartialEq)]
pub(crate) struct GroupingCall {
    pub function: &'static GroupingFunction,
    /// Group expressions.
    pub args: Vec<Expr>,
}

/// A window function call with its partitioning and order.
#[derive(Clone, PartialEq)]
pub(crate) struct Window {
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub call: WindowCall,
}

impl Window {
    /// Its expressions over the input rows.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let mut call = Vec::new();
        self.call.for_each_expr(&mut |e| call.push(e));
        self.partition.iter().chain(self.order.iter().map(|key| &key.expr)).chain(call)
    }

    pub fn name(&self) -> &str {
        self.call.function.name()
    }
}
