//! How far a statement has got, for callers that wait for it. It is reported when the statement gives
//! way or waits for absent bytes, so a short one reports nothing, and only once something has asked.

use nacre_operator::Statistics;
use nacre_sql::{Plan, RowStatement, explain_row_nodes};
use nacre_table::Store;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows that the running statement of a connection has examined, and about how many it may examine.
#[derive(Default)]
pub struct Progress {
    /// Whether anything has asked since the statement began.
    is_wanted: AtomicBool,
    rows: AtomicU64,
    /// 0 if nothing was reported yet.
    total: AtomicU64,
}

impl Progress {
    /// Rows examined so far, and an estimate of all rows of the tables that the statement scans. It
    /// may examine fewer, because blocks are skipped, or more, because a table has grown or is read
    /// again. Both are 0 until the statement pauses after the first call.
    pub fn rows_and_total(&self) -> (u64, u64) {
        self.is_wanted.store(true, Ordering::Relaxed);
        (self.rows.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    pub(crate) fn reset(&self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.rows.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
    }
}

/// What a running statement reports its progress from, and to.
#[derive(Clone, Copy)]
pub(crate) struct Reporting<'a> {
    pub progress: &'a Progress,
    pub statistics: &'a Statistics,
    pub statement: &'a RowStatement,
    pub store: &'a Store,
}

impl Reporting<'_> {
    /// Reports how far the statement is, if that is wanted.
    pub fn report(&self) {
        if self.progress.is_wanted.load(Ordering::Relaxed) {
            self.report_wanted();
        }
    }

    /// Apart, because few pages need it.
    #[inline(never)]
    fn report_wanted(&self) {
        let Progress { rows, total, .. } = self.progress;
        rows.store(self.statistics.rows_read.get(), Ordering::Relaxed);
        if total.load(Ordering::Relaxed) == 0 {
            total.store(self.total().max(1), Ordering::Relaxed);
        }
    }

    fn total(&self) -> u64 {
        let rows_of = |node: Option<&Plan>| match node {
            Some(Plan::Scan { table, .. }) => {
                self.store.table_by_id(table.id).map_or(0, |table| table.row_count_estimate())
            }
            _ => 0,
        };
        explain_row_nodes(self.statement).into_iter().map(|(_, node)| rows_of(node)).sum()
    }
}
