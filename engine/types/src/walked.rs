//! Which paths of the engine are walked, for the simulation: it counts them, to show that its seeds
//! reach all of them, and asks which one a failing call is in.
//!
//! Only `tests/sim` enables the feature `walk`; no published build has it. Without it, every hook
//! compiles to nothing. Counts are those of the calling thread.

/// A path through the engine that few workloads take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Path {
    /// A session of the simulation runs, inside a call of another one or not.
    Session,
    /// A load writes files.
    Load,
    /// A load follows what is committed beside it.
    LoadRound,
    /// A load is published under the commit lock.
    LoadEnd,
    /// A load waits for a row lock.
    LoadBlocked,
    /// A load meets a row that was locked since it was begun.
    LoadMeets,
    /// A step of a flush.
    Flush,
    /// A step of a merge.
    Merge,
    /// A merge gives up a slice.
    MergeGivesUp,
    /// A step of a snapshot.
    Snapshot,
    /// A step of building an index part or a hash table.
    Build,
    /// Rows of a segment are deleted together.
    ManyDeleted,
    /// A row that is deleted together with others has left its segment.
    ManyFollowed,
    /// An update of many rows writes files.
    ManyUpdated,
    /// The new keys of such an update are compared.
    ManyRekeyed,
    /// A transaction that deletes rows together commits.
    ManyCommitted,
    /// A write waits because the rowstores are nearly full.
    WriteDelayed,
    /// A write is refused because the rowstores are full.
    WriteRefused,
    /// A transaction takes its snapshot.
    Begin,
}

/// All paths with their names.
pub const PATHS: [(&str, Path); 19] = [
    ("session", Path::Session),
    ("load", Path::Load),
    ("load-round", Path::LoadRound),
    ("load-end", Path::LoadEnd),
    ("load-blocked", Path::LoadBlocked),
    ("load-meets", Path::LoadMeets),
    ("flush", Path::Flush),
    ("merge", Path::Merge),
    ("merge-gives-up", Path::MergeGivesUp),
    ("snapshot", Path::Snapshot),
    ("build", Path::Build),
    ("many-deleted", Path::ManyDeleted),
    ("many-followed", Path::ManyFollowed),
    ("many-updated", Path::ManyUpdated),
    ("many-rekeyed", Path::ManyRekeyed),
    ("many-committed", Path::ManyCommitted),
    ("write-delayed", Path::WriteDelayed),
    ("write-refused", Path::WriteRefused),
    ("begin", Path::Begin),
];

/// Whether paths are counted.
pub const IS_COUNTED: bool = cfg!(feature = "walk");

/// Says that a path was walked.
#[inline(always)]
pub fn walk(path: Path) {
    #[cfg(feature = "walk")]
    counted::add(path);
    #[cfg(not(feature = "walk"))]
    let _ = path;
}

/// Says that a path is walked until the result is dropped.
#[inline(always)]
pub fn within(path: Path) -> Within {
    #[cfg(feature = "walk")]
    counted::enter(path);
    walk(path);
    Within(())
}

/// A path that is being walked.
#[must_use]
pub struct Within(());

#[cfg(feature = "walk")]
impl Drop for Within {
    fn drop(&mut self) {
        counted::leave();
    }
}

#[cfg(feature = "walk")]
pub use counted::{counts, current, reset};

#[cfg(feature = "walk")]
mod counted {
    use super::{PATHS, Path};
    use std::cell::RefCell;

    #[derive(Default)]
    struct Walked {
        counts: [u64; PATHS.len()],
        /// Innermost last.
        within: Vec<Path>,
    }

    thread_local! {
        static WALKED: RefCell<Walked> = RefCell::default();
    }

    pub(super) fn add(path: Path) {
        WALKED.with_borrow_mut(|walked| walked.counts[path as usize] += 1);
    }

    pub(super) fn enter(path: Path) {
        WALKED.with_borrow_mut(|walked| walked.within.push(path));
    }

    pub(super) fn leave() {
        WALKED.with_borrow_mut(|walked| {
            walked.within.pop();
        });
    }

    /// Forgets everything.
    pub fn reset() {
        WALKED.with_borrow_mut(|walked| *walked = Walked::default());
    }

    /// How often each of [`PATHS`] was walked since the last reset.
    pub fn counts() -> [u64; PATHS.len()] {
        WALKED.with_borrow(|walked| walked.counts)
    }

    /// The innermost path that is being walked.
    pub fn current() -> Option<Path> {
        WALKED.with_borrow(|walked| walked.within.last().copied())
    }
}

#[cfg(all(test, feature = "walk"))]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_own_place_and_is_counted() {
        for (at, (name, path)) in PATHS.into_iter().enumerate() {
            assert_eq!(path as usize, at, "{name}");
        }
        reset();
        walk(Path::Merge);
        let outer = within(Path::Flush);
        let inner = within(Path::Merge);
        assert_eq!(current(), Some(Path::Merge));
        drop(inner);
        assert_eq!(current(), Some(Path::Flush));
        drop(outer);
        assert_eq!((current(), counts()[Path::Merge as usize]), (None, 2));
    }
}
