//! What names mean while a statement is bound: the columns, aliases, aggregates and windows of the query at hand, the
//! rows of the queries around it, and the common table expressions in scope.

use crate::bind::scope::Scope;
use crate::expr::{Aggregate, Expr, ExprKind};
use crate::plan::{Field, Plan, SortKey, WindowCall};
use nacre_types::Position;
use sqlparser::ast;
use std::sync::Arc;

/// Aggregates of a grouped query are columns from here on until the grouping is known.
pub(super) const AGGREGATE_BASE: usize = 1 << 30;
/// And window functions from here on.
pub(super) const WINDOW_BASE: usize = 1 << 31;

/// What an expression may refer to, and what it was found to use.
pub(super) struct Env<'s> {
    pub(super) scope: &'s Scope,
    /// Output columns, for names that are not in scope.
    pub(super) aliases: &'s [(String, Expr)],
    /// Clause, for messages.
    pub(super) clause: &'static str,
    /// Aggregates found; none where they are not allowed.
    pub(super) aggregates: Option<Vec<Aggregate>>,
    pub(super) in_aggregate: bool,
    /// Inside an aggregate over a window: the aggregates of the query, which its arguments may use.
    pub(super) outer_aggregates: Option<Vec<Aggregate>>,
    /// Window functions found; none where they are not allowed.
    pub(super) windows: Option<Vec<Window>>,
    /// Columns named outside aggregates, for grouping errors.
    pub(super) seen: Vec<(usize, Option<Position>)>,
}

impl<'s> Env<'s> {
    pub(super) fn new(scope: &'s Scope, clause: &'static str) -> Env<'s> {
        Env {
            scope,
            aliases: &[],
            clause,
            aggregates: None,
            in_aggregate: false,
            outer_aggregates: None,
            windows: None,
            seen: Vec::new(),
        }
    }
}

/// The row of an enclosing query.
pub(crate) struct Frame {
    pub id: u32,
    pub scope: Scope,
    /// Columns asked for so far.
    pub args: Arguments,
    /// The enclosing query's aggregates so far; none where it must not have any.
    pub aggregates: Option<Vec<Aggregate>>,
    /// Its clause, for messages, and whether this is inside one of its aggregates.
    pub place: (&'static str, bool),
}

/// What a subquery asks of an enclosing row, and where the first time.
pub(crate) type Arguments = Vec<(Expr, Option<Position>)>;

impl Frame {
    /// The argument that stands for an expression over the row.
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
    /// How many enclosing rows its body sees.
    pub frames: usize,
    /// Its number and plan, from its first use on.
    pub bound: Option<(u32, Arc<Plan>)>,
    /// Which `WITH RECURSIVE` it belongs to, if any.
    pub recursive: Option<u32>,
    /// What its name means inside its own definition.
    pub itself: Itself,
}

/// What a reference to the table means while its own definition is bound.
#[derive(Clone, Default)]
pub(crate) enum Itself {
    /// Nothing special.
    #[default]
    Elsewhere,
    /// Not allowed here, and why.
    Refused(&'static str),
    /// Not expected, but to be noticed.
    Watched { seen: bool },
    /// The rows of the round before, and how often they were asked for.
    Rows { id: u32, fields: Vec<Field>, uses: usize },
}

/// A call and where its rows are.
#[derive(Clone, PartialEq)]
pub(crate) struct Window {
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub call: WindowCall,
}

impl Window {
    pub fn name(&self) -> &'static str {
        self.call.function.name()
    }
}
