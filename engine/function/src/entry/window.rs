//! The registry entry of a window function. Aggregates over a window have their own entries.

use super::definition::{Arguments, Arity};
use super::definition::{Binding, Operand};
use super::doc::Doc;
use nacre_column::Vector;
use nacre_types::{DataType, Result, Value};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A window function: everything that the binder, the executor and the reference need. Plans refer
/// to the entry itself.
pub struct WindowFunction {
    /// Its names in lower case; the first is the one `EXPLAIN` shows.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Number of arguments.
    pub arity: Arity,
    /// Types of the arguments and of the result.
    pub typing: WindowTyping,
    /// The result at one row.
    pub value: fn(&WindowRow<'_>) -> Result<Value>,
}

/// Converts the arguments of a call to the types that the function expects, and returns the result
/// type.
pub type WindowTyping = fn(&mut dyn Binding, Arguments<'_>) -> Result<(Vec<Operand>, DataType)>;

/// A row of a window. Positions count the sorted rows of all partitions.
pub struct WindowRow<'a> {
    /// The arguments, over all rows.
    pub args: &'a [Arc<Vector>],
    /// Position of the row.
    pub row: usize,
    /// Rows of its partition.
    pub partition: Range<usize>,
    /// The peers of the row, including itself.
    pub peers: Range<usize>,
    /// Dense rank in the partition, from 1.
    pub dense_rank: i64,
    /// Computes the rows of its frame.
    pub frame: &'a dyn Fn() -> Range<usize>,
}

impl WindowRow<'_> {
    /// An argument at this row; `None` if omitted.
    pub fn argument(&self, at: usize) -> Option<Value> {
        self.args.get(at).map(|arg| arg.value(self.row))
    }

    /// The first argument at another row.
    pub fn value_at(&self, row: usize) -> Value {
        self.args.first().map_or(Value::Null, |arg| arg.value(row))
    }

    /// Number of rows of the partition before this one.
    pub fn before(&self) -> usize {
        self.row - self.partition.start
    }
}

impl WindowFunction {
    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Types a call; `42883` for a wrong number of arguments.
    pub fn bind(
        &self,
        binding: &mut dyn Binding,
        arguments: Arguments<'_>,
    ) -> Result<(Vec<Operand>, DataType)> {
        self.arity.check(arguments.name, arguments.operands.len())?;
        (self.typing)(binding, arguments)
    }
}

impl PartialEq for WindowFunction {
    fn eq(&self, other: &WindowFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for WindowFunction {}

impl fmt::Debug for WindowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
