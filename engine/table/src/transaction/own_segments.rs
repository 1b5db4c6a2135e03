//! Segments with rows that a transaction has written and not committed. Only that transaction sees
//! them: it finds them beside the table's in each list that it reads.

use crate::record::RunPlace;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::hash::Map;
use nacre_types::{Result, TableId, Value, invariant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A segment of a transaction, which exists for it from the beginning.
pub(crate) struct OwnSegment {
    pub table: TableId,
    pub partition: u32,
    pub run: RunPlace,
    pub state: Arc<SegmentState>,
}

/// The list of a partition's segments, and that list with the transaction's own.
type Combined = (Arc<SegmentList>, Arc<SegmentList>);

/// The segments of a transaction.
#[derive(Default)]
pub(crate) struct OwnSegments {
    all: Vec<OwnSegment>,
    /// By table and partition, as last asked for.
    combined: Mutex<Map<(TableId, u32), Combined>>,
}

impl OwnSegments {
    fn combined(&self) -> MutexGuard<'_, Map<(TableId, u32), Combined>> {
        self.combined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the segments of an update.
    pub fn add(&mut self, new: Vec<OwnSegment>) {
        debug_assert!(new.iter().all(|new| !self.has(new.state.id())), "an update is added twice");
        self.all.extend(new);
        self.combined().clear();
    }

    /// Removes the segments of the update that was added last, of which there are this many.
    pub fn remove(&mut self, count: usize) {
        let kept = self.all.len().checked_sub(count);
        invariant!(
            kept.is_some(),
            "an update of {count} segments is undone, of {}",
            self.all.len()
        );
        self.all.truncate(kept.unwrap_or(0));
        self.combined().clear();
    }

    /// Forgets all of them: they are the table's now.
    pub fn clear(&mut self) {
        self.all.clear();
        self.combined().clear();
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a segment is one of them.
    pub fn has(&self, segment: u64) -> bool {
        self.all.iter().any(|own| own.state.id() == segment)
    }

    /// All of them.
    pub fn states(&self) -> Vec<Arc<SegmentState>> {
        self.all.iter().map(|own| own.state.clone()).collect()
    }

    /// One of them, by its number.
    pub fn segment(&self, segment: u64) -> Option<&Arc<SegmentState>> {
        self.all.iter().map(|own| &own.state).find(|state| state.id() == segment)
    }

    fn of<'a>(&'a self, table: &Table, partition: u32) -> impl Iterator<Item = &'a OwnSegment> {
        let table = table.id();
        self.all.iter().filter(move |own| own.table == table && own.partition == partition)
    }

    /// The segments of a partition, followed by those of the transaction.
    pub fn list(&self, table: &Table, partition: &Partition) -> Arc<SegmentList> {
        let listed = partition.segments();
        if self.of(table, partition.number()).next().is_none() {
            return listed;
        }
        let mut known = self.combined();
        let place = (table.id(), partition.number());
        if let Some((of, combined)) = known.get(&place)
            && Arc::ptr_eq(of, &listed)
        {
            return combined.clone();
        }
        let own = self.of(table, partition.number());
        let combined = listed.beside(own.map(|own| (own.run, vec![own.state.clone()])));
        debug_assert!(
            combined.len() == listed.len() + self.of(table, partition.number()).count(),
            "a segment of a transaction is not listed beside those of partition {}",
            partition.number()
        );
        let combined = Arc::new(combined);
        known.insert(place, (listed, combined.clone()));
        combined
    }

    /// The row with a key among those of the transaction that are not hidden.
    pub fn row(
        &self,
        table: &Table,
        partition: &Partition,
        key: &[Value],
        hides: &dyn Fn(u64, u32) -> bool,
    ) -> Result<Option<(Arc<SegmentState>, u32)>> {
        if self.of(table, partition.number()).next().is_none() {
            return Ok(None);
        }
        debug_assert!(
            key.len() == table.layout().key_types().len(),
            "a key of {} values is looked up",
            key.len()
        );
        let (list, layout) = (self.list(table, partition), table.layout());
        for candidate in list.of_key(layout, &layout.encode_key(key)?)?.newest_first() {
            let state = &list[candidate.place];
            if self.has(state.id())
                && let Some(row) = candidate.find(layout, state, key)?
                && !state.is_deleted(row)
                && !hides(state.id(), row)
            {
                return Ok(Some((state.clone(), row)));
            }
        }
        Ok(None)
    }
}
