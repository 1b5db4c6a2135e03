//! Segments that no longer belong to any table, and files of index parts and hash tables that were
//! replaced or whose index was dropped. They are removed once no snapshot needs them.

use crate::segments::state::SegmentState;
use nacre_segment::Segment;
use nacre_types::{Timestamp, invariant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Segments and files waiting to be removed.
#[derive(Default)]
pub(crate) struct Garbage {
    segments: Mutex<Vec<Arc<SegmentState>>>,
    /// Each with the commit that made it garbage.
    files: Mutex<Vec<(Timestamp, Arc<Segment>)>>,
}

/// Garbage that no snapshot needs any more.
pub(crate) struct Due {
    pub segments: Vec<Arc<SegmentState>>,
    pub files: Vec<Arc<Segment>>,
}

impl Garbage {
    /// Adds segments that a commit has dropped.
    pub fn add_segments(&self, segments: impl Iterator<Item = Arc<SegmentState>>) {
        let mut all = locked(&self.segments);
        let mut last = all.last().map_or(0, |state| state.dropped_at());
        for state in segments {
            invariant!(!state.is_current(), "segment {} is garbage but not dropped", state.id());
            debug_assert!(
                !all.iter().any(|known| Arc::ptr_eq(known, &state)),
                "segment {} is garbage twice",
                state.id()
            );
            // Else it was dropped without the commit lock.
            debug_assert!(
                last <= state.dropped_at(),
                "a segment dropped at {} is garbage after one dropped at {last}",
                state.dropped_at()
            );
            last = state.dropped_at();
            all.push(state);
        }
    }

    /// Adds files that a commit has replaced, or whose index it has dropped.
    pub fn add_files(&self, commit: Timestamp, files: impl Iterator<Item = Arc<Segment>>) {
        let mut all = locked(&self.files);
        debug_assert!(
            all.last().is_none_or(|(last, _)| *last <= commit),
            "files of commit {commit} are garbage after those of a later one"
        );
        all.extend(files.map(|file| (commit, file)));
    }

    /// Whether any garbage is unneeded by snapshots from `oldest` on.
    pub fn is_due(&self, oldest: Timestamp) -> bool {
        locked(&self.segments).iter().any(|state| state.dropped_at() <= oldest)
            || locked(&self.files).iter().any(|(commit, _)| *commit <= oldest)
    }

    /// Removes and returns what no snapshot from `oldest` on needs.
    pub fn take_due(&self, oldest: Timestamp) -> Due {
        let segments =
            locked(&self.segments).extract_if(.., |state| state.dropped_at() <= oldest).collect();
        let files: Vec<_> =
            locked(&self.files).extract_if(.., |(commit, _)| *commit <= oldest).collect();
        Due { segments, files: files.into_iter().map(|(_, file)| file).collect() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
