//! What every operator is given while it runs, and the protocol operators speak.

use nacre_column::Batch;
use nacre_table::{RowLocator, Transaction};
use nacre_types::{Error, ErrorKind, Result, Value};
use std::cell::Cell;

/// What one statement did. Interior mutability: operators count through a shared reference.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Rows decoded from segments or read from the rowstore.
    pub rows_read: Cell<u64>,
    /// Estimated bytes of the blocks touched.
    pub bytes_read: Cell<u64>,
    /// Partitions ruled out by the shard key.
    pub partitions_skipped: Cell<u64>,
    /// Segments of which at least one block was read.
    pub segments_read: Cell<u64>,
    /// Segments ruled out by their metadata.
    pub segments_skipped: Cell<u64>,
    /// Blocks of which rows were looked at.
    pub blocks_read: Cell<u64>,
    /// Blocks ruled out by their zone maps.
    pub blocks_skipped: Cell<u64>,
    /// Rows looked up by primary key instead of scanning.
    pub point_reads: Cell<u64>,
}

/// Adds to a counter.
pub(crate) fn count(counter: &Cell<u64>, n: usize) {
    counter.set(counter.get() + n as u64);
}

/// The surroundings of a running statement.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The transaction whose snapshot is read.
    pub transaction: &'a Transaction,
    /// Parameter values, already cast to the types they were bound as.
    pub parameters: &'a [Value],
    /// Counters of this statement.
    pub statistics: &'a Statistics,
    /// Bytes one operator may hold.
    pub memory_limit: usize,
    /// The statement's `now()`, microseconds since 1970-01-01.
    pub now_us: i64,
    /// Whether the caller has cancelled the statement.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Context<'_> {
    /// Fails when the statement was cancelled; called once a batch.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if (self.cancelled)() { Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled")) } else { Ok(()) }
    }

    /// Fails when `operator` holds more than the limit.
    pub(crate) fn check_memory(&self, operator: &str, bytes: usize) -> Result<()> {
        if bytes <= self.memory_limit {
            return Ok(());
        }
        Err(Error::limit(format!("{operator} needs more than the memory limit of {} bytes", self.memory_limit))
            .with_sqlstate("53200")
            .with_hint("raise the memory limit or read fewer rows"))
    }
}

/// One answer of an operator. Operators pass on what they do not understand.
#[non_exhaustive]
pub enum Step {
    /// Some rows: at least one, at most `VECTOR_ROWS`.
    Batch(Batch),
    /// No more rows; further calls answer `Done` again.
    Done,
}

/// A pull operator. After anything but `Batch` or `Done` the same call can be repeated.
pub trait Operator {
    /// The next rows.
    fn next(&mut self, context: &Context<'_>) -> Result<Step>;
}

/// A scan that also says where each row lives, for `UPDATE` and `DELETE`.
pub trait LocatingOperator {
    /// The next rows, compact, with one locator a row; `None` at the end.
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>>;
}

/// The next batch of a child: `Some(batch)` or `None` at its end. Any other step returns from the
/// enclosing `next`, which must therefore be resumable at this point.
macro_rules! pull {
    ($child:expr, $context:expr) => {
        match $child.next($context)? {
            $crate::context::Step::Batch(batch) => Some(batch),
            $crate::context::Step::Done => None,
            #[allow(unreachable_patterns)]
            other => return Ok(other),
        }
    };
}
pub(crate) use pull;
