//! Segments written by a load, and the handling of duplicate keys.

use crate::segments::files::SegmentFiles;
use crate::segments::state::{FOREVER, SegmentState};
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::{Error, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// What to do with a key that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Fail; nothing is loaded.
    Error,
    /// Keep the row that is there.
    Skip,
    /// Replace it. Of one key twice in the load, the later row wins.
    Replace,
}

/// A segment of a load, and its rows that must not appear.
pub(super) struct Loaded {
    pub partition: u32,
    pub segment: Arc<Segment>,
    pub rejected: RoaringBitmap,
}

impl Loaded {
    /// Number of rows that appear.
    pub fn live_rows(&self) -> u64 {
        let (rows, rejected) = (self.segment.rows() as u64, self.rejected.len());
        invariant!(rejected <= rows, "{rejected} of {rows} loaded rows are rejected");
        rows - rejected
    }

    /// The segment as a member of the table from a commit on.
    pub fn state(&self, commit: Timestamp, files: &SegmentFiles) -> Arc<SegmentState> {
        debug_assert!(commit > 0 && commit < FOREVER, "a load at commit {commit}");
        let state = SegmentState::new(self.segment.clone(), commit, self.rejected.clone());
        Arc::new(state.with_content(commit).with_bitmaps(files.bitmaps()))
    }

    /// The segment as if it were a member of the table, to look keys up in it.
    pub fn unlisted_state(&self) -> SegmentState {
        SegmentState::new(self.segment.clone(), FOREVER, self.rejected.clone())
    }
}

/// The error for a key whose lock another transaction holds.
pub(super) fn held_by_another(table: &Table) -> Error {
    Error::conflict(format!(
        "a key of the load is locked by another transaction in table {}",
        table.schema().name
    ))
}
