//! Builds hash tables, and bounds their number and their dead entries, in steps of background work.
//!
//! Hash tables are built only where they pay off: where key ranges overlap so much that a key would
//! be searched for in many segments ([`StoreOptions::hash_from`](crate::StoreOptions::hash_from)),
//! and only for large segments. Small segments are about to be merged, and few.
//!
//! Work is done in this order: a table with half of its segments gone is rewritten, or dropped if
//! all are; tables of one size class are merged into one; a segment without a table gets one. Each
//! task is a state machine whose steps read or write a few blocks. Files are synced before the
//! record that names them, and the same record drops the tables they replace, so a crash leaves
//! either the old tables or the new one. A file left behind is an orphan.

use crate::catalog::tables::discard_tables;
use crate::index::directory::Directory;
use crate::index::hash::reader::{KeyPlace, SegmentKeys, TableReader};
use crate::index::hash::table::{HASH, HashTable, file_builder};
use crate::maintenance::context::{Progress, TaskContext};
use crate::record::{self, Description, KeySet, Place};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::hash::Set;
use nacre_types::walked::{self, Path};
use nacre_types::{DataType, Result, invariant, key, limits};
use std::sync::Arc;

/// Tables of one size class to merge into one.
const FAN_IN: usize = 4;
// A merge of one table would make one of the same size class.
const _: () = assert!(FAN_IN > 1);
/// Approximate number of blocks to read per step.
const READ_BLOCKS: usize = 8;
/// Maximum rows of a file, in multiples of a segment's.
const FILE_SEGMENTS: usize = 16;

/// A hash table being built.
pub(crate) struct HashBuild {
    table: Arc<Table>,
    partition: u32,
    keys: KeySet,
    /// The tables to replace.
    old: Vec<Arc<HashTable>>,
    /// The segment the table is built from, if any.
    state: Option<Arc<SegmentState>>,
    /// The segments covered; empty if the old tables are only dropped.
    segments: Vec<u64>,
    source: Source,
    builder: SegmentBuilder,
    files: NewFiles,
    /// Entries read so far, which the files must have.
    entries: usize,
    /// The greatest hash of them.
    last: i64,
    /// Whether the whole source is read.
    read: bool,
}

/// The source of a hash table's entries.
enum Source {
    Segment(Box<SegmentKeys>),
    Tables(Vec<TableReader>),
}

/// Starts the next hash table task of a partition. The caller has taken this work off the agenda,
/// and there it is not after an error.
pub(crate) fn start(
    context: &TaskContext,
    table: &Arc<Table>,
    partition: &Partition,
) -> Result<Option<HashBuild>> {
    let list = partition.segments();
    let sets = table.indexes().iter().map(|index| KeySet::Index(index.id()));
    for keys in std::iter::once(KeySet::Primary).chain(sets) {
        let build = HashBuild { keys, partition: partition.number(), ..HashBuild::new(table) };
        if let Some(build) = next(context, build, &list)? {
            // More tasks may follow.
            partition.consider(Work::HashTables);
            return Ok(Some(build));
        }
    }
    Ok(None)
}

/// The segments of a list that no commit has dropped.
fn current_of(list: &SegmentList) -> Set<u64> {
    list.iter().filter(|state| state.is_current()).map(|state| state.id()).collect()
}

/// Tables of one set of keys to replace by one: half of the segments of one are gone, or enough of
/// them have about the same size.
fn to_merge(tables: &[Arc<HashTable>], current: &Set<u64>) -> Option<Vec<Arc<HashTable>>> {
    let live =
        |table: &HashTable| table.segments().iter().filter(|id| current.contains(id)).count();
    if let Some(dead) = tables.iter().find(|table| live(table) * 2 <= table.segments().len()) {
        return Some(vec![dead.clone()]);
    }
    let class = |table: &HashTable| (table.len() / limits::BLOCK_ROWS).max(1).ilog2() / 2;
    let alike = |table: &Arc<HashTable>| -> Vec<_> {
        tables.iter().filter(|other| class(other) == class(table)).cloned().collect()
    };
    debug_assert!(
        tables.windows(2).all(|pair| pair[0].keys() == pair[1].keys()),
        "hash tables of different keys are compared"
    );
    tables.iter().map(alike).find(|members| members.len() >= FAN_IN)
}

/// Whether hash tables of a partition are to be merged. Reads no files.
pub(crate) fn has_tables_to_merge(table: &Table, list: &SegmentList) -> bool {
    let current = current_of(list);
    let sets = table.indexes().iter().map(|index| KeySet::Index(index.id()));
    std::iter::once(KeySet::Primary).chain(sets).any(|keys| {
        let tables: Vec<Arc<HashTable>> = list.tables_of(keys).cloned().collect();
        to_merge(&tables, &current).is_some()
    })
}

/// The next task for one set of keys.
fn next(context: &TaskContext, build: HashBuild, list: &SegmentList) -> Result<Option<HashBuild>> {
    let tables: Vec<Arc<HashTable>> = list.tables_of(build.keys).cloned().collect();
    let current = current_of(list);
    if let Some(old) = to_merge(&tables, &current) {
        return Ok(Some(build.of_tables(old, &current)));
    }
    // Segments that are not visible yet must wait: their commit may still fail.
    let visible = context.snapshots().visible();
    let full = context.options().segment_rows / 2;
    let is_big = |state: &&Arc<SegmentState>| state.is_current() && state.segment.rows() >= full;
    let big: Vec<Arc<SegmentState>> = list.iter().filter(is_big).cloned().collect();
    let covered: Set<u64> = tables.iter().flat_map(|table| table.segments()).copied().collect();
    let mut uncovered = big.iter().filter(|state| !covered.contains(&state.id()));
    let Some(next) = uncovered.next() else { return Ok(None) };
    if !next.exists_at(visible) {
        build.partition().consider(Work::HashTables);
        return Ok(None);
    }
    // A key by which runs are ordered is in about one segment of each: no footer need be read.
    let is_in_order =
        build.keys == KeySet::Primary && build.table.layout().sort_columns().is_none();
    if is_in_order && (list.runs().len() as f64) < context.options().hash_from {
        return Ok(None);
    }
    let directory = match build.keys {
        KeySet::Primary => Directory::of_primary_key(build.table.layout(), &big, None),
        KeySet::Index(id) => Directory::of_index(build.table.index(id)?, &big, None),
    };
    if directory.depth() < context.options().hash_from {
        return Ok(None);
    }
    // A segment without an index part is considered again once it has one.
    let Some(place) = KeyPlace::find(build.table.layout(), build.keys, next)? else {
        return Ok(None);
    };
    Ok(Some(HashBuild {
        segments: vec![next.id()],
        state: Some(next.clone()),
        source: Source::Segment(Box::new(SegmentKeys::new(place))),
        ..build
    }))
}

impl HashBuild {
    fn new(table: &Arc<Table>) -> HashBuild {
        HashBuild {
            table: table.clone(),
            partition: 0,
            keys: KeySet::Primary,
            old: Vec::new(),
            state: None,
            segments: Vec::new(),
            source: Source::Tables(Vec::new()),
            builder: file_builder(),
            files: NewFiles::default(),
            entries: 0,
            last: i64::MIN,
            read: false,
        }
    }

    /// Starts one table to replace several, without the segments that are gone.
    fn of_tables(self, old: Vec<Arc<HashTable>>, current: &Set<u64>) -> HashBuild {
        invariant!(
            old.iter().all(|table| table.keys() == self.keys),
            "hash tables of different keys are merged"
        );
        let mut segments = Vec::new();
        let mut number = |id: &u64| {
            current.contains(id).then(|| {
                segments.push(*id);
                segments.len() - 1
            })
        };
        let reader = |table: &Arc<HashTable>| {
            let numbers = table.segments().iter().map(&mut number).collect();
            TableReader::new(table.clone(), numbers)
        };
        let readers = old.iter().map(reader).collect();
        let read = segments.is_empty();
        HashBuild { old, segments, source: Source::Tables(readers), read, ..self }
    }

    fn partition(&self) -> &Partition {
        self.table.partition(self.partition)
    }

    /// The partition of its segments.
    pub fn place(&self) -> Place {
        self.table.place(self.partition())
    }

    /// Does a bounded amount of work. Can be called again after a read of absent bytes; after any
    /// other error the build must be abandoned.
    pub fn step(&mut self, context: &TaskContext) -> Result<Progress> {
        let _within = walked::within(Path::Build);
        if !self.is_wanted(context) {
            self.abandon(context);
            return Ok(Progress::Done);
        }
        if self.files.step(context.files())? {
            return Ok(Progress::More);
        }
        if !self.read {
            self.read_some(context)?;
            return Ok(Progress::More);
        }
        self.commit(context)?;
        debug_assert!(self.files.is_empty(), "a hash table build ends with files of its own");
        Ok(Progress::Done)
    }

    /// Removes the files written so far.
    pub fn abandon(&mut self, context: &TaskContext) {
        self.files.abandon(context.files());
        self.partition().consider(Work::HashTables);
    }

    /// Whether the table still has the keys, the tables to replace, and the segment.
    fn is_wanted(&self, context: &TaskContext) -> bool {
        let Ok(newest) = context.catalog().newest(&self.table) else { return false };
        let has_keys = match self.keys {
            KeySet::Primary => true,
            KeySet::Index(id) => newest.has_index(id),
        };
        let list = self.partition().segments();
        let has = |old: &Arc<HashTable>| list.tables().iter().any(|table| Arc::ptr_eq(table, old));
        newest.shares_partitions(&self.table)
            && has_keys
            && self.old.iter().all(has)
            && self.state.as_ref().is_none_or(|state| state.is_current())
    }

    fn read_some(&mut self, context: &TaskContext) -> Result<()> {
        let rows = context
            .options()
            .segment_rows
            .saturating_mul(FILE_SEGMENTS)
            .min(limits::MAX_SEGMENT_ROWS);
        let most = rows.saturating_sub(self.builder.rows()).min(READ_BLOCKS * limits::BLOCK_ROWS);
        debug_assert!(most > 0, "a full file of a hash table takes more entries");
        let (mut hashes, mut places) = (Vec::new(), Vec::new());
        let is_end = match &mut self.source {
            Source::Segment(keys) if !keys.is_read() => {
                for _ in 0..READ_BLOCKS {
                    if !keys.is_read() {
                        keys.read_block()?;
                    }
                }
                return Ok(());
            }
            Source::Segment(keys) => {
                // The last share may exceed the room left in a file, but all shares together have
                // at most one entry per row of a segment.
                let mut is_end = false;
                while !is_end && hashes.len() < most {
                    is_end = !keys.take(&mut hashes, &mut places);
                }
                Ok(is_end)
            }
            Source::Tables(readers) => merge_some(readers, most, &mut hashes, &mut places),
        };
        // Entries taken before a read fails are not there a second time.
        self.push(hashes, places);
        let is_end = is_end?;
        if self.builder.rows() >= rows || is_end {
            self.begin_writing(context, is_end)?;
        }
        self.read = is_end;
        Ok(())
    }

    fn push(&mut self, hashes: Vec<i64>, places: Vec<i64>) {
        invariant!(
            hashes.len() == places.len(),
            "{} hashes and {} places of a hash table",
            hashes.len(),
            places.len()
        );
        let first = hashes.first().copied().unwrap_or(self.last);
        debug_assert!(hashes.is_sorted(), "hashes of a hash table are out of order");
        debug_assert!(self.last <= first, "hash {first} comes after {}", self.last);
        self.last = hashes.last().copied().unwrap_or(self.last);
        self.entries += hashes.len();
        let rows = hashes.len();
        let column = |values| Arc::new(Vector::new(DataType::Int64, Values::I64(values), None));
        self.builder.push(&Batch::new(vec![column(hashes), column(places)], rows));
        debug_assert!(
            self.builder.rows() <= limits::MAX_SEGMENT_ROWS,
            "a file of a hash table has {} entries",
            self.builder.rows()
        );
    }

    /// Writes the rows collected so far as a file. A table has at least one file, to provide its
    /// id.
    fn begin_writing(&mut self, context: &TaskContext, is_end: bool) -> Result<()> {
        if self.builder.rows() > 0 || (is_end && self.files.complete().is_empty()) {
            let full = std::mem::replace(&mut self.builder, file_builder());
            self.files.begin(context.files(), full, FileKind::Hashes, self.table.id())?;
        }
        Ok(())
    }

    /// Appends and applies the record, unless something it refers to is gone.
    fn commit(&mut self, context: &TaskContext) -> Result<()> {
        self.check_entries();
        let made = match self.segments.is_empty() {
            true => None,
            false => Some(Arc::new(HashTable::new(
                self.keys,
                self.files.complete().to_vec(),
                self.segments.clone(),
            )?)),
        };
        let mut turn = context.commits().lock();
        if !self.is_wanted(context) {
            drop(turn);
            self.abandon(context);
            return Ok(());
        }
        let mut payload = record::begin(turn.next());
        let dropped: Vec<u64> = self.old.iter().map(|table| table.id()).collect();
        let place = self.table.place(self.partition());
        let added = made.as_ref().map(|table| table.as_logged());
        record::set_tables(&mut payload, place, &dropped, added.as_ref());
        for file in made.iter().flat_map(|table| table.files()) {
            record::describe(&mut payload, place, &Description::of(FileKind::Hashes, file));
        }
        let committed = turn.append(&payload)?;
        self.partition().update_tables(|tables| {
            tables.retain(|table| !self.old.iter().any(|old| Arc::ptr_eq(old, table)));
            tables.extend(made);
        });
        discard_tables(context.garbage(), &self.old, committed.commit);
        // The log may name the files from here on, even if the sync fails.
        self.files.are_named(context.files());
        drop(turn);
        context.commits().settle_strictly(committed)
    }

    /// The files have each entry once: a key without its entry would not be found.
    fn check_entries(&self) {
        debug_assert!(
            self.state.is_none() || self.old.is_empty(),
            "a hash table of a segment replaces others"
        );
        let files = self.files.complete();
        let written: usize = files.iter().map(|file| file.rows()).sum();
        invariant!(
            written == self.entries && files.is_empty() == self.segments.is_empty(),
            "a hash table of {} entries has {written} in {} files",
            self.entries,
            files.len()
        );
        let ends = |file: &Segment| {
            let columns = file.columns().ok()?;
            Some((key::integer(&columns[HASH].min)?, key::integer(&columns[HASH].max)?))
        };
        let in_order = |a: &Segment, b: &Segment| {
            ends(a).zip(ends(b)).is_none_or(|((_, end), (start, _))| end <= start)
        };
        debug_assert!(
            files.windows(2).all(|pair| in_order(&pair[0], &pair[1])),
            "files of a hash table are out of order"
        );
        debug_assert!(
            self.state.as_ref().is_none_or(|state| self.entries <= state.segment.rows()),
            "{} entries of a segment with fewer rows",
            self.entries
        );
    }
}

/// Takes the least entries of several tables, at most `most` and about as many as a step may read.
/// Returns whether the tables are exhausted.
fn merge_some(
    readers: &mut [TableReader],
    most: usize,
    hashes: &mut Vec<i64>,
    places: &mut Vec<i64>,
) -> Result<bool> {
    let mut blocks = 0;
    while blocks < READ_BLOCKS && hashes.len() < most {
        for reader in readers.iter_mut() {
            while reader.is_empty() {
                reader.read_block()?;
                blocks += 1;
            }
        }
        let order = |reader: &TableReader| reader.peek();
        let Some(least) = (0..readers.len())
            .filter(|r| order(&readers[*r]).is_some())
            .min_by_key(|r| order(&readers[*r]))
        else {
            return Ok(true);
        };
        // Take this table's entries up to the next entry of any other table.
        let others = (0..readers.len()).filter(|r| *r != least);
        let bound = others.filter_map(|r| order(&readers[r])).min();
        let reader = &mut readers[least];
        let before = hashes.len();
        while hashes.len() < most
            && let Some((hash, place)) =
                reader.peek().filter(|entry| bound.is_none_or(|bound| *entry <= bound))
        {
            hashes.push(hash);
            places.push(place);
            reader.advance();
        }
        debug_assert!(hashes.len() > before, "a merge of hash tables takes no entry");
    }
    Ok(false)
}
