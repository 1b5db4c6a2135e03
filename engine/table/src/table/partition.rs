//! A partition of a table: a rowstore and the segments written from it.
//!
//! Every row of a table is in exactly one partition. Partitions are independent, so threads writing
//! to different partitions contend only for the log. The schema, the key encoding and the change
//! timestamps belong to the table.

use crate::index::hash::table::HashTable;
use crate::layout::key_filter;
use crate::layout::table_layout::TableLayout;
use crate::record::Place;
use crate::segments::state::SegmentState;
use crate::segments::sync::RwLock;
use crate::table::agenda::{Agenda, WORKS, Work};
use crate::table::segment_list::SegmentList;
use crate::visits;
use nacre_rowstore::{Key, Node, Rowstore};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, Timestamp, Value, invariant, limits};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// In place of a count: the last flush left no row that was locked or too new.
const NONE_LOCKED: u64 = u64::MAX;

/// What a flush leaves in a rowstore.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    /// Bytes of index entries.
    pub entries: usize,
    /// Rows that it has seen. The others came while it went on, or were too new.
    pub rows: usize,
}

/// One partition of a table.
pub struct Partition {
    number: u32,
    rowstore: Rowstore,
    segments: RwLock<Arc<SegmentList>>,
    /// Counter of hidden row numbers. A row number modulo the number of partitions is the number of
    /// its partition.
    next_row_number: AtomicU64,
    partitions: u64,
    /// Bytes that the last flush left in the rowstore because of locks or old snapshots.
    left_by_flush: AtomicUsize,
    /// The oldest snapshot when the rowstore was last collected.
    collected_at: AtomicU64,
    /// Counts locks of rows that were given back without a commit.
    released: AtomicU64,
    /// That count when the last flush began, if it left rows that were locked or too new.
    left_locked_at: AtomicU64,
    /// Indexed by [`Work`].
    work: [AtomicBool; WORKS],
    /// The agenda of its store, once its table is in the catalog, and what it is called there.
    agenda: OnceLock<(Arc<Agenda>, Place)>,
    /// Bytes of its rowstore that the agenda counts.
    counted: Mutex<usize>,
    /// Whether its table is in the catalog, or was. Before, another partition may have its place: a
    /// transaction that empties a table shares the place with the old rows until it commits.
    is_listed: AtomicBool,
    /// Whether its table was dropped or emptied.
    is_gone: AtomicBool,
}

impl Partition {
    /// Creates an empty partition of a table with this many partitions.
    pub(crate) fn new(number: u32, partitions: u32) -> Partition {
        invariant!(number < partitions, "partition {number} of {partitions}");
        Partition {
            number,
            rowstore: Rowstore::new(),
            segments: RwLock::new(Arc::default()),
            next_row_number: AtomicU64::new(1),
            partitions: partitions as u64,
            left_by_flush: AtomicUsize::new(0),
            collected_at: AtomicU64::new(0),
            released: AtomicU64::new(0),
            left_locked_at: AtomicU64::new(NONE_LOCKED),
            work: [const { AtomicBool::new(true) }; WORKS],
            agenda: OnceLock::new(),
            counted: Mutex::new(0),
            is_listed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Its number among the table's partitions, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// An estimate of the number of rows, which includes deleted versions in memory.
    pub fn row_count_estimate(&self) -> u64 {
        self.segments().live_rows() + self.rowstore.len() as u64
    }

    /// The rows in memory.
    pub(crate) fn rowstore(&self) -> &Rowstore {
        &self.rowstore
    }

    /// Number of nodes and bytes of the rowstore.
    pub fn rowstore_size(&self) -> (usize, usize) {
        (self.rowstore.len(), self.rowstore.bytes())
    }

    /// Visits the nodes of the rowstore in key order, a run at a time, without blocking writers.
    pub(crate) fn each_node(&self, visit: impl FnMut(&Arc<Node>)) {
        self.each_node_until(None, None, visit);
    }

    /// Like [`Partition::each_node`], but stops when a visit fails.
    pub(crate) fn try_each_node(&self, visit: impl FnMut(&Arc<Node>) -> Result<()>) -> Result<()> {
        self.visit_nodes(None, None, visit)
    }

    /// Like [`Partition::each_node`], for keys after `after` and up to `to`.
    pub(crate) fn each_node_until(
        &self,
        after: Option<&[u8]>,
        to: Option<&[u8]>,
        mut visit: impl FnMut(&Arc<Node>),
    ) {
        let visited = self.visit_nodes(after, to, |node| {
            visit(node);
            Ok(())
        });
        debug_assert!(visited.is_ok(), "a visit that cannot fail has failed");
    }

    fn visit_nodes(
        &self,
        after: Option<&[u8]>,
        to: Option<&[u8]>,
        mut visit: impl FnMut(&Arc<Node>) -> Result<()>,
    ) -> Result<()> {
        let mut after: Option<Key> = after.map(Into::into);
        let mut nodes = Vec::new();
        let is_in = |node: &&Arc<Node>| to.is_none_or(|to| &**node.key() <= to);
        loop {
            nodes.clear();
            self.rowstore.range_after(after.as_deref(), limits::BLOCK_ROWS, &mut nodes);
            let Some(last) = nodes.last() else { return Ok(()) };
            debug_assert!(
                after.as_ref().is_none_or(|after| nodes.iter().all(|node| node.key() > after)),
                "a node of partition {} is visited twice",
                self.number
            );
            debug_assert!(
                nodes.windows(2).all(|pair| pair[0].key() < pair[1].key()),
                "nodes of partition {} are out of order",
                self.number
            );
            nodes.iter().take_while(is_in).try_for_each(&mut visit)?;
            if !is_in(&last) {
                return Ok(());
            }
            after = Some(last.key().clone());
        }
    }

    /// All segments that some snapshot may see.
    pub fn segments(&self) -> Arc<SegmentList> {
        visits::add();
        self.segments.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the segment list. Must be called under the commit lock, or during recovery.
    pub(crate) fn update_segments(&self, change: impl FnOnce(&mut SegmentList)) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = (**segments).clone();
        change(&mut changed);
        *segments = Arc::new(changed);
        for work in [Work::Merge, Work::IndexParts, Work::HashTables] {
            self.consider(work);
        }
    }

    /// Changes the list of hash tables. Must be called under the commit lock, or during recovery.
    pub(crate) fn update_tables(&self, change: impl FnOnce(&mut Vec<Arc<HashTable>>)) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        let mut tables = segments.tables().to_vec();
        change(&mut tables);
        let mut changed = (**segments).clone();
        changed.set_tables(tables);
        *segments = Arc::new(changed);
        self.consider(Work::HashTables);
    }

    /// Notes its work on the agenda of a store from now on. `entries` counts bytes of index entries.
    pub(crate) fn enlist(&self, agenda: &Arc<Agenda>, place: Place, entries: impl Fn() -> usize) {
        debug_assert!(place.partition == self.number, "partition {} as {place:?}", self.number);
        let (known, _) = self.agenda.get_or_init(|| (agenda.clone(), place));
        invariant!(Arc::ptr_eq(known, agenda), "partition {} of two stores", self.number);
        for work in [Work::Merge, Work::IndexParts, Work::HashTables, Work::Deltas] {
            if self.may_need(work) {
                agenda.add(work, place);
            }
        }
        self.recount(entries);
    }

    /// Notes whether it has rows from now on: its table is in the catalog, so its place is no other
    /// partition's.
    pub(crate) fn take_place(&self) {
        let Some((agenda, place)) = self.agenda.get() else { return };
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(
            !self.is_gone.load(Ordering::SeqCst),
            "partition {} takes a place after it has left",
            self.number
        );
        self.is_listed.store(true, Ordering::SeqCst);
        agenda.set_filled(*place, *counted > 0);
    }

    /// Counts its rowstore no more, because its table was dropped or emptied.
    pub(crate) fn leave_agenda(&self) {
        // Set first: a transaction that recounts at the same time sees it, or is overwritten here.
        self.is_gone.store(true, Ordering::SeqCst);
        self.set_counted(|| 0);
    }

    /// Counts its rowstore after a change. `entries` counts bytes of index entries.
    pub(crate) fn recount(&self, entries: impl Fn() -> usize) {
        let Some((agenda, place)) = self.agenda.get() else { return };
        self.set_counted(|| self.rowstore.bytes() + entries());
        if self.is_gone.load(Ordering::SeqCst) {
            self.set_counted(|| 0);
        } else if self.is_large(agenda.flush_bytes_of(self.partitions), entries()) {
            agenda.add_large(*place);
        }
    }

    /// Bytes of its rowstore that the agenda counts.
    pub(crate) fn counted(&self) -> usize {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock spans all of it: once a thread has counted its writes, the sum has them.
    fn set_counted(&self, count: impl FnOnce() -> usize) {
        if let Some((agenda, place)) = self.agenda.get() {
            let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            let now = count();
            agenda.count(*counted, now);
            // Otherwise another partition that has its place may have rows.
            let has_place =
                self.is_listed.load(Ordering::SeqCst) && !self.is_gone.load(Ordering::SeqCst);
            if (*counted == 0) != (now == 0) && has_place {
                agenda.set_filled(*place, now > 0);
            }
            *counted = now;
        }
    }

    /// Whether the rowstore, with `entries` bytes of index entries, exceeds a limit.
    pub(crate) fn is_large(&self, limit: usize, entries: usize) -> bool {
        self.rowstore.bytes() + entries > limit
    }

    /// Tells the scheduler to look for this work.
    pub(crate) fn consider(&self, work: Work) {
        if !self.work[work as usize].swap(true, Ordering::AcqRel)
            && let Some((agenda, place)) = self.agenda.get()
            && !plant::is(Bug::LostWork)
        {
            agenda.add(work, *place);
        }
    }

    /// Whether there may be work of this kind.
    pub(crate) fn may_need(&self, work: Work) -> bool {
        visits::add();
        self.work[work as usize].load(Ordering::Acquire)
    }

    /// Like [`Partition::may_need`], and clears the flag because the caller looks for the work now.
    pub(crate) fn take_need(&self, work: Work) -> bool {
        visits::add();
        // In this order, work that comes up meanwhile is either looked for now, or noted again.
        if let Some((agenda, place)) = self.agenda.get() {
            agenda.remove(work, *place);
        }
        self.work[work as usize].swap(false, Ordering::AcqRel)
    }

    /// A segment by the number of its file.
    pub(crate) fn segment(&self, id: u64) -> Option<Arc<SegmentState>> {
        self.segments().segment(id).cloned()
    }

    /// Whether this state of a segment is in its list. That of a commit that failed is not.
    pub(crate) fn lists(&self, state: &Arc<SegmentState>) -> bool {
        let listed = self.segments().segment(state.id()).cloned();
        debug_assert!(
            listed.as_ref().is_none_or(|listed| listed.segment.rows() == state.segment.rows()),
            "segment {} is another one",
            state.id()
        );
        listed.is_some_and(|listed| Arc::ptr_eq(&listed, state))
    }

    /// Whether the rowstore, with `entries` bytes of index entries, exceeds the limit. After a
    /// flush that could not empty it, also requires that the size has doubled or that snapshots or
    /// locks that prevented the flush have ended.
    pub(crate) fn wants_flush(
        &self,
        limit: usize,
        entries: usize,
        oldest: impl Fn() -> Timestamp,
    ) -> bool {
        visits::add();
        let bytes = self.rowstore.bytes() + entries;
        let left = self.left_by_flush.load(Ordering::Relaxed);
        if bytes < left {
            // Rows left by the flush have been rolled back since.
            self.left_by_flush.fetch_min(bytes, Ordering::Relaxed);
        }
        self.is_large(limit, entries)
            && (bytes / 2 > left
                || oldest() > self.collected_at.load(Ordering::Relaxed)
                || self.has_released_since(self.left_locked_at.load(Ordering::Relaxed)))
    }

    fn has_released_since(&self, count: u64) -> bool {
        count != NONE_LOCKED && self.released() != count
    }

    /// How often locks of its rows were given back without a commit.
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Acquire)
    }

    /// Records that locks of its rows were given back without a commit, which would advance the
    /// oldest snapshot: a flush may have left the rows because of them.
    pub(crate) fn note_released(&self) {
        self.released.fetch_add(1, Ordering::Release);
    }

    /// Bytes added to the rowstore and its index entries (`entries` bytes) since the last flush.
    pub(crate) fn unflushed(&self, entries: usize) -> usize {
        visits::add();
        (self.rowstore.bytes() + entries).saturating_sub(self.left_by_flush.load(Ordering::Relaxed))
    }

    /// Records that a flush has collected the rowstore for this oldest snapshot, and what it left:
    /// also rows that were locked or too new if `locked_at` is the count of locks given back when it
    /// began.
    pub(crate) fn collected(&self, left: Left, oldest: Timestamp, locked_at: Option<u64>) {
        debug_assert!(
            locked_at.is_none_or(|count| count <= self.released()),
            "a flush began after {locked_at:?} locks were given back"
        );
        let (rows, bytes) = (self.rowstore.len().max(1), self.rowstore.bytes() + left.entries);
        let seen = bytes as f64 * left.rows.min(rows) as f64 / rows as f64;
        self.left_by_flush.store(seen as usize, Ordering::Relaxed);
        self.left_locked_at.store(locked_at.unwrap_or(NONE_LOCKED), Ordering::Relaxed);
        self.collected_at.fetch_max(oldest, Ordering::Relaxed);
    }

    /// The current segment location of a key's row, including commits that are not visible yet and
    /// segments of an unfinished bulk load.
    pub(crate) fn find_newest(
        &self,
        layout: &TableLayout,
        key: &[Value],
    ) -> Result<Option<(Arc<SegmentState>, u32)>> {
        debug_assert!(
            key.len() == layout.key_types().len(),
            "a key of {} values is looked up",
            key.len()
        );
        loop {
            let list = self.segments();
            let mut left_out = false;
            for candidate in list.of_key(layout, &layout.encode_key(key)?)?.newest_first() {
                let state = &list[candidate.place];
                if !state.is_current() {
                    left_out = true;
                } else if let Some(row) = candidate.find(layout, state, key)? {
                    if !state.is_deleted(row) {
                        return Ok(Some((state.clone(), row)));
                    }
                    left_out = true;
                }
            }
            // A merge may have moved the row to a segment that was not in the list, and deleted it
            // here.
            if !left_out || Arc::ptr_eq(&list, &self.segments()) {
                return Ok(None);
            }
        }
    }

    /// Adds a key filter to a segment about to be written if it is worth it. `besides` are new
    /// segments next to it, `leaving` the numbers of the segments it replaces. A segment that cannot
    /// be read, because its bytes are absent, counts as one that has every key: nothing waits for
    /// them.
    pub(crate) fn with_key_filter(
        &self,
        layout: &TableLayout,
        builder: SegmentBuilder,
        besides: &[&Segment],
        leaving: &[u64],
    ) -> SegmentBuilder {
        debug_assert!(
            besides.iter().all(|segment| !leaving.contains(&segment.id())),
            "a new segment is among those it replaces"
        );
        let (list, leaving) = (self.segments(), leaving.iter().collect::<Set<_>>());
        let stays =
            |state: &&Arc<SegmentState>| state.is_current() && !leaving.contains(&state.id());
        let met = |keys: &[Vec<Value>]| {
            let (mut unread, mut there) = (0, SortedMap::<usize, Vec<&[Value]>>::new());
            for key in keys {
                // Found by search: most segments are elsewhere.
                let encoded = layout.encode_wanted_key(key).unwrap_or_default();
                match list.with_key_prefix(layout, key, &encoded) {
                    Ok(places) => places
                        .iter()
                        .for_each(|place| there.or_insert_with(*place, Default::default).push(key)),
                    Err(_) => unread += 1,
                }
            }
            let there = there.into_iter().map(|(place, keys)| (&list[place], keys));
            let there = there.filter(|(state, _)| stays(state));
            let all = keys.iter().map(Vec::as_slice).collect::<Vec<_>>();
            let besides = besides.iter().map(|beside| (*beside, all.clone()));
            let others = there.map(|(state, keys)| (&*state.segment, keys)).chain(besides);
            unread + key_filter::count_in_ranges(layout, &others.collect::<Vec<_>>())
        };
        key_filter::with_key_filter(layout, builder, &met)
    }

    /// Reserves `count` hidden row numbers, spaced by the number of partitions.
    pub(crate) fn reserve_row_numbers(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let first = self.next_row_number.fetch_add(count, Ordering::Relaxed);
        invariant!(
            first.checked_add(count).and_then(|last| self.row_number(last)).is_some(),
            "hidden row numbers of partition {} are used up",
            self.number
        );
        debug_assert!(first > 0, "row numbers of partition {} begin anew", self.number);
        let (partitions, own) = (self.partitions, self.number as u64);
        (first..first + count).map(move |n| n * partitions + own)
    }

    /// The hidden row number at a position of the count; `None` if it is too large to be stored.
    fn row_number(&self, count: u64) -> Option<i64> {
        let number = count.checked_mul(self.partitions)?.checked_add(u64::from(self.number))?;
        i64::try_from(number).ok()
    }

    /// Whether a log may claim that `count` hidden row numbers were assigned: at least as many must be
    /// left.
    pub(crate) fn may_have_given_out(&self, count: u64) -> bool {
        count.checked_mul(2).and_then(|double| self.row_number(double)).is_some()
    }

    /// The number of hidden row numbers assigned, plus one.
    pub(crate) fn next_row_number(&self) -> u64 {
        self.next_row_number.load(Ordering::Relaxed)
    }

    /// Marks row numbers up to this count as used.
    pub(crate) fn saw_row_numbers(&self, count: u64) {
        debug_assert!(self.may_have_given_out(count), "{count} row numbers are in use");
        self.next_row_number.fetch_max(count + 1, Ordering::Relaxed);
    }

    /// Marks a row number as used. `corrupt` if this partition cannot have assigned it.
    pub(crate) fn saw_row_number(&self, number: i64) -> Result<()> {
        let count = u64::try_from(number).ok().map(|number| number / self.partitions);
        match count.filter(|count| {
            self.may_have_given_out(*count) && self.row_number(*count) == Some(number)
        }) {
            Some(count) => {
                self.saw_row_numbers(count);
                Ok(())
            }
            None => Err(Error::corrupt(format!(
                "{number} is not a row number of partition {}",
                self.number
            ))),
        }
    }
}
