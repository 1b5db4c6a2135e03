//! Logical plans: typed, resolved, position-based. Every node's output columns are known from the
//! plan alone ([`Plan::fields`]).

use crate::expr::{Aggregate, Expr};
use nacre_types::hash::Set;
use nacre_types::{DataType, TableSchema};
use std::sync::Arc;

pub(crate) mod catalog;
pub(crate) mod join_filter;
pub(crate) mod key_order;

pub use crate::statement::{OnDuplicateKey, SessionOption, Statement};
pub use crate::window::{Bound, Frame, FrameUnit, WindowCall, WindowFunction};
pub use catalog::{Catalog, ColumnStatistics};

/// An output column of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name shown to the user.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether it can be null.
    pub nullable: bool,
}

/// Join kinds. The output is left columns then right columns, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Left rows with a partner. Left columns only, as is the next.
    Semi,
    Anti,
    /// Right rows with a partner: a semi join that keeps what it builds on. Right columns only, as is the next.
    RightSemi,
    RightAnti,
    /// A left join of which a second partner is an error: a scalar subquery.
    Single,
    /// Left columns, then a boolean: whether there is a partner.
    Mark,
    /// Left columns, then a boolean: whether the condition holds for any right row, three-valued. The condition
    /// is the residual, for the rows whose keys (two-valued) match; without a residual it is the one key.
    MarkIn,
}

impl JoinKind {
    /// Which sides' columns the output has.
    pub fn sides(self) -> (bool, bool) {
        match self {
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark | JoinKind::MarkIn => (true, false),
            JoinKind::RightSemi | JoinKind::RightAnti => (false, true),
            JoinKind::Inner
            | JoinKind::Left
            | JoinKind::Right
            | JoinKind::Full
            | JoinKind::Single => (true, true),
        }
    }

    /// Whether the output ends with a boolean.
    pub fn marks(self) -> bool {
        matches!(self, JoinKind::Mark | JoinKind::MarkIn)
    }
}

/// One sort key.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// Over the input row.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`. The default is nulls first when ascending, last when descending (nulls are smallest).
    pub nulls_first: bool,
}

/// A relational plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Rows of a table.
    Scan {
        /// Table.
        table: Arc<TableSchema>,
        /// Columns read, as positions in the table; the output columns, in this order.
        projection: Vec<usize>,
        /// Conjuncts over the output columns, pushed into the scan.
        filters: Vec<Expr>,
    },
    /// Constant rows; expressions see no columns. `rows` of no expressions make rows without columns.
    Values {
        /// Output columns.
        fields: Vec<Field>,
        /// Rows of expressions.
        rows: Vec<Vec<Expr>>,
    },
    /// Rows for which the predicate is true.
    Filter {
        /// Input.
        input: Box<Plan>,
        /// Boolean.
        predicate: Expr,
    },
    /// Computes output columns.
    Project {
        /// Input.
        input: Box<Plan>,
        /// One expression an output column.
        exprs: Vec<Expr>,
        /// Names.
        fields: Vec<Field>,
    },
    /// Groups and aggregates. Output: group columns, then aggregates. Without groups exactly one row.
    Aggregate {
        /// Input.
        input: Box<Plan>,
        /// Group keys over the input.
        groups: Vec<Expr>,
        /// Aggregates over the input.
        aggregates: Vec<Aggregate>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// Joins.
    Join {
        /// Left input.
        left: Box<Plan>,
        /// Right input.
        right: Box<Plan>,
        /// Kind.
        kind: JoinKind,
        /// Equality keys: the first over the left row, the second over the right row, of one type.
        keys: Vec<(Expr, Expr)>,
        /// Further condition over left columns then right columns; part of the join, not a filter after it.
        residual: Option<Expr>,
    },
    /// Rows of all inputs, one input after the other (`UNION ALL`). All have these columns' types.
    Union {
        /// Inputs.
        inputs: Vec<Plan>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `INTERSECT` and `EXCEPT`: rows of `left` that are, or are not, in `right`. Nulls are equal. Without `all`
    /// every row comes once; with it as often as on the left and right (the least), or left minus right.
    SetOperation {
        /// Rows that come out.
        left: Box<Plan>,
        /// Rows that decide.
        right: Box<Plan>,
        /// `EXCEPT`; otherwise `INTERSECT`.
        except: bool,
        /// Keep duplicates.
        all: bool,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// Window functions: the input's columns, then one a call. Rows come out sorted by partition and order.
    Window {
        /// Input.
        input: Box<Plan>,
        /// Over the input row; rows of equal values are a partition.
        partition: Vec<Expr>,
        /// Order within a partition.
        order: Vec<SortKey>,
        /// What is computed.
        calls: Vec<WindowCall>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// Sorts, stably. With `limit`, only the first rows are needed (top-k).
    Sort {
        /// Input.
        input: Box<Plan>,
        /// Keys, most significant first.
        keys: Vec<SortKey>,
        /// `offset + limit` rows are enough.
        limit: Option<u64>,
    },
    /// Skips, then passes so many rows. Literals or parameters of `BIGINT`.
    Limit {
        /// Input.
        input: Box<Plan>,
        /// Rows skipped.
        offset: Option<Expr>,
        /// Rows passed.
        limit: Option<Expr>,
    },
    /// Like `Limit`, for each combination of the keys by itself.
    LimitBy {
        /// Input.
        input: Box<Plan>,
        /// Over the input row; nulls are alike.
        keys: Vec<Expr>,
        /// Rows skipped.
        offset: Option<Expr>,
        /// Rows passed.
        limit: Option<Expr>,
    },
    /// Rows that somebody outside the plan holds: those of the round before inside a `Recursive`, or those of the
    /// table that a statement changes.
    Given {
        /// Whose.
        id: u32,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `WITH RECURSIVE`: the rows of `base`, then, as long as there are new ones, those of `step` over the rows that
    /// the round before added, which are `Given` to it.
    Recursive {
        /// Of the `Given` in `step`.
        id: u32,
        /// First rows.
        base: Box<Plan>,
        /// Rows that follow.
        step: Box<Plan>,
        /// `UNION`: a row that was there before is not new.
        distinct: bool,
        /// Output columns; `base` and `step` have their types.
        fields: Vec<Field>,
    },
    /// Rows that are wanted in several places of a statement and computed once. Every place has the same input.
    Shared {
        /// Which; distinct inputs have distinct numbers.
        id: u32,
        /// Input.
        input: Arc<Plan>,
    },
}

impl Plan {
    /// No rows and no columns: what stands in the place of a plan that was taken.
    pub fn nothing() -> Plan {
        Plan::Values { fields: Vec::new(), rows: Vec::new() }
    }

    /// Output columns.
    pub fn fields(&self) -> Vec<Field> {
        match self {
            Plan::Scan { table, projection, .. } => {
                let field = |at: &usize| {
                    let c = &table.columns[*at];
                    Field { name: c.name.clone(), data_type: c.data_type, nullable: c.nullable }
                };
                projection.iter().map(field).collect()
            }
            Plan::Values { fields, .. }
            | Plan::Project { fields, .. }
            | Plan::Aggregate { fields, .. }
            | Plan::Union { fields, .. }
            | Plan::SetOperation { fields, .. }
            | Plan::Given { fields, .. }
            | Plan::Recursive { fields, .. }
            | Plan::Window { fields, .. } => fields.clone(),
            Plan::Filter { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::LimitBy { input, .. } => input.fields(),
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
    /// Calls `f` on each direct input.
    pub fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        match self {
            Plan::Scan { .. } | Plan::Values { .. } | Plan::Given { .. } => {}
            Plan::Filter { input, .. }
            | Plan::Project { input, .. }
            | Plan::Aggregate { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::LimitBy { input, .. } => f(input),
            Plan::Shared { input, .. } => f(input),
            Plan::Union { inputs, .. } => inputs.iter().for_each(f),
            Plan::Join { left, right, .. }
            | Plan::SetOperation { left, right, .. }
            | Plan::Recursive { base: left, step: right, .. } => {
                f(left);
                f(right);
            }
        }
    }

    /// Whether `test` holds for this node or one below it, the upper ones first. What is shared is looked at once,
    /// however often it is used.
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

    /// Calls `f` on each expression of the node itself.
    pub fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        match self {
            Plan::Scan { filters, .. } => filters.iter().for_each(f),
            Plan::Values { rows, .. } => rows.iter().flatten().for_each(f),
            Plan::Filter { predicate, .. } => f(predicate),
            Plan::Project { exprs, .. } => exprs.iter().for_each(f),
            Plan::Aggregate { groups, aggregates, .. } => {
                let parts = aggregates.iter().flat_map(|a| a.arg.iter().chain(&a.filter));
                groups.iter().chain(parts).for_each(f);
            }
            Plan::Join { keys, residual, .. } => {
                keys.iter().flat_map(|(l, r)| [l, r]).chain(residual).for_each(f);
            }
            Plan::Window { partition, order, calls, .. } => {
                partition.iter().chain(order.iter().map(|k| &k.expr)).for_each(&mut *f);
                calls.iter().for_each(|call| call.for_each_expr(f));
            }
            Plan::Sort { keys, .. } => keys.iter().map(|k| &k.expr).for_each(f),
            Plan::Limit { offset, limit, .. } => offset.iter().chain(limit).for_each(f),
            Plan::LimitBy { keys, offset, limit, .. } => {
                keys.iter().chain(offset).chain(limit).for_each(f)
            }
            Plan::Union { .. }
            | Plan::SetOperation { .. }
            | Plan::Given { .. }
            | Plan::Recursive { .. }
            | Plan::Shared { .. } => {}
        }
    }

    /// Calls `f` on each direct input, mutably; those that are shared become this plan's own.
    pub fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        match self {
            Plan::Scan { .. } | Plan::Values { .. } | Plan::Given { .. } => {}
            Plan::Filter { input, .. }
            | Plan::Project { input, .. }
            | Plan::Aggregate { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::LimitBy { input, .. } => f(input),
            Plan::Shared { input, .. } => f(Arc::make_mut(input)),
            Plan::Union { inputs, .. } => inputs.iter_mut().for_each(f),
            Plan::Join { left, right, .. }
            | Plan::SetOperation { left, right, .. }
            | Plan::Recursive { base: left, step: right, .. } => {
                f(left);
                f(right);
            }
        }
    }

    /// Calls `f` on each expression of the node itself, mutably.
    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Plan::Scan { filters, .. } => filters.iter_mut().for_each(f),
            Plan::Values { rows, .. } => rows.iter_mut().flatten().for_each(f),
            Plan::Filter { predicate, .. } => f(predicate),
            Plan::Project { exprs, .. } => exprs.iter_mut().for_each(f),
            Plan::Aggregate { groups, aggregates, .. } => {
                let parts =
                    aggregates.iter_mut().flat_map(|a| a.arg.iter_mut().chain(&mut a.filter));
                groups.iter_mut().chain(parts).for_each(f);
            }
            Plan::Join { keys, residual, .. } => {
                keys.iter_mut().flat_map(|(l, r)| [l, r]).chain(residual).for_each(f);
            }
            Plan::Window { partition, order, calls, .. } => {
                partition.iter_mut().chain(order.iter_mut().map(|k| &mut k.expr)).for_each(&mut *f);
                calls.iter_mut().for_each(|call| call.for_each_expr_mut(f));
            }
            Plan::Sort { keys, .. } => keys.iter_mut().map(|k| &mut k.expr).for_each(f),
            Plan::Limit { offset, limit, .. } => offset.iter_mut().chain(limit).for_each(f),
            Plan::LimitBy { keys, offset, limit, .. } => {
                keys.iter_mut().chain(offset).chain(limit).for_each(f)
            }
            Plan::Union { .. }
            | Plan::SetOperation { .. }
            | Plan::Given { .. }
            | Plan::Recursive { .. }
            | Plan::Shared { .. } => {}
        }
    }
}
