//! The results of statements.

use nacre_column::Batch;
use nacre_operator::Statistics;
use nacre_sql::Field;

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// Returns columns and rows.
    Query,
    /// Inserted, updated or deleted rows.
    Write,
    /// Changed the schema.
    Ddl,
    /// Began or ended a transaction, set an option, or ran maintenance.
    Control,
}

/// Statistics of an executed statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementStatistics {
    /// Rows decoded from segments or read from the rowstore.
    pub rows_read: u64,
    /// Estimated bytes of the blocks read.
    pub bytes_read: u64,
    /// Segments of which at least one block was read.
    pub segments_read: u64,
    /// Segments ruled out by their metadata.
    pub segments_skipped: u64,
    /// Blocks read.
    pub blocks_read: u64,
    /// Blocks ruled out by their zone maps.
    pub blocks_skipped: u64,
    /// Rows found by primary key instead of scanning.
    pub point_reads: u64,
    /// Bytes written to temporary files because the rows exceeded the memory limit.
    pub bytes_spilled: u64,
    /// Microseconds from text to result; for a stream, only time spent in the engine.
    pub elapsed_us: u64,
}

impl StatementStatistics {
    /// The statistics counted so far.
    pub(crate) fn of(counted: &Statistics) -> StatementStatistics {
        StatementStatistics {
            rows_read: counted.rows_read.get(),
            bytes_read: counted.bytes_read.get(),
            segments_read: counted.segments_read.get(),
            segments_skipped: counted.segments_skipped.get(),
            blocks_read: counted.blocks_read.get(),
            blocks_skipped: counted.blocks_skipped.get(),
            point_reads: counted.point_reads.get(),
            bytes_spilled: counted.bytes_spilled.get(),
            elapsed_us: 0,
        }
    }
}

/// The result of one statement.
#[derive(Clone, Debug)]
pub struct StatementResult {
    /// The statement's kind.
    pub kind: ResultKind,
    /// Columns; empty unless it is a query.
    pub columns: Vec<Field>,
    /// Rows, in batches without a selection.
    pub batches: Vec<Batch>,
    /// Rows inserted, updated or deleted.
    pub rows_affected: u64,
    /// Statistics of the execution.
    pub statistics: StatementStatistics,
}

impl StatementResult {
    /// An empty result.
    pub fn new(kind: ResultKind) -> StatementResult {
        StatementResult {
            kind,
            columns: Vec::new(),
            batches: Vec::new(),
            rows_affected: 0,
            statistics: StatementStatistics::default(),
        }
    }

    /// The result of a statement that wrote rows.
    pub(crate) fn written(rows_affected: u64) -> StatementResult {
        StatementResult { rows_affected, ..StatementResult::new(ResultKind::Write) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|b| b.rows).sum()
    }
}
