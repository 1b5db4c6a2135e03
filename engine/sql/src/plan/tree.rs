//! Expressions, plans, and the trait of operators that describe themselves. They refer to each
//! other and so share one file. Methods on expressions are in `expr`, on whole plans in `walk`.

use nacre_function::entry::aggregate::AggregateCallee;
use nacre_function::entry::definition::ScalarCallee;
use nacre_function::operator::BinaryOp;
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// An expression with its result type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The operation and its operands.
    pub kind: ExprKind,
    /// Result type.
    pub data_type: DataType,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Column of the input row, by position.
    Column(usize),
    /// A constant of `data_type`.
    Literal(Value),
    /// Statement parameter, by position from zero. Its value is cast to `data_type` before
    /// execution.
    Parameter(usize),
    /// Converts to `data_type`; fails at run time when the value does not fit.
    Cast(Box<Expr>),
    /// Three-valued negation.
    Not(Box<Expr>),
    /// Arithmetic negation; overflow is an error.
    Negate(Box<Expr>),
    /// `IS NULL` (`negated`: `IS NOT NULL`); never null.
    IsNull {
        /// Argument.
        arg: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `IS [NOT] TRUE`, `IS [NOT] FALSE` on a boolean; never null.
    IsBoolean {
        /// Argument.
        arg: Box<Expr>,
        /// The truth value to test for.
        value: bool,
        /// `IS NOT …`.
        negated: bool,
    },
    /// Both operands have the same physical type and family, and decimals have the same scale
    /// except for `*` and `/`. Integers of different widths need no cast, nor do text types of
    /// different lengths. The exception is a date or timestamp plus or minus an interval. The
    /// result may be wider than the operands: `I64` decimals multiply to an `I128` decimal,
    /// integers divide to a decimal.
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// Conjunction of two or more, three-valued.
    And(Vec<Expr>),
    /// Disjunction of two or more, three-valued.
    Or(Vec<Expr>),
    /// `CASE WHEN condition THEN result … ELSE otherwise END`. Evaluates branches in order and no
    /// further than needed: an error in a branch not taken must not surface.
    Case {
        /// `(condition, result)`.
        branches: Vec<(Expr, Expr)>,
        /// Null when absent.
        otherwise: Option<Box<Expr>>,
    },
    /// `arg [NOT] IN (list)`, three-valued. All operands have one type.
    InList {
        /// Argument.
        arg: Box<Expr>,
        /// Candidates.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `arg [NOT] LIKE pattern [ESCAPE escape]`: `%` matches any run of characters, `_` any one.
    Like {
        /// Text.
        arg: Box<Expr>,
        /// Pattern, text.
        pattern: Box<Expr>,
        /// Escape character; backslash when absent.
        escape: Option<char>,
        /// `NOT LIKE`.
        negated: bool,
        /// `ILIKE`: ASCII case is ignored.
        case_insensitive: bool,
    },
    /// A scalar function.
    Function {
        /// The function.
        function: ScalarCallee,
        /// Arguments, already cast to the function's parameter types.
        args: Vec<Expr>,
    },
    /// A reference from a subquery to its enclosing row: [`Subquery::args`] at `index` of the
    /// subquery with this `frame`. Unnesting removes it.
    Outer {
        /// The frame of the enclosing subquery.
        frame: u32,
        /// Index of the argument.
        index: usize,
    },
    /// A subquery as a value. Unnesting removes it.
    Subquery(Box<Subquery>),
    /// While a query is bound: a value whose column is known only once the groups are. The binder
    /// resolves it; a finished plan has none.
    Placeholder(Placeholder),
}

/// What an [`ExprKind::Placeholder`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The query's aggregate with this number.
    Aggregate(usize),
    /// The query's `GROUPING` call with this number.
    Grouping(usize),
    /// The query's window function call with this number.
    Window(usize),
}

/// A query inside an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// How the rows become a value.
    pub kind: SubqueryKind,
    /// The query. Its `Outer` references with this frame read `args`.
    pub plan: Plan,
    /// Number unique to this subquery within the statement.
    pub frame: u32,
    /// Values read from the enclosing row.
    pub args: Vec<Expr>,
    /// Left operands of the comparison with the rows, of the column types.
    pub operands: Vec<Expr>,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The single column of the single row. Null without rows, an error with more than one.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the comparison holds for any row, three-valued. `IN` is `= ANY`.
    Any(BinaryOp),
}

/// An aggregate in an `Aggregate` plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateCallee,
    /// Arguments over the input row, of the function's parameter types; none for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// The order in which the function receives rows, if that matters.
    pub order: Vec<SortKey>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Expr>,
    /// Result type.
    pub data_type: DataType,
}

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

/// Join kinds. The output is left columns then right columns, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Left rows with a partner. `Semi` and `Anti` output left columns only.
    Semi,
    Anti,
    /// Right rows with a partner: a semi join whose build side is kept. `RightSemi` and `RightAnti`
    /// output right columns only.
    RightSemi,
    RightAnti,
    /// A left join in which a second partner is an error: a scalar subquery.
    Single,
    /// Left columns, then a boolean: whether a partner exists.
    Mark,
    /// Left columns, then a boolean: whether the condition holds for any right row, three-valued.
    /// The condition is the residual, applied to rows whose (two-valued) keys match; without a
    /// residual it is the single key.
    MarkIn,
}

impl JoinKind {
    /// Whether the output includes the left and the right columns.
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

    /// Whether the output ends with a boolean column.
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
    /// `NULLS FIRST`. The default is nulls first when ascending, last when descending (nulls are
    /// smallest).
    pub nulls_first: bool,
}

/// A relational plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Rows of a table.
    Scan {
        /// Table.
        table: Arc<TableSchema>,
        /// Columns read, as positions in the table; the first output columns, in this order.
        projection: Vec<usize>,
        /// The other output columns: parts of documents, computed from columns at positions of the
        /// table. They cannot fail.
        paths: Vec<Expr>,
        /// Conjuncts over the output columns, pushed into the scan.
        filters: Vec<Expr>,
        /// Computed columns of the table's indexes, by position, as expressions over the output
        /// columns; empty until the plan is optimised.
        keys: Vec<(usize, Expr)>,
    },
    /// Constant rows; expressions read no columns. `rows` of empty lists produce rows without
    /// columns.
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
        /// One expression per output column.
        exprs: Vec<Expr>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// Groups and aggregates. Outputs group columns, then aggregates; exactly one row without group
    /// keys.
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
        /// Equality keys: the first over the left row, the second over the right row. Their types
        /// compare without a cast: they share a representation and scale, as integers of different
        /// widths do.
        keys: Vec<(Expr, Expr)>,
        /// Further condition over left columns then right columns; part of the join, not a filter
        /// after it.
        residual: Option<Expr>,
    },
    /// Rows of all inputs, one input after the other (`UNION ALL`). All inputs have the types of
    /// `fields`.
    Union {
        /// Inputs.
        inputs: Vec<Plan>,
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
    /// Skips `offset` rows, then returns `limit` rows. Both are literals or parameters of type
    /// `BIGINT`.
    Limit {
        /// Input.
        input: Box<Plan>,
        /// Number of rows to skip.
        offset: Option<Expr>,
        /// Number of rows to return.
        limit: Option<Expr>,
    },
    /// Rows supplied from outside the plan: the previous round's rows inside a `Recursive`, or the
    /// rows of the table that a statement changes.
    Given {
        /// Number of the supplier.
        id: u32,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `WITH RECURSIVE`: the rows of `base`, then repeatedly the rows of `step` until a round adds
    /// none. `step` reads the previous round's rows through `Given`.
    Recursive {
        /// Number of the `Given` in `step`.
        id: u32,
        /// First rows.
        base: Box<Plan>,
        /// Computes the next round.
        step: Box<Plan>,
        /// `UNION`: duplicates of earlier rows are dropped.
        distinct: bool,
        /// Output columns; `base` and `step` have their types.
        fields: Vec<Field>,
    },
    /// A plan used in several places of a statement and computed once. All places hold the same
    /// input.
    Shared {
        /// Number of the input, unique per distinct input.
        id: u32,
        /// Input.
        input: Arc<Plan>,
    },
    /// An operator that describes itself, so that no rule needs to match on its shape.
    Node(Box<dyn PlanNode>),
}

/// An operator of [`Plan::Node`], with everything that binding, unnesting, the optimizer and
/// `EXPLAIN` need to know about it.
///
/// The defaults are safe for every operator: no filter passes it, it reads all columns of its
/// inputs, it may fail, and nothing is known about its rows. An operator overrides those for which
/// it can promise more.
pub trait PlanNode: DynamicNode + Debug + Send + Sync {
    /// Output columns.
    fn fields(&self) -> Vec<Field>;

    /// Calls `f` on each direct input, in order.
    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan));

    /// Calls `f` on each direct input, mutably, in the same order.
    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan));

    /// Calls `f` on each expression of the node itself.
    fn for_each_expr<'p>(&'p self, _f: &mut dyn FnMut(&'p Expr)) {}

    /// Calls `f` on each expression of the node itself, mutably.
    fn for_each_expr_mut(&mut self, _f: &mut dyn FnMut(&mut Expr)) {}

    /// The name of the operator in error messages, with its article.
    fn title(&self) -> &'static str;

    /// The line of `EXPLAIN`, without indentation.
    fn explain(&self) -> String;

    /// Drops columns that no consumer reads. Prunes each input with `pruning`, remaps the node's
    /// expressions to the remaining columns, and returns where each output column went. A returned
    /// plan replaces the node.
    fn prune(&mut self, needed: Vec<bool>, pruning: &Pruning) -> (Option<Plan>, ColumnMap) {
        self.for_each_input_mut(&mut |input| {
            let every = vec![true; input.fields().len()];
            pruning.exact(input, &every);
        });
        (None, (0..needed.len()).map(Some).collect())
    }

    /// Pushes conditions over the output into the inputs with `push`, which must be called on every
    /// input, and returns the conditions that stay above the node.
    fn push_filters(
        &mut self,
        conditions: Vec<Expr>,
        push: &mut dyn FnMut(&mut Plan, Vec<Expr>),
    ) -> Vec<Expr> {
        self.for_each_input_mut(&mut |input| push(input, Vec::new()));
        conditions
    }

    /// Estimates the number of output rows from those of the inputs.
    fn estimate_rows(&self, inputs: &[f64]) -> f64 {
        inputs.iter().sum()
    }

    /// Whether statistics of the first input's columns hold for the output columns at the same
    /// positions.
    fn keeps_statistics(&self) -> bool {
        false
    }

    /// Whether at most one output row has given values in the columns for which `fixed` holds.
    /// `of_input` answers the same question for an input.
    fn is_unique(&self, _fixed: &dyn Fn(usize) -> bool, _of_input: IsUnique<'_>) -> bool {
        false
    }

    /// Whether the operator may raise an error of its own, apart from those of its expressions.
    fn may_fail(&self) -> bool {
        true
    }

    /// Computes a correlated subquery for all arguments at once: appends the columns of `domain` to
    /// each input that `spread` is called on, replaces references to the enclosing row by those
    /// columns, and returns their position in the output.
    fn spread(
        &mut self,
        _domain: &Domain,
        _spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        Err(Error::unsupported("a correlated subquery of this form"))
    }
}

/// Whether at most one row of a plan has given values in the columns that the second argument
/// selects.
pub type IsUnique<'f> = &'f dyn Fn(&Plan, &dyn Fn(usize) -> bool) -> bool;

/// The new position of each old output column, or `None` if the column was dropped.
pub type ColumnMap = Vec<Option<usize>>;

/// How a node prunes the columns of an input.
pub struct Pruning {
    /// Keeps at least the needed columns and returns where each went.
    pub keep: fn(Plan, Vec<bool>) -> (Plan, ColumnMap),
    /// Keeps exactly the needed columns, in order.
    pub keep_exactly: fn(Plan, &[bool]) -> Plan,
}

impl Pruning {
    /// Prunes an input in place; it may keep more columns than needed.
    pub fn input(&self, input: &mut Plan, needed: Vec<bool>) -> ColumnMap {
        let map;
        (*input, map) = (self.keep)(std::mem::replace(input, Plan::nothing()), needed);
        map
    }

    /// Prunes an input in place to exactly the needed columns.
    pub fn exact(&self, input: &mut Plan, needed: &[bool]) {
        *input = (self.keep_exactly)(std::mem::replace(input, Plan::nothing()), needed);
    }
}

/// The distinct arguments that a correlated subquery is computed for, as columns (T. Neumann and A.
/// Kemper, *Unnesting Arbitrary Queries*, BTW 2015).
pub struct Domain {
    /// The frame of the enclosing row.
    pub frame: u32,
    /// The arguments of the frame that the subquery reads, ascending, one column each.
    pub used: Vec<usize>,
    /// The domain's columns.
    pub fields: Vec<Field>,
}

/// Cloning, comparing and downcasting of a trait object, implemented for every node.
pub trait DynamicNode: Any {
    /// Clones the node.
    fn boxed(&self) -> Box<dyn PlanNode>;
    /// Whether the other node is of the same type and equal.
    fn equals(&self, other: &dyn PlanNode) -> bool;
}

impl<N: PlanNode + Clone + PartialEq> DynamicNode for N {
    fn boxed(&self) -> Box<dyn PlanNode> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn PlanNode) -> bool {
        (other as &dyn Any).downcast_ref::<N>() == Some(self)
    }
}

impl Clone for Box<dyn PlanNode> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl PartialEq for dyn PlanNode {
    fn eq(&self, other: &dyn PlanNode) -> bool {
        self.equals(other)
    }
}
