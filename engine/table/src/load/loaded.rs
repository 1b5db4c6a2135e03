//! Segments written by a load, and the handling of duplicate keys.

use crate::load::loader::Loader;
use crate::segments::files::SegmentFiles;
use crate::segments::state::{FOREVER, SegmentState};
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::hash::Map;
use nacre_types::{Error, Result, Timestamp};
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

/// A row's place in the order of a load: the number of the group of files that were written
/// together, and its number among those rows.
pub(super) type Order = (usize, i64);

/// A segment of a load, and its rows that must not appear.
pub(super) struct Loaded {
    pub partition: u32,
    pub segment: Arc<Segment>,
    /// Rows that give way to others of the load.
    pub rejected: RoaringBitmap,
    /// Files of one round were written together, from rows that come after those of earlier rounds.
    pub round: usize,
    /// Numbers of rows in their round, of those that share a key with others of it.
    pub numbers: Map<u32, i64>,
}

/// A load whose files are complete.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub loader: &'a Loader,
    pub table: &'a Arc<Table>,
    pub on_duplicate: OnDuplicate,
    pub files: &'a [Loaded],
    /// Whether the load's own transaction deletes a row of a segment.
    pub leaving: Option<&'a Leaving<'a>>,
}

/// Whether a row of a segment is about to be deleted with the load. Fails if another transaction is
/// about to delete it.
pub(crate) type Leaving<'a> = dyn Fn(&SegmentState, u32) -> Result<bool> + Sync + 'a;

impl Loaded {
    /// A row's place in the order of the load, among rows that share a key.
    pub fn order_of(&self, row: u32) -> Order {
        (self.round, self.numbers.get(&row).copied().unwrap_or(0))
    }

    /// The segment as a member of the table from a commit on.
    pub fn state(&self, commit: Timestamp, files: &SegmentFiles) -> Arc<SegmentState> {
        debug_assert!(commit > 0 && commit < FOREVER, "a load at commit {commit}");
        let state = SegmentState::new(self.segment.clone(), commit, self.rejected.clone());
        Arc::new(state.with_content(commit).with_bitmaps(files.bitmaps()))
    }

    /// The segment as a member of the table for one transaction, from the beginning.
    pub fn own_state(&self) -> SegmentState {
        SegmentState::new(self.segment.clone(), 0, self.rejected.clone())
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
