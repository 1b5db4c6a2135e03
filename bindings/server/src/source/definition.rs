//! What every format of file provides, and the options and columns they share.

use nacredb::{Batch, DataType, Result, TableSchema};
use std::sync::Arc;

/// Number of rows per batch.
pub const BATCH_ROWS: usize = 8192;

/// A column of a table that is created from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileColumn {
    pub name: String,
    pub data_type: DataType,
}

/// Progress callback, called with the units of work done (of [`Source::total`]) and the number of
/// rows.
pub type Tick<'a> = &'a dyn Fn(u64, u64);

/// A file being read.
pub trait Source {
    /// Returns the columns of a table that can hold the file. May read the whole file.
    fn describe(&mut self, tick: Tick<'_>) -> Result<Vec<FileColumn>>;
    /// Sets the table that the rows are for. A column of the file that the table lacks is an error;
    /// a column that the file lacks takes its default.
    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()>;
    /// Returns the next rows, with all columns in table order, or `None` at the end. Requires
    /// [`Source::bind`].
    fn next(&mut self) -> Result<Option<Batch>>;
    /// Returns the total units of work, in bytes or rows.
    fn total(&self) -> u64;
    /// Returns the units of work done by [`Source::next`].
    fn done(&self) -> u64;
}

/// Options for text files.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Whether the first line is data.
    pub no_header: bool,
    /// Text that means null in an unquoted field, besides the empty text.
    pub null: Option<String>,
}
