//! Opens a database from the newest snapshot and the log after it. Segment files that neither names
//! are orphans of uncommitted work, and are removed.

use crate::catalog::contents::Contents;
use crate::index::hash::table::HashTable;
use crate::options::StoreOptions;
use crate::record::{Description, KeySet, NewPart, NewTable, NextIds, Place, RunPlace};
use crate::recovery::replay::{Replay, Replayed, ReplayedTable};
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::files::SegmentFiles;
use crate::segments::names::FileKind;
use crate::segments::state::SegmentState;
use crate::table::agenda::Agenda;
use crate::table::partition::Partition;
use crate::table::run::{find_overlap, one_run};
use crate::table::version::Table;
use crate::temporary;
use nacre_host::{Host, LocalStore};
use nacre_log::Log;
use nacre_segment::{BlockCache, Segment};
use nacre_types::hash::{Map, Set};
use nacre_types::{Error, Result, TableId, Value, invariant};
use roaring::RoaringBitmap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The initial state of a store.
pub(crate) struct Recovered {
    pub log: Arc<Log>,
    pub files: SegmentFiles,
    pub contents: Contents,
    pub next: NextIds,
}

/// Recovers the database in the host's store, or creates an empty one.
pub(crate) fn open(host: &Host, options: &StoreOptions) -> Result<Recovered> {
    let store = &host.store;
    // Checked before anything is created: opening would start a new log, and all segments would
    // then be orphans.
    let names = store.list()?;
    let has_segments = names.iter().any(|name| FileKind::Segment.number(name).is_some());
    if has_segments && !nacre_log::has_log(&names) {
        return Err(Error::corrupt("segments exist, but no log or snapshot names them"));
    }
    temporary::remove_left_over(&**store, &names)?;
    let replay = RefCell::new(Replay::new());
    let log = Log::open(
        store.clone(),
        options.log_options(host),
        &mut |payload| replay.borrow_mut().load(payload),
        &mut |_, payload| replay.borrow_mut().apply(payload),
    )?;
    let Replayed { tables, views, parts, files: described, next } = replay.into_inner().finish();
    let log = Arc::new(log);
    let cache = BlockCache::new(options.cache_bytes);
    let bitmaps = BitmapCache::new(options.bitmap_bytes());
    let files = SegmentFiles::new(store.clone(), log.clone(), cache, bitmaps, next.segment);
    let referenced = Set::default();
    let mut opening = Opening { files: &files, described: &described, options, referenced };
    let mut contents = Contents::new(Agenda::new(options.flush_bytes));
    for table in tables {
        contents.add(&opening.open_table(table, &parts)?, 0).map_err(taken_name)?;
    }
    for view in views {
        contents.add_view(Arc::new(view), true).map_err(taken_name)?;
    }
    let referenced = opening.referenced;
    remove_orphans(&**store, &referenced)?;
    Ok(Recovered { log, files, contents, next })
}

/// The error for a name that the log gives twice.
fn taken_name(error: Error) -> Error {
    Error::corrupt(format!("log: {}", error.message()))
}

/// Removes files that neither the log nor the snapshot names, because their numbers may be reused.
fn remove_orphans(store: &dyn LocalStore, referenced: &Set<String>) -> Result<()> {
    for name in store.list()? {
        let is_ours = FileKind::LOGGED.iter().any(|kind| kind.number(&name).is_some());
        if is_ours && !referenced.contains(&name) {
            store.remove(&name)?;
        }
    }
    Ok(())
}

/// Opens the files that the log names.
struct Opening<'a> {
    files: &'a SegmentFiles,
    /// What the log says about files, by number.
    described: &'a Map<u64, (Place, Description)>,
    options: &'a StoreOptions,
    /// Names of the files opened.
    referenced: Set<String>,
}

impl Opening<'_> {
    /// Opens the segments and hash tables of a table.
    fn open_table(
        &mut self,
        replayed: ReplayedTable,
        parts: &Map<(TableId, u64), Vec<NewPart>>,
    ) -> Result<Arc<Table>> {
        let ReplayedTable { table, segments, hashes } = replayed;
        invariant!(
            segments.len() == table.partitions().len(),
            "segments of {} partitions for {}",
            segments.len(),
            table.partitions().len()
        );
        for (partition, segments) in table.partitions().iter().zip(segments) {
            let mut states = Vec::new();
            for (id, deleted) in segments.into_all() {
                let parts = parts.get(&(table.id(), id)).map_or(&[][..], Vec::as_slice);
                let state = self.open_segment(&table, partition, id, deleted, parts)?;
                states.push(Arc::new(state));
            }
            for state in &states {
                see_row_numbers(&table, partition, state)?;
            }
            self.list(partition, states)?;
        }
        for (partition, hashes) in hashes {
            self.open_hashes(&table, partition, hashes)?;
        }
        table.enter_all()?;
        Ok(Arc::new(table))
    }

    /// Lists segments by run. One without a run, as old logs have, is a run of its own.
    fn list(&self, partition: &Partition, states: Vec<Arc<SegmentState>>) -> Result<()> {
        let mut runs: BTreeMap<u64, (u8, Vec<Arc<SegmentState>>)> = BTreeMap::new();
        for state in states {
            let described = self.described.get(&state.id()).and_then(|(_, file)| file.run);
            let alone = || one_run(std::iter::once(&*state.segment), self.options);
            let RunPlace { number, level } = described.unwrap_or_else(alone);
            let run = runs.entry(number).or_default();
            run.0 = run.0.max(level);
            run.1.push(state);
        }
        for (number, (level, states)) in runs {
            if let Some((a, b)) = find_overlap(&states) {
                return Err(Error::corrupt(format!(
                    "log: segments {a} and {b} of run {number} overlap"
                )));
            }
            partition.update_segments(|list| list.add(RunPlace { number, level }, states));
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
        if let Some((place, description)) = self.described.get(&number) {
            if *place != table.place(partition) {
                return Err(Error::corrupt(format!(
                    "log: file {number} is described in one partition and listed in another"
                )));
            }
            description.check(kind, &file)?;
        }
        debug_assert!(number < self.files.next_number(), "file {number} has a number that is free");
        debug_assert!(file.id() == number, "file {number} is opened as {}", file.id());
        if !self.referenced.insert(kind.name(number)) {
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
        parts: &[NewPart],
    ) -> Result<SegmentState> {
        let segment = self.open_file(FileKind::Segment, id, table, partition)?;
        check_columns(table, &segment)?;
        check_deleted(&segment, &deleted)?;
        let bounds = table.layout().order_bounds(&segment);
        let mut state = SegmentState::new(segment, 0, deleted).with_bitmaps(self.files.bitmaps());
        // Without bounds, a damaged segment is searched for every key, and the search reports it.
        if let Ok(bounds) = bounds {
            state = state.with_bounds(bounds);
        }
        for part in parts.iter().filter(|part| table.has_index(part.index)) {
            state.add_parts(&self.open_file(FileKind::Part, part.file, table, partition)?);
        }
        for index in table.indexes() {
            if let Some(part) = state.part(index.id()) {
                part.check(index.types(), index.name(), state.segment.rows())?;
            }
        }
        state.keep_parts(|index| table.has_index(index));
        Ok(state)
    }

    /// Opens a hash table. If its index is gone, its files are removed as orphans.
    fn open_hashes(&mut self, table: &Table, partition: u32, hashes: NewTable) -> Result<()> {
        if let KeySet::Index(id) = hashes.keys
            && !table.has_index(id)
        {
            return Ok(());
        }
        debug_assert!(!hashes.files.is_empty(), "a hash table without files is replayed");
        let mut files = Vec::with_capacity(hashes.files.len());
        let partition = table.partition(partition);
        for number in hashes.files {
            files.push(self.open_file(FileKind::Hashes, number, table, partition)?);
        }
        let made = Arc::new(HashTable::new(hashes.keys, files, hashes.segments)?);
        partition.update_tables(|tables| tables.push(made));
        Ok(())
    }
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
