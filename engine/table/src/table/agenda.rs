//! What background work a store may have, by partition, and the size of its rowstores together.
//!
//! A change that may create work notes its partition here, so neither a commit nor a look for work
//! visits partitions without any: the cost of both is independent of the number of tables and
//! partitions. A place may be noted without need, or for a partition that is gone, but never
//! missing.

use crate::record::Place;
use nacre_types::TableId;
use nacre_types::sorted::SortedSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kinds of background work in a partition. A flag is set when a change may create work, and
/// cleared by the scheduler before it looks for the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// The segments changed and may be worth merging.
    Merge,
    /// Segments may lack index parts.
    IndexParts,
    /// Hash tables may have to be built or merged.
    HashTables,
    /// Delete bitmaps have deltas, which can be folded once no snapshot distinguishes them.
    Deltas,
}

/// All kinds of work.
pub(crate) const WORKS_ALL: [Work; WORKS] =
    [Work::Merge, Work::IndexParts, Work::HashTables, Work::Deltas];

/// Number of kinds of work.
pub(crate) const WORKS: usize = 4;

/// The agenda of one store.
pub(crate) struct Agenda {
    /// Limit for the rowstores of one table.
    flush_bytes: usize,
    /// Indexed by [`Work`].
    works: [Places; WORKS],
    /// Partitions whose rowstores exceeded their share of `flush_bytes` when they were last counted.
    large: Places,
    /// Partitions whose rowstores were not empty when they were last counted.
    filled: Places,
    /// Tables with older versions.
    altered: Mutex<SortedSet<TableId>>,
    /// Bytes of all rowstores.
    held: AtomicUsize,
}

#[derive(Default)]
struct Places {
    all: Mutex<SortedSet<Place>>,
    /// Length of `all`, to be read without the lock.
    count: AtomicUsize,
}

impl Places {
    fn change<T>(&self, change: impl FnOnce(&mut SortedSet<Place>) -> T) -> T {
        let mut all = locked(&self.all);
        let changed = change(&mut all);
        self.count.store(all.len(), Ordering::Release);
        changed
    }

    fn has(&self, place: Place) -> bool {
        locked(&self.all).contains(&place)
    }

    fn list(&self) -> Vec<Place> {
        match self.count.load(Ordering::Acquire) {
            0 => Vec::new(),
            _ => locked(&self.all).iter().copied().collect(),
        }
    }
}

impl Agenda {
    /// An agenda without work.
    pub fn new(flush_bytes: usize) -> Agenda {
        Agenda {
            flush_bytes,
            works: Default::default(),
            large: Places::default(),
            filled: Places::default(),
            altered: Mutex::default(),
            held: AtomicUsize::new(0),
        }
    }

    /// Notes that a partition may need work of a kind.
    pub fn add(&self, work: Work, place: Place) {
        self.works[work as usize].change(|all| all.insert(place));
    }

    /// Removes a partition that is gone, or whose work the caller looks for now.
    pub fn remove(&self, work: Work, place: Place) {
        self.works[work as usize].change(|all| all.remove(&place));
    }

    /// Whether a partition is noted for work of a kind.
    pub fn has(&self, work: Work, place: Place) -> bool {
        self.works[work as usize].has(place)
    }

    /// Whether a rowstore is noted as large.
    pub fn is_large(&self, place: Place) -> bool {
        self.large.has(place)
    }

    /// Partitions with rows in memory, ascending.
    pub fn filled(&self) -> Vec<Place> {
        let places = self.filled.list();
        debug_assert!(places.is_sorted(), "partitions with rows are out of order");
        places
    }

    /// Partitions that may need work of a kind, ascending.
    pub fn places(&self, work: Work) -> Vec<Place> {
        let places = self.works[work as usize].list();
        debug_assert!(places.is_sorted(), "partitions that may need {work:?} are out of order");
        places
    }

    /// Whether some partition may need work that changes its files.
    pub fn has_work(&self) -> bool {
        let works = [Work::Merge, Work::IndexParts, Work::HashTables];
        works.iter().any(|work| self.works[*work as usize].count.load(Ordering::Acquire) > 0)
    }

    /// The size from which on one of a table's partitions is to be flushed.
    pub fn flush_bytes_of(&self, partitions: u64) -> usize {
        debug_assert!(partitions > 0, "a table without partitions");
        self.flush_bytes / usize::try_from(partitions).unwrap_or(usize::MAX).max(1)
    }

    /// Notes whether a rowstore has rows.
    pub fn set_filled(&self, place: Place, is_filled: bool) {
        self.filled.change(|all| {
            match is_filled {
                true => all.insert(place),
                false => all.remove(&place),
            };
            debug_assert!(all.contains(&place) == is_filled, "{place:?} is noted otherwise");
        });
    }

    /// Replaces the bytes of a rowstore in the sum.
    pub fn count(&self, before: usize, now: usize) {
        // A difference below zero wraps, and the sum wraps back.
        self.held.fetch_add(now.wrapping_sub(before), Ordering::AcqRel);
    }

    /// Bytes of all rowstores with their index entries, as they were last counted.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Notes that a rowstore is large.
    pub fn add_large(&self, place: Place) {
        self.large.change(|all| all.insert(place));
    }

    /// Removes a partition that is gone, or that the caller counts now.
    pub fn remove_large(&self, place: Place) {
        self.large.change(|all| all.remove(&place));
    }

    /// Partitions whose rowstores may be large, ascending.
    pub fn large(&self) -> Vec<Place> {
        self.large.list()
    }

    /// Notes that a table has an older version.
    pub fn add_altered(&self, table: TableId) {
        locked(&self.altered).insert(table);
    }

    /// Takes the tables that may have older versions.
    pub fn take_altered(&self) -> SortedSet<TableId> {
        std::mem::take(&mut *locked(&self.altered))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
