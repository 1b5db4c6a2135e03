//! Expressions, plans, and the trait of operators that describe themselves. They contain each other, hence one file.
//! What is asked of expressions is in `expr`, of whole plans in `walk`.

use nacre_function::entry::aggregate::AggregateFunction;
use nacre_function::entry::definition::ScalarFunction;
use nacre_function::operator::BinaryOp;
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// An expression with its result type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it computes.
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
    /// Statement parameter, by position from zero. Its value is cast to `data_type` before execution.
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
        /// The truth value asked for.
        value: bool,
        /// `IS NOT …`.
        negated: bool,
    },
    /// Both operands have the same physical type and family, and decimals the same scale but for `*` and
    /// `/`; integers of different widths meet without a cast, as do text types of different lengths. Date or
    /// timestamp plus or minus an interval is the exception. The result may be wider than the operands:
    /// `I64` decimals multiply to an `I128` decimal, integers divide to a decimal.
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
    /// `CASE WHEN condition THEN result … ELSE otherwise END`; branches are tried in order and only as
    /// far as needed: an error in a branch not taken must not surface.
    Case {
        /// `(condition, result)`.
        branches: Vec<(Expr, Expr)>,
        /// Null when absent.
        otherwise: Option<Box<Expr>>,
    },
    /// `arg [NOT] IN (list)`, three-valued; all of one type.
    InList {
        /// Argument.
        arg: Box<Expr>,
        /// Candidates.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `arg [NOT] LIKE pattern [ESCAPE escape]`: `%` any run, `_` any one character.
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
        /// Which.
        function: &'static ScalarFunction,
        /// Arguments, already cast to the types the function wants.
        args: Vec<Expr>,
    },
    /// Inside a subquery: what the enclosing row gives it, [`Subquery::args`] at `index` of the subquery of
    /// this `frame`. Unnesting removes it.
    Outer {
        /// Which enclosing subquery.
        frame: u32,
        /// Which of its arguments.
        index: usize,
    },
    /// A subquery as a value. Unnesting removes it.
    Subquery(Box<Subquery>),
}

/// A query inside an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// How its rows become a value.
    pub kind: SubqueryKind,
    /// Its rows; `Outer` of this frame are its arguments.
    pub plan: Plan,
    /// Distinct for each subquery of a statement.
    pub frame: u32,
    /// What it needs of the enclosing row.
    pub args: Vec<Expr>,
    /// Left operands of a comparison with its rows, of the types of its columns.
    pub operands: Vec<Expr>,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The one column of the one row; null without rows; an error when there are more.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the comparison holds for any row, three-valued. `IN` is `= ANY`.
    Any(BinaryOp),
}

/// An aggregate in an `Aggregate` plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which function.
    pub function: &'static AggregateFunction,
    /// Arguments over the input row, of the types the function expects; none for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// The order in which the function sees rows, where that matters.
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
        /// Equality keys: the first over the left row, the second over the right row. Their types compare without a cast:
        /// they have one representation and scale, as integers of two widths have.
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
    /// Sorts, stably. With `limit`, only the first rows are needed (top-k).
    Sort {
        /// Input.
        input: Box<Plan>,
        /// Keys, most significant first.
        keys: Vec<SortKey>,
        /// `offset + limit` rows are enough.
        limit: Option<u64>,
    },
    /// Skips `offset` rows, then passes `limit` rows. Literals or parameters of `BIGINT`.
    Limit {
        /// Input.
        input: Box<Plan>,
        /// Rows skipped.
        offset: Option<Expr>,
        /// Rows passed.
        limit: Option<Expr>,
    },
    /// Rows supplied from outside the plan: those of the round before inside a `Recursive`, or those of the
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
    /// An operator that describes itself: no rule has to know it by its shape.
    Node(Box<dyn PlanNode>),
}

/// An operator of [`Plan::Node`]: everything that binding, unnesting, the optimizer and `EXPLAIN` ask of it.
///
/// The defaults are safe for every operator: no filter passes it, it needs all columns of its inputs, it may fail,
/// and nothing is known of its rows. An operator replaces those for which it can promise more.
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

    /// Drops columns that no consumer needs. Prunes each input with `pruning`, moves the node's expressions to the
    /// columns that are left, and returns where each output column went. The plan, if there is one, replaces the node.
    fn prune(&mut self, needed: Vec<bool>, pruning: &Pruning) -> (Option<Plan>, ColumnMap) {
        self.for_each_input_mut(&mut |input| {
            let every = vec![true; input.fields().len()];
            pruning.exact(input, &every);
        });
        (None, (0..needed.len()).map(Some).collect())
    }

    /// Moves conditions over the output into the inputs with `push`, which every input must pass through, and returns
    /// those that stay above the node.
    fn push_filters(
        &mut self,
        conditions: Vec<Expr>,
        push: &mut dyn FnMut(&mut Plan, Vec<Expr>),
    ) -> Vec<Expr> {
        self.for_each_input_mut(&mut |input| push(input, Vec::new()));
        conditions
    }

    /// The estimated number of output rows, from those of the inputs.
    fn estimate_rows(&self, inputs: &[f64]) -> f64 {
        inputs.iter().sum()
    }

    /// Whether statistics of the first input's columns hold for the output columns at the same positions.
    fn keeps_statistics(&self) -> bool {
        false
    }

    /// Whether at most one output row has given values in the columns for which `fixed` holds. `of_input` answers the
    /// same question for an input.
    fn is_unique(&self, _fixed: &dyn Fn(usize) -> bool, _of_input: IsUnique<'_>) -> bool {
        false
    }

    /// Whether the operator may raise an error of its own, apart from those of its expressions.
    fn may_fail(&self) -> bool {
        true
    }

    /// Whether an output row may stand for more than one row of an input, or depend on others. `FOR UPDATE` refuses
    /// such a query: it could not say which rows to lock.
    fn merges_rows(&self) -> bool {
        true
    }

    /// Computes a correlated subquery for all arguments at once: appends the columns of `domain` to each input that
    /// `spread` is called on, replaces references to the enclosing row by them, and returns the position of the
    /// domain's columns in the output.
    fn spread(
        &mut self,
        _domain: &Domain,
        _spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        Err(Error::unsupported("a correlated subquery of this form"))
    }
}

/// Whether at most one row of a plan has given values in the columns that the second argument selects.
pub type IsUnique<'f> = &'f dyn Fn(&Plan, &dyn Fn(usize) -> bool) -> bool;

/// The new position of each old output column; none for a column that is gone.
pub type ColumnMap = Vec<Option<usize>>;

/// How a node prunes the columns of an input.
pub struct Pruning {
    /// Keeps at least the needed columns, and returns where each went.
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

/// The arguments that a correlated subquery is computed for, as columns. After T. Neumann and A. Kemper, *Unnesting
/// Arbitrary Queries*, BTW 2015.
pub struct Domain {
    /// The frame of the enclosing row.
    pub frame: u32,
    /// The arguments of the frame that the subquery uses, ascending: one column each.
    pub used: Vec<usize>,
    /// The columns.
    pub fields: Vec<Field>,
}

/// What a trait object needs in order to be copied, compared and recognised. Every node has it.
pub trait DynamicNode: Any {
    /// A copy.
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
