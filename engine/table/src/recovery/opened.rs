//! Opens the files that records name, and checks that what the records say of segments is possible.
//! Changes nothing that a reader sees, so that it may fail and be done again.

use crate::index::hash::table::HashTable;
use crate::options::StoreOptions;
use crate::record::{Description, KeySet, NewTable, RunPlace};
use crate::recovery::partition::SegmentChanges;
use crate::recovery::replay::{Replay, ReplayedTable};
use crate::segments::files::SegmentFiles;
use crate::segments::names::FileKind;
use crate::segments::part::parts_of;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::run::{find_overlap, one_run};
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{Error, Result, Timestamp, Value};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the records change in tables, with the files open.
pub(super) struct Opened {
    /// In the order of [`Replay::tables`].
    pub tables: Vec<OpenedTable>,
    /// Names of the files opened.
    pub names: Set<String>,
}

/// What the records change in a table.
pub(super) struct OpenedTable {
    /// By number.
    pub partitions: Vec<OpenedPartition>,
}

/// What the records change in a partition.
#[derive(Default)]
pub(super) struct OpenedPartition {
    /// Segments that are new or change their run, by run.
    pub runs: Vec<(RunPlace, Vec<Arc<SegmentState>>)>,
    /// Ids of segments that change their run.
    pub moved: Set<u64>,
    /// Segments that are dropped.
    pub dropped: Vec<Arc<SegmentState>>,
    /// Segments with rows that are deleted.
    pub deleted: Vec<(Arc<SegmentState>, RoaringBitmap)>,
    /// New index parts of listed segments.
    pub parts: Vec<(Arc<SegmentState>, Arc<Segment>)>,
    /// New hash tables.
    pub hashes: Vec<Arc<HashTable>>,
}

impl OpenedPartition {
    /// Whether the list of segments does not change.
    pub fn keeps_segments(&self) -> bool {
        self.runs.is_empty() && self.dropped.is_empty() && self.parts.is_empty()
    }
}

/// Opens the files that records name. What they add exists from commit `at` on.
///
/// # Errors
/// `corrupt` if a file is missing, damaged or another one, or if the records contradict it.
pub(super) fn open_files(
    replay: &Replay,
    files: &SegmentFiles,
    options: &StoreOptions,
    at: Timestamp,
) -> Result<Opened> {
    let mut opening = Opening { replay, files, options, at, names: Set::default() };
    let placed = replay.placed();
    let mut tables = Vec::new();
    for replayed in replay.tables() {
        let mut partitions = Vec::with_capacity(replayed.segments.len());
        for (partition, changes) in replayed.table.partitions().iter().zip(&replayed.segments) {
            let place = replayed.table.place(partition);
            let placed = placed.get(&place).map_or(&[][..], Vec::as_slice);
            partitions.push(opening.open_partition(replayed, partition, changes, placed)?);
        }
        for (number, hashes) in &replayed.hashes {
            let partition = replayed.table.partition(*number);
            let opened = opening.open_hashes(&replayed.table, partition, hashes)?;
            partitions[*number as usize].hashes.extend(opened);
        }
        tables.push(OpenedTable { partitions });
    }
    Ok(Opened { tables, names: opening.names })
}

/// Opens the files that records name.
struct Opening<'a> {
    replay: &'a Replay,
    files: &'a SegmentFiles,
    options: &'a StoreOptions,
    at: Timestamp,
    /// Names of the files opened.
    names: Set<String>,
}

impl Opening<'_> {
    /// Opens what is new in a partition. `placed` are its segments that the records put into runs.
    fn open_partition(
        &mut self,
        replayed: &ReplayedTable,
        partition: &Partition,
        changes: &SegmentChanges,
        placed: &[&Description],
    ) -> Result<OpenedPartition> {
        let table = &*replayed.table;
        let list = partition.segments();
        let moved = moved(&list, changes, placed)?;
        let mut opened = OpenedPartition {
            moved: moved.iter().map(|(_, state)| state.id()).collect(),
            dropped: changes.dropped.iter().filter_map(|id| list.segment(*id).cloned()).collect(),
            deleted: deleted(&list, changes)?,
            ..OpenedPartition::default()
        };
        let mut runs: BTreeMap<u64, (u8, Vec<Arc<SegmentState>>)> = BTreeMap::new();
        let mut put = |run: RunPlace, state: Arc<SegmentState>| {
            let (level, states) = runs.entry(run.number).or_default();
            *level = run.level.max(*level);
            states.push(state);
        };
        moved.into_iter().for_each(|(run, state)| put(run, state));
        for (id, deleted) in &changes.added {
            let state = self.open_segment(table, partition, *id, deleted.clone())?;
            // One without a run, as old logs have, is a run of its own.
            let described = self.replay.described(*id).and_then(|(_, file)| file.run);
            let alone = || one_run(std::iter::once(&*state.segment), self.options);
            put(described.unwrap_or_else(alone), state);
        }
        for (number, (level, states)) in runs {
            let is_leaving = |id| changes.dropped.contains(&id) || opened.moved.contains(&id);
            let there = list.run(number).into_iter().flat_map(|run| run.states());
            let stays = there.filter(|state| !is_leaving(state.id()));
            let all: Vec<_> = stays.chain(&states).cloned().collect();
            if let Some((a, b)) = find_overlap(&all) {
                return Err(Error::corrupt(format!(
                    "log: segments {a} and {b} of run {number} overlap"
                )));
            }
            opened.runs.push((RunPlace { number, level }, states));
        }
        if replayed.base.is_some() {
            self.open_parts(table, partition, changes, &mut opened)?;
        }
        debug_assert!(
            opened.dropped.len() == changes.dropped.len(),
            "a segment is dropped that is not listed"
        );
        Ok(opened)
    }

    /// Opens the new index parts of segments that are listed already.
    fn open_parts(
        &mut self,
        table: &Table,
        partition: &Partition,
        changes: &SegmentChanges,
        opened: &mut OpenedPartition,
    ) -> Result<()> {
        let list = partition.segments();
        for (id, parts) in self.replay.parts(table) {
            let listed = list.segment(id).filter(|state| state.is_current());
            let Some(state) = listed.filter(|_| !changes.dropped.contains(&id)) else { continue };
            for part in parts.iter().filter(|part| table.has_index(part.index)) {
                let file = self.open_file(FileKind::Part, part.file, table, partition)?;
                check_part(table, &state.segment, &file)?;
                opened.parts.push((state.clone(), file));
            }
        }
        Ok(())
    }

    /// Opens a file, which must be the one that the log describes if it describes one. `corrupt` if
    /// the log names it for two purposes: its removal would end both.
    fn open_file(
        &mut self,
        kind: FileKind,
        number: u64,
        table: &Table,
        partition: &Partition,
    ) -> Result<Arc<Segment>> {
        let file = self.files.open(kind, number, table.schema())?;
        if let Some((place, description)) = self.replay.described(number) {
            if *place != table.place(partition) {
                return Err(Error::corrupt(format!(
                    "log: file {number} is described in one partition and listed in another"
                )));
            }
            description.check(kind, &file)?;
        }
        let next = self.replay.next().segment;
        debug_assert!(number < next, "file {number} has a number that is free");
        debug_assert!(file.id() == number, "file {number} is opened as {}", file.id());
        if !self.names.insert(kind.name(number)) {
            let (name, table) = (file.name(), &table.schema().name);
            return Err(Error::corrupt(format!(
                "log: file {name} of table {table} is listed twice"
            )));
        }
        Ok(file)
    }

    /// Opens a segment and its separate index parts.
    fn open_segment(
        &mut self,
        table: &Table,
        partition: &Partition,
        id: u64,
        deleted: RoaringBitmap,
    ) -> Result<Arc<SegmentState>> {
        let segment = self.open_file(FileKind::Segment, id, table, partition)?;
        check_columns(table, &segment)?;
        check_deleted(&segment, &deleted)?;
        let bounds = table.layout().order_bounds(&segment);
        // Nothing is known of the age of the rows: they may be as new as the commit.
        let mut state = SegmentState::new(segment, self.at, deleted)
            .with_content(self.at)
            .with_bitmaps(self.files.bitmaps());
        // Without bounds, a damaged segment is searched for every key, and the search reports it.
        if let Ok(bounds) = bounds {
            state = state.with_bounds(bounds);
        }
        for part in self.replay.parts_of(table, id) {
            if table.has_index(part.index) {
                state.add_parts(&self.open_file(FileKind::Part, part.file, table, partition)?);
            }
        }
        for index in table.indexes() {
            if let Some(part) = state.part(index.id()) {
                part.check(index.types(), index.name(), state.segment.rows())?;
            }
        }
        state.keep_parts(|index| table.has_index(index));
        see_row_numbers(table, partition, &state)?;
        Ok(Arc::new(state))
    }

    /// Opens a hash table; `None` if its index is gone.
    fn open_hashes(
        &mut self,
        table: &Table,
        partition: &Partition,
        hashes: &NewTable,
    ) -> Result<Option<Arc<HashTable>>> {
        if let KeySet::Index(id) = hashes.keys
            && !table.has_index(id)
        {
            return Ok(None);
        }
        debug_assert!(!hashes.files.is_empty(), "a hash table without files is replayed");
        let mut files = Vec::with_capacity(hashes.files.len());
        for number in &hashes.files {
            files.push(self.open_file(FileKind::Hashes, *number, table, partition)?);
        }
        Ok(Some(Arc::new(HashTable::new(hashes.keys, files, hashes.segments.clone())?)))
    }
}

/// The rows of listed segments that are deleted, and were not before.
fn deleted(
    list: &SegmentList,
    changes: &SegmentChanges,
) -> Result<Vec<(Arc<SegmentState>, RoaringBitmap)>> {
    let mut deleted = Vec::new();
    for (id, rows) in &changes.deleted {
        let Some(state) = list.segment(*id) else { continue };
        debug_assert!(!changes.dropped.contains(id), "rows of a dropped segment are deleted");
        check_deleted(&state.segment, rows)?;
        let rows = rows - &*state.all_deleted();
        if !rows.is_empty() {
            deleted.push((state.clone(), rows));
        }
    }
    Ok(deleted)
}

/// The listed segments that change their run, and the run of each.
fn moved(
    list: &SegmentList,
    changes: &SegmentChanges,
    placed: &[&Description],
) -> Result<Vec<(RunPlace, Arc<SegmentState>)>> {
    let mut moved = Vec::new();
    for description in placed {
        let stays = |state: &&Arc<SegmentState>| {
            state.is_current() && !changes.dropped.contains(&state.id())
        };
        let listed = list.segment(description.number).filter(stays);
        if let (Some(state), Some(run)) = (listed, description.run) {
            description.check(FileKind::Segment, &state.segment)?;
            moved.push((run, state.clone()));
        }
    }
    Ok(moved)
}

/// Checks that a segment's columns have the types in the table's schema.
fn check_columns(table: &Table, segment: &Segment) -> Result<()> {
    for column in table.layout().segment_columns() {
        let Some(index) = segment.column_index(column.id) else { continue };
        let stored = segment.columns()[index].data_type;
        if stored.physical() != column.data_type.physical() {
            return Err(Error::corrupt(format!(
                "segment {}: column {} has type {stored}, table {} expects {}",
                segment.name(),
                column.id,
                table.schema().name,
                column.data_type
            )));
        }
    }
    Ok(())
}

/// Checks that deleted rows exist in the segment.
fn check_deleted(segment: &Segment, deleted: &RoaringBitmap) -> Result<()> {
    match deleted.max() {
        Some(row) if row as usize >= segment.rows() => Err(Error::corrupt(format!(
            "segment {}: deleted row {row} is beyond its {} rows",
            segment.name(),
            segment.rows()
        ))),
        _ => Ok(()),
    }
}

/// Records the highest hidden row number of a segment.
fn see_row_numbers(table: &Table, partition: &Partition, state: &SegmentState) -> Result<()> {
    if table.key_columns().is_some() {
        return Ok(());
    }
    let segment = &state.segment;
    let columns = table.layout().key_positions(segment)?;
    match columns.first().map(|column| &segment.columns()[*column].max) {
        Some(Value::Int(highest)) => partition.saw_row_number(*highest),
        Some(Value::Null) if segment.rows() == 0 => Ok(()),
        highest => Err(Error::corrupt(format!(
            "segment {}: {highest:?} is not a row number",
            segment.name()
        ))),
    }
}

/// Checks the index parts in a separate file.
fn check_part(table: &Table, segment: &Segment, file: &Arc<Segment>) -> Result<()> {
    for part in parts_of(file) {
        let index = table.indexes().iter().find(|index| index.id() == part.index());
        if let Some(index) = index {
            part.check(index.types(), index.name(), segment.rows())?;
        }
    }
    Ok(())
}
