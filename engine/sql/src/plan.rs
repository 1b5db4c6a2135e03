//! Logical plans: typed, resolved, position-based. Every node's output columns are known from the
//! plan alone ([`Plan::schema`]).

use crate::expr::{Aggregate, Expr};
use nacre_types::{DataType, TableSchema, ViewSchema};
use std::sync::Arc;

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

/// Join kinds. The output is left columns then right columns, but for semi and anti joins: left only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
}

/// A setting of a session, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOption {
    /// How many threads may work on one statement; 0 for the default.
    Threads(u32),
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

/// A call of a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// Which.
    pub function: WindowFunction,
    /// Arguments over the input row; those of an aggregate are its own.
    pub args: Vec<Expr>,
    /// Rows it looks at, where that matters.
    pub frame: Frame,
    /// Result type.
    pub data_type: DataType,
}

/// Window functions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// `(value[, offset[, default]])`, as is `Lead`.
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    /// An aggregate over the frame.
    Aggregate(Box<crate::expr::Aggregate>),
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// Where a frame starts or ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Start of the partition.
    UnboundedPreceding,
    /// So many rows or groups before; of `Range` the key to reach, over the input row.
    Preceding(Expr),
    /// The row, or with `Range` and `Groups` its peers.
    CurrentRow,
    /// So many rows or groups after; of `Range` the key to reach.
    Following(Expr),
    /// End of the partition.
    UnboundedFollowing,
}

impl Bound {
    /// A later bound has a larger rank.
    pub fn rank(&self) -> u8 {
        match self {
            Bound::UnboundedPreceding => 0,
            Bound::Preceding(_) => 1,
            Bound::CurrentRow => 2,
            Bound::Following(_) => 3,
            Bound::UnboundedFollowing => 4,
        }
    }
}

/// The rows around a row that a window function looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What the bounds count.
    pub unit: FrameUnit,
    /// First row.
    pub start: Bound,
    /// Last row.
    pub end: Bound,
}

impl Default for Frame {
    /// From the start of the partition to the last peer of the row; without an order that is all of it.
    fn default() -> Frame {
        Frame { unit: FrameUnit::Range, start: Bound::UnboundedPreceding, end: Bound::CurrentRow }
    }
}

impl WindowFunction {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Ntile => "ntile",
            WindowFunction::Lag => "lag",
            WindowFunction::Lead => "lead",
            WindowFunction::FirstValue => "first_value",
            WindowFunction::LastValue => "last_value",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::Aggregate(aggregate) => crate::explain::aggregate_name(aggregate.function),
        }
    }
}

impl WindowCall {
    /// Calls `f` on each of its expressions.
    pub fn for_each_expr<'c>(&'c self, f: &mut dyn FnMut(&'c Expr)) {
        self.args.iter().for_each(&mut *f);
        if let WindowFunction::Aggregate(aggregate) = &self.function {
            aggregate.arg.iter().chain(&aggregate.filter).for_each(&mut *f);
        }
        for bound in [&self.frame.start, &self.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                f(e);
            }
        }
    }

    /// Calls `f` on each of its expressions, mutably.
    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *f);
        if let WindowFunction::Aggregate(aggregate) = &mut self.function {
            aggregate.arg.iter_mut().chain(&mut aggregate.filter).for_each(&mut *f);
        }
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                f(e);
            }
        }
    }
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
}

impl Plan {
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
            | Plan::Window { fields, .. } => fields.clone(),
            Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => input.fields(),
            Plan::Join { left, right, kind, .. } => {
                let mut fields = left.fields();
                if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                    return fields;
                }
                let mut others = right.fields();
                if matches!(kind, JoinKind::Right | JoinKind::Full) {
                    fields.iter_mut().for_each(|f| f.nullable = true);
                }
                if matches!(kind, JoinKind::Left | JoinKind::Full) {
                    others.iter_mut().for_each(|f| f.nullable = true);
                }
                fields.append(&mut others);
                fields
            }
        }
    }
}

/// What an insert does with a row whose primary key is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDuplicateKey {
    /// `INSERT IGNORE`, `ON CONFLICT DO NOTHING`: leaves the old row.
    Ignore,
    /// `REPLACE`: the new row takes its place.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`, `ON CONFLICT DO UPDATE`: changes the old row. Expressions see the old row's columns,
    /// then the new one's.
    Update {
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
        /// Only when it is true.
        filter: Option<Expr>,
    },
}

/// A bound statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Returns rows.
    Query(Plan),
    /// `INSERT`: `source` yields the table's columns in table order, already cast, with defaults filled in.
    Insert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
    },
    /// `UPDATE`: `input` scans the target (all columns in table order); `assignments` are over that row.
    Update {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to update.
        input: Plan,
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
    },
    /// `DELETE`: `input` scans the target (all columns in table order).
    Delete {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to delete.
        input: Plan,
    },
    /// `SELECT … FOR UPDATE`: locks every row of `input`, then returns the rows of `output`.
    Lock {
        /// Table whose rows are locked.
        table: Arc<TableSchema>,
        /// Rows to lock: scans the table (all columns in table order) under the query's `WHERE`.
        input: Plan,
        /// The query itself, over the same rows.
        output: Plan,
    },
    /// `CREATE TABLE`. The schema's id is zero; the catalog assigns it.
    CreateTable {
        /// New table.
        schema: TableSchema,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `CREATE TABLE … AS`: makes the table, then inserts the rows.
    CreateTableAs {
        /// New table.
        schema: TableSchema,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Its rows, in its column types.
        source: Plan,
    },
    /// `CREATE VIEW`.
    CreateView {
        /// New view.
        view: ViewSchema,
        /// `OR REPLACE`.
        replace: bool,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `DROP VIEW`.
    DropView {
        /// Names as written.
        names: Vec<String>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// An insert that says what becomes of a row whose primary key is taken: rows as of `Insert`, one after the
    /// other, so that a later row meets what an earlier one left.
    Upsert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
        /// What to do when the key is taken.
        on_duplicate: OnDuplicateKey,
    },
    /// `DROP TABLE`.
    DropTable {
        /// Names as written.
        names: Vec<String>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `ALTER TABLE`.
    AlterTable {
        /// The table as it was when the statement was bound.
        table: Arc<TableSchema>,
        /// What it is to become. Columns are told by their ids; the storage counts the version on.
        changed: TableSchema,
    },
    /// `TRUNCATE TABLE`.
    Truncate {
        /// Tables that lose all their rows.
        tables: Vec<Arc<TableSchema>>,
    },
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `SET`.
    Set(SessionOption),
    /// `EXPLAIN`.
    Explain(Box<Statement>),
    /// `OPTIMIZE TABLE t [FLUSH | FULL]`: `FLUSH` moves the rowstore's rows to a segment.
    Optimize {
        /// Table.
        table: Arc<TableSchema>,
        /// `FULL`: also merge all segments into one sorted run.
        full: bool,
    },
    /// `SHOW TABLES`, `DESCRIBE t` and the like are bound to `Query(Values …)` by the binder.
    Nothing,
}

/// What the binder needs to know about the database: schemas, not storage.
pub trait Catalog {
    /// A table by name, without regard to ASCII case.
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;
    /// A view by name, without regard to ASCII case.
    fn view(&self, _name: &str) -> Option<Arc<ViewSchema>> {
        None
    }
    /// Names of all views.
    fn view_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Names of all tables, for suggestions and `SHOW TABLES`.
    fn table_names(&self) -> Vec<String>;
    /// About how many rows a table has, for join order and build sides.
    fn row_count(&self, table: &TableSchema) -> u64;
}
