//! Opens the files that records name: those that they describe completely when they are first read.
//! Checks that what the records say of segments is possible.
//! Changes nothing that a reader sees, so that it may fail and be done again.

use crate::index::definition::Index;
use crate::index::hash::table::{HashTable, check_types as hash_types};
use crate::options::StoreOptions;
use crate::record::{Description, KeySet, NewTable, RunPlace};
use crate::recovery::partition::SegmentChanges;
use crate::recovery::replay::{Replay, ReplayedTable};
use crate::segments::files::{SegmentFiles, missing};
use crate::segments::names::FileKind;
use crate::segments::part::{check_part_types, parts_of};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::run::{find_overlap, one_run};
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_segment::{CheckColumns, ColumnMeta, Segment};
use nacre_types::hash::{Map, Set};
use nacre_types::sorted::SortedMap;
use nacre_types::{DataType, Error, Result, Timestamp};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// What the records change in tables, with the files.
pub(super) struct Opened {
    /// In the order of [`Replay::tables`].
    pub tables: Vec<OpenedTable>,
    /// The files.
    pub files: Set<(FileKind, u64)>,
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

/// Opens the files that records name. What they add exists from commit `at` on. `there` are the files
/// in the store, unless another instance removes files of it.
///
/// # Errors
/// `corrupt` if a file is missing, damaged or another one, or if the records contradict it.
pub(super) fn open_files(
    replay: &Replay,
    files: &SegmentFiles,
    there: Option<&Set<(FileKind, u64)>>,
    options: &StoreOptions,
    at: Timestamp,
) -> Result<Opened> {
    let mut opening = Opening { replay, files, there, options, at, opened: Set::default() };
    let placed = replay.placed();
    let mut tables = Vec::new();
    for replayed in replay.tables() {
        let mut partitions = Vec::with_capacity(replayed.segments.len());
        let checks = Checks::of(&replayed.table);
        for (partition, changes) in replayed.table.partitions().iter().zip(&replayed.segments) {
            let place = replayed.table.place(partition);
            let placed = placed.get(&place).map_or(&[][..], Vec::as_slice);
            partitions.push(opening.open_partition(
                replayed,
                (partition, &checks),
                changes,
                placed,
            )?);
        }
        for (number, hashes) in &replayed.hashes {
            let partition = replayed.table.partition(*number);
            let opened = opening.open_hashes(&replayed.table, (partition, &checks), hashes)?;
            partitions[*number as usize].hashes.extend(opened);
        }
        tables.push(OpenedTable { partitions });
    }
    Ok(Opened { tables, files: opening.opened })
}

/// The partition of a file, and what the file must look like.
type Within<'a> = (&'a Partition, &'a Checks);

/// Opens the files that records name.
struct Opening<'a> {
    replay: &'a Replay,
    files: &'a SegmentFiles,
    /// The files in the store, unless each is opened at once.
    there: Option<&'a Set<(FileKind, u64)>>,
    options: &'a StoreOptions,
    at: Timestamp,
    opened: Set<(FileKind, u64)>,
}

impl Opening<'_> {
    /// Opens what is new in a partition. `placed` are its segments that the records put into runs.
    fn open_partition(
        &mut self,
        replayed: &ReplayedTable,
        within: Within<'_>,
        changes: &SegmentChanges,
        placed: &[&Description],
    ) -> Result<OpenedPartition> {
        let (table, partition) = (&*replayed.table, within.0);
        let list = partition.segments();
        let moved = moved(&list, changes, placed)?;
        let mut opened = OpenedPartition {
            moved: moved.iter().map(|(_, state)| state.id()).collect(),
            dropped: changes.dropped.iter().filter_map(|id| list.segment(*id).cloned()).collect(),
            deleted: deleted(&list, changes)?,
            ..OpenedPartition::default()
        };
        let mut runs: SortedMap<u64, (u8, Vec<Arc<SegmentState>>)> = SortedMap::new();
        let mut put = |run: RunPlace, state: Arc<SegmentState>| {
            let (level, states) = runs.or_insert_with(run.number, Default::default);
            *level = run.level.max(*level);
            states.push(state);
        };
        moved.into_iter().for_each(|(run, state)| put(run, state));
        for (id, deleted) in changes.added.iter() {
            let state = self.open_segment(table, within, *id, deleted.clone())?;
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
            self.open_parts(table, within, changes, &mut opened)?;
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
        within: Within<'_>,
        changes: &SegmentChanges,
        opened: &mut OpenedPartition,
    ) -> Result<()> {
        let list = within.0.segments();
        for (id, parts) in self.replay.parts(table) {
            let listed = list.segment(id).filter(|state| state.is_current());
            let Some(state) = listed.filter(|_| !changes.dropped.contains(&id)) else { continue };
            for part in parts.iter().filter(|part| table.has_index(part.index)) {
                let file = self.open_file(FileKind::Part, part.file, table, within)?;
                check_part(table, &state.segment, &file)?;
                opened.parts.push((state.clone(), file));
            }
        }
        Ok(())
    }

    /// A file, which must be the one that the log describes if it describes one. `corrupt` if it is
    /// missing, or if the log names it for two purposes: its removal would end both.
    fn open_file(
        &mut self,
        kind: FileKind,
        number: u64,
        table: &Table,
        (partition, checks): Within<'_>,
    ) -> Result<Arc<Segment>> {
        if self.there.is_some_and(|there| !there.contains(&(kind, number))) {
            return Err(missing(&kind.name(number), table.schema()));
        }
        let described = self.replay.described(number);
        if described.is_some_and(|(place, _)| *place != table.place(partition)) {
            return Err(Error::corrupt(format!(
                "log: file {number} is described in one partition and listed in another"
            )));
        }
        let described = described.map(|(_, description)| description);
        let check = if kind == FileKind::Hashes { &checks.hashes } else { &checks.rows };
        let later = match described.filter(|description| description.kind == kind) {
            Some(description) => self.files.described(description, table.schema(), check)?,
            None => None,
        };
        let file = match later {
            Some(file) => file,
            None => {
                let file = self.files.open(kind, number, table.schema())?;
                described.map_or(Ok(()), |description| description.check(kind, &file))?;
                check(file.name(), &file.columns()?)?;
                file
            }
        };
        let next = self.replay.next().segment;
        debug_assert!(number < next, "file {number} has a number that is free");
        debug_assert!(file.id() == number, "file {number} is opened as {}", file.id());
        if !self.opened.insert((kind, number)) {
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
        within: Within<'_>,
        id: u64,
        deleted: RoaringBitmap,
    ) -> Result<Arc<SegmentState>> {
        let segment = self.open_file(FileKind::Segment, id, table, within)?;
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
                state.add_parts(&self.open_file(FileKind::Part, part.file, table, within)?);
            }
        }
        for index in table.indexes() {
            if let Some(part) = state.part(index.id()) {
                part.check_shape(index.types(), index.name(), state.segment.rows())?;
            }
        }
        state.keep_parts(|index| table.has_index(index));
        see_row_numbers(table, within.0, &state)?;
        Ok(Arc::new(state))
    }

    /// Opens a hash table; `None` if its index is gone.
    fn open_hashes(
        &mut self,
        table: &Table,
        within: Within<'_>,
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
            files.push(self.open_file(FileKind::Hashes, *number, table, within)?);
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

/// What the footers of a table's files must look like, checked when one is read.
struct Checks {
    /// Of segments and index parts.
    rows: Arc<CheckColumns>,
    /// Of hash tables.
    hashes: Arc<CheckColumns>,
}

impl Checks {
    fn of(table: &Table) -> Checks {
        let name = table.schema().name.clone();
        let columns: Map<u32, DataType> =
            table.layout().segment_columns().iter().map(|c| (c.id, c.data_type)).collect();
        let index = |index: &Index| (index.id(), index.name().to_string(), index.types().to_vec());
        let indexes: Vec<_> = table.indexes().iter().map(index).collect();
        let rows = move |file: &str, found: &[ColumnMeta]| {
            check_types(&name, &columns, file, found)?;
            indexes
                .iter()
                .try_for_each(|(id, name, types)| check_part_types(file, found, *id, types, name))
        };
        Checks { rows: Arc::new(rows), hashes: Arc::new(hash_types) }
    }
}

/// Checks that a segment's columns have the types in the table's schema.
fn check_types(
    table: &str,
    columns: &Map<u32, DataType>,
    file: &str,
    found: &[ColumnMeta],
) -> Result<()> {
    for ColumnMeta { id, data_type, .. } in found {
        let Some(expected) = columns.get(id) else { continue };
        if data_type.physical() != expected.physical() {
            return Err(Error::corrupt(format!(
                "segment {file}: column {id} has type {data_type}, table {table} expects {expected}"
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
    match segment.known().greatest {
        Some(highest) => {
            // A number beyond `i64` becomes negative, which no partition gives out.
            partition.saw_row_number(highest as i64)
        }
        None if segment.rows() == 0 => Ok(()),
        None => Err(Error::corrupt(format!("segment {}: no row numbers", segment.name()))),
    }
}

/// Checks the index parts in a separate file.
fn check_part(table: &Table, segment: &Segment, file: &Arc<Segment>) -> Result<()> {
    for part in parts_of(file) {
        let index = table.indexes().iter().find(|index| index.id() == part.index());
        if let Some(index) = index {
            part.check_shape(index.types(), index.name(), segment.rows())?;
        }
    }
    Ok(())
}
