//! An `UPDATE` of many rows of segments: the new rows go straight into segment files, and a bit
//! deletes each old row.
//!
//! The statement first writes the files, while it reads. Then it claims the old rows where they are
//! ([`Claims`](crate::segments::claims::Claims)), and the transaction takes over the files: its one
//! record adds them and deletes the old rows. Until then the files belong to the update, and are
//! removed when it is dropped.
//!
//! A new row with the key and the unique values of its old row needs no lock of its own: while the
//! old row is claimed, no other transaction can assign them. Keys and values that change are
//! reserved ([`Reservations`](crate::table::reservations::Reservations)).

use crate::index::definition::Index;
use crate::layout::constraints::check_row_lengths;
use crate::load::added::{add_segments, check_room, list, runs_of};
use crate::load::inside::{Among, Resolving};
use crate::load::loaded::{Leaving, Load, Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::met::Met;
use crate::load::pending::{self, Pending, slice};
use crate::load::publish::Ownership;
use crate::load::staged::{LoadedRow, Staged, StagedKeys};
use crate::load::write::{Manner, Target, Writing};
use crate::read::view::RowLocator;
use crate::record::RunPlace;
use crate::segments::state::SegmentState;
use crate::table::reservations::Reservation;
use crate::table::segment_list::SegmentList;
use crate::table::sharding::Share;
use crate::table::version::Table;
use crate::transaction::hidden::HiddenRows;
use crate::transaction::own_segments::OwnSegment;
use nacre_column::{Batch, Vector};
use nacre_rowstore::{Blocker, Owner};
use nacre_segment::Segment;
use nacre_types::sorted::SortedMap;
use nacre_types::walked::{self, Path};
use nacre_types::{DataType, Error, ErrorKind, Result, Timestamp, Value, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Rows that are written anew, and the rows that they replace.
pub struct BulkUpdate {
    loader: Arc<Loader>,
    table: Arc<Table>,
    /// Indexed by partition.
    pending: Vec<Pending>,
    files: Vec<Loaded>,
    /// Rows on their way to a file.
    writing: Option<Writing>,
    /// Finds the keys that the files have twice.
    resolving: Option<Resolving>,
    /// By file: rows that give way to other new rows; empty if none does.
    given_way: Vec<RoaringBitmap>,
    /// Number of new rows.
    added: u64,
    /// The rows that are replaced, by partition and segment.
    replaced: SortedMap<(u32, u64), RoaringBitmap>,
    ownership: Ownership,
    /// Whether a row may get another key, unique value or partition.
    rekeys: bool,
    reservation: Option<Reservation>,
    /// Finds rows in the files, once they are complete.
    staged: Option<Arc<Staged>>,
    /// Finds the old rows of the transaction's own segments.
    own: Vec<Arc<SegmentState>>,
}

/// The segments with which the keys of new rows were compared.
#[derive(Default)]
pub(crate) struct Compared(Option<Met>);

impl BulkUpdate {
    /// Starts an update of a table, with the segments that its transaction has added before.
    pub(crate) fn new(
        loader: &Arc<Loader>,
        table: &Arc<Table>,
        rekeys: bool,
        own: Vec<Arc<SegmentState>>,
    ) -> BulkUpdate {
        debug_assert!(
            own.iter().all(|state| state.created() == 0),
            "a segment of the table is taken for one of the transaction"
        );
        BulkUpdate {
            loader: loader.clone(),
            table: table.clone(),
            pending: table.partitions().iter().map(|_| Pending::default()).collect(),
            files: Vec::new(),
            writing: None,
            resolving: None,
            given_way: Vec::new(),
            added: 0,
            replaced: SortedMap::new(),
            ownership: Ownership::Load,
            rekeys,
            reservation: None,
            staged: None,
            own,
        }
    }

    /// New rows that replace none, in complete files.
    pub(super) fn of_files(
        loader: &Arc<Loader>,
        table: &Arc<Table>,
        files: Vec<Loaded>,
    ) -> BulkUpdate {
        let mut update = BulkUpdate::new(loader, table, true, Vec::new());
        let runs = runs_of(table, &files, loader.options());
        update.staged = Some(Arc::new(Staged::new(table, &files, &runs)));
        for Loaded { segment, rejected, .. } in &files {
            let rows = segment.rows() as u64;
            invariant!(rejected.len() <= rows, "{} of {rows} rows give way", rejected.len());
            update.added += rows - rejected.len();
            update.given_way.push(rejected.clone());
        }
        update.files = files;
        update
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether a row may get another key, unique value or partition.
    pub fn rekeys(&self) -> bool {
        self.rekeys
    }

    /// Adds the new content of rows of segments, in table order. [`BulkUpdate::write`] writes them. A call
    /// that meets absent bytes has added nothing, and can be repeated.
    pub fn add(&mut self, rows: Batch, locators: &[RowLocator]) -> Result<()> {
        debug_assert!(self.staged.is_none(), "rows are added to an update that is complete");
        let rows = rows.compact();
        invariant!(
            rows.rows == locators.len(),
            "{} new rows of {} places",
            rows.rows,
            locators.len()
        );
        self.table.check_batch(&rows)?;
        check_row_lengths(&rows)?;
        let mut parts = self.parts(rows, locators)?.into_iter();
        parts.try_for_each(|(part, together)| self.add_of_segment(part, together))
    }

    /// Adds rows to the partitions that their values give.
    fn split(&mut self, rows: Batch) -> Result<()> {
        self.added += rows.rows as u64;
        for Share { partition, batch } in self.table.split(rows)? {
            self.pending[partition as usize].add(batch);
        }
        Ok(())
    }

    /// Divides new rows by the segments of the old ones, and reads the numbers that stay theirs.
    fn parts<'a>(
        &self,
        rows: Batch,
        locators: &'a [RowLocator],
    ) -> Result<Vec<(Batch, &'a [RowLocator])>> {
        debug_assert!(self.staged.is_none(), "rows are divided for an update that is complete");
        let mut parts = Vec::new();
        let mut start = 0;
        for together in locators.chunk_by(|a, b| place_of(a) == place_of(b)) {
            let end = start + together.len();
            let mut part = match together.len() == rows.rows {
                true => rows.clone(),
                false => slice(&rows, start, end),
            };
            let place = together.first().and_then(place_of);
            invariant!(place.is_some(), "an update of segments replaces a row in memory");
            if let Some((partition, segment)) = place
                && !self.rekeys
                && self.table.key_columns().is_none()
            {
                let old = self.segment(partition, segment)?;
                let numbers: Vec<u32> = together.iter().filter_map(row_of).collect();
                part.columns.push(Arc::new(self.row_numbers(&old.segment, &numbers)?));
            }
            parts.push((part, together));
            start = end;
        }
        debug_assert!(start == rows.rows, "{start} of {} new rows are added", rows.rows);
        Ok(parts)
    }

    /// Adds new rows for rows of one segment.
    fn add_of_segment(&mut self, rows: Batch, locators: &[RowLocator]) -> Result<()> {
        let place = locators.first().and_then(place_of);
        invariant!(place.is_some(), "an update of segments replaces a row in memory");
        let Some((partition, segment)) = place else { return Ok(()) };
        debug_assert!(
            (partition as usize) < self.pending.len(),
            "rows of partition {partition} of {} are updated",
            self.pending.len()
        );
        let numbers: Vec<u32> = locators.iter().filter_map(row_of).collect();
        debug_assert!(numbers.len() == rows.rows, "{} rows of {} places", rows.rows, numbers.len());
        if self.rekeys {
            self.split(rows)?;
        } else {
            self.added += rows.rows as u64;
            self.pending[partition as usize].add(rows);
        }
        self.note_replaced((partition, segment), &numbers)
    }

    fn note_replaced(&mut self, place: (u32, u64), numbers: &[u32]) -> Result<()> {
        let replaced = self.replaced.or_insert_with(place, Default::default);
        let before = replaced.len();
        replaced.extend(numbers.iter().copied());
        invariant!(
            replaced.len() == before + numbers.len() as u64,
            "a row of segment {} is updated twice by one statement",
            place.1
        );
        Ok(())
    }

    /// The hidden numbers of rows of a segment, which stay theirs.
    fn row_numbers(&self, segment: &Segment, rows: &[u32]) -> Result<Vector> {
        let columns = self.table.layout().key_positions(segment)?;
        invariant!(columns.len() == 1, "{} columns number the rows of a table", columns.len());
        let column = columns[0];
        debug_assert!(
            rows.iter().all(|row| (*row as usize) < segment.rows()),
            "a row that segment {} does not have is updated",
            segment.id()
        );
        if rows.is_sorted() {
            return segment.take_in_scan(column, rows);
        }
        let numbers: Result<Vec<Value>> =
            rows.iter().map(|row| segment.get(column, *row as usize)).collect();
        Ok(Vector::from_values(DataType::Int64, &numbers?))
    }

    fn segment(&self, partition: u32, segment: u64) -> Result<Arc<SegmentState>> {
        let own = || self.own.iter().find(|state| state.id() == segment).cloned();
        let found = self.table.partition(partition).segment(segment).or_else(own);
        debug_assert!(
            found.as_ref().is_none_or(|state| state.id() == segment),
            "another segment is in the place of segment {segment}"
        );
        found.ok_or_else(|| self.table.superseded())
    }

    /// Does a part of the writing that is due: of segments that are full, or of `all` rows so far. Returns
    /// whether there was any. Can be called again after a read of absent bytes.
    pub fn write(&mut self, all: bool) -> Result<bool> {
        debug_assert!(self.staged.is_none(), "rows are written of an update that is complete");
        let _within = walked::within(Path::ManyUpdated);
        let target = Target { loader: &self.loader, table: &self.table };
        if let Some(writing) = &mut self.writing {
            if writing.step(target, &mut self.files)?.is_some() {
                self.writing = None;
            }
            return Ok(true);
        }
        let filled = || (0u32..).zip(&self.pending).find(|(_, rows)| rows.rows() > 0);
        let next = match all {
            true => filled().map(|(partition, _)| partition),
            false => pending::to_write(&self.pending, &self.loader),
        };
        let Some(partition) = next else { return Ok(false) };
        let options = self.loader.options();
        let rows =
            self.pending[partition as usize].take(options.segment_rows, options.segment_bytes);
        let (round, is_numbered) = (self.files.len(), !self.rekeys);
        let manner = Manner { partition, on_duplicate: OnDuplicate::Error, round, is_numbered };
        self.writing = Some(target.begin(manner, rows, &self.files)?);
        Ok(true)
    }

    /// Does a part of the end: writes rows that are in no file yet, and compares keys. No more rows may be
    /// added. Returns whether there is more to do. Can be called again after a read of absent bytes.
    /// `constraint` if two new rows have the same key.
    pub fn complete(&mut self) -> Result<bool> {
        if self.staged.is_some() {
            return Ok(false);
        }
        if self.write(true)? {
            return Ok(true);
        }
        if self.rekeys {
            let BulkUpdate { loader, table, files, resolving, .. } = self;
            let some = Target { loader, table }.at_once();
            let resolving = resolving.get_or_insert_with(|| Resolving::new(table, 0..files.len()));
            let one = (&**table, OnDuplicate::Error);
            let is_more = resolving.step(one, files, Among::Rounds, some);
            // Another transaction may have dropped the index.
            let has_twice = |error: &Error| error.kind() == ErrorKind::Constraint;
            if is_more.as_ref().is_err_and(has_twice) {
                table.check_writes()?;
            }
            if is_more? {
                return Ok(true);
            }
        }
        let runs = runs_of(&self.table, &self.files, self.loader.options());
        self.staged = Some(Arc::new(Staged::new(&self.table, &self.files, &runs)));
        let written: u64 = self.files.iter().map(|file| file.segment.rows() as u64).sum();
        invariant!(written == self.rows(), "{written} new rows are written of {}", self.rows());
        Ok(false)
    }

    /// Number of new rows.
    pub fn rows(&self) -> u64 {
        debug_assert!(
            self.replaced.values().map(RoaringBitmap::len).sum::<u64>() <= self.added,
            "more rows are replaced than are new"
        );
        self.added
    }

    /// The segments with rows that are replaced, each with its partition.
    pub fn places(&self) -> Vec<(u32, u64)> {
        debug_assert!(
            self.replaced.values().all(|rows| !rows.is_empty()),
            "no row of a segment is updated"
        );
        self.replaced.keys().copied().collect()
    }

    /// The rows of a segment that are replaced.
    pub(crate) fn replaced(&self, place: (u32, u64)) -> RoaringBitmap {
        debug_assert!(
            self.replaced.contains_key(&place),
            "an update replaces no row of segment {}",
            place.1
        );
        self.replaced.get(&place).cloned().unwrap_or_default()
    }

    /// Takes the new content of a row out of the files: the old row has moved to memory since the
    /// statement read it, so that is where it is replaced.
    pub(crate) fn take_out(&mut self, locator: &RowLocator) -> Result<(LoadedRow, Vec<Value>)> {
        let (place, row) = (place_of(locator), row_of(locator));
        invariant!(place.is_some(), "a row in memory is taken out of an update of segments");
        let ((partition, segment), row) = place.zip(row).unwrap_or_default();
        let (old, layout) = (self.segment(partition, segment)?, self.table.layout());
        let key = layout.key_of_segment_row(&old.segment, row)?;
        let found = match &self.staged {
            Some(staged) => staged.row(&self.table, partition, &key)?,
            None => None,
        };
        invariant!(found.is_some(), "row {row} of segment {segment} has no new content");
        let found = found.unwrap_or(LoadedRow { file: 0, row: 0 });
        Ok((found, self.take(found)?))
    }

    /// Takes a row out of the files.
    pub(crate) fn take(&mut self, LoadedRow { file, row }: LoadedRow) -> Result<Vec<Value>> {
        invariant!(
            (row as usize) < self.files[file].segment.rows(),
            "row {row} of file {file} of an update"
        );
        let all: Vec<usize> = (0..self.table.schema().columns.len()).collect();
        let values = self.table.layout().segment_row(&self.files[file].segment, row, &all)?;
        self.files[file].rejected.insert(row);
        Ok(values)
    }

    /// Puts rows back that were taken out of the files.
    pub(crate) fn put_back(&mut self, rows: &[LoadedRow]) {
        for LoadedRow { file, row } in rows {
            let was_taken = self.files[*file].rejected.remove(*row);
            debug_assert!(was_taken, "row {row} of file {file} is put back, and was not taken out");
        }
    }

    /// Puts all rows back that were taken out of the files.
    pub(crate) fn take_all_back(&mut self) {
        debug_assert!(self.rekeys, "rows that moved to memory are put back into the files");
        for (at, file) in self.files.iter_mut().enumerate() {
            file.rejected = self.given_way.get(at).cloned().unwrap_or_default();
        }
    }

    /// Reserves the keys and unique values of the new rows, unless another owner has reserved some of
    /// the table's; returns that owner.
    pub(crate) fn reserve(&mut self, owner: &Arc<Owner>) -> std::result::Result<(), Blocker> {
        debug_assert!(self.rekeys, "an update that changes no key reserves some");
        invariant!(self.staged.is_some(), "keys are reserved before all new rows are written");
        let Some(staged) = self.staged.clone().filter(|_| self.reservation.is_none()) else {
            return Ok(());
        };
        let keys = Arc::new(StagedKeys { staged, table: self.table.clone() });
        self.reservation = Some(self.table.reservations().reserve(owner, keys)?);
        Ok(())
    }

    /// Whether it has reserved keys, which are given back when it is dropped.
    pub(crate) fn has_reserved(&self) -> bool {
        self.reservation.is_some()
    }

    /// Compares the keys of the new rows with those of segments, by partition. `constraint` if a row
    /// has one that is not leaving.
    /// Segments that were compared before are left out.
    pub(crate) fn compare(
        &self,
        compared: &mut Compared,
        lists: &[Arc<SegmentList>],
        leaving: &Leaving<'_>,
    ) -> Result<()> {
        debug_assert!(self.has_reserved(), "keys are compared that another transaction may assign");
        let Some(staged) = &self.staged else { return Ok(()) };
        let load = Load {
            loader: &self.loader,
            table: &self.table,
            on_duplicate: OnDuplicate::Error,
            files: &self.files,
            leaving: Some(leaving),
        };
        let met = compared.0.get_or_insert_with(|| Met::new(&self.table, self.files.len()));
        while met.catch_up(load, staged, lists, usize::MAX)? {}
        Ok(())
    }

    /// The new rows of a partition with an encoded primary key.
    pub(crate) fn rows_with_key(&self, partition: u32, key: &[u8]) -> Result<Vec<LoadedRow>> {
        match &self.staged {
            Some(staged) => self.not_taken(staged.with_key(&self.table, partition, key)?),
            None => Ok(Vec::new()),
        }
    }

    /// The new rows with an encoded unique value of an index.
    pub(crate) fn rows_with_value(&self, index: &Index, value: &[u8]) -> Result<Vec<LoadedRow>> {
        match &self.staged {
            Some(staged) => self.not_taken(staged.with_value(&self.table, index, value)?),
            None => Ok(Vec::new()),
        }
    }

    fn not_taken(&self, mut rows: Vec<LoadedRow>) -> Result<Vec<LoadedRow>> {
        rows.retain(|row| !self.files[row.file].rejected.contains(row.row));
        Ok(rows)
    }

    /// Calls `visit` with the partition, file and number of each new row.
    pub(crate) fn each_row(
        &self,
        visit: &mut dyn FnMut(u32, &Segment, u32) -> Result<()>,
    ) -> Result<()> {
        for file in &self.files {
            let rows = (0..file.segment.rows() as u32).filter(|row| !file.rejected.contains(*row));
            rows.into_iter().try_for_each(|row| visit(file.partition, &file.segment, row))?;
        }
        Ok(())
    }

    /// Number of files.
    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// The new segments as the transaction sees them.
    pub(crate) fn own_segments(&self) -> Vec<OwnSegment> {
        let runs = runs_of(&self.table, &self.files, self.loader.options());
        let own = |(file, run): (&Loaded, RunPlace)| OwnSegment {
            table: self.table.id(),
            partition: file.partition,
            run,
            state: Arc::new(file.own_state()),
        };
        self.files.iter().zip(runs).map(own).collect()
    }

    /// Appends the new segments to a record, without rows that the transaction has replaced or
    /// deleted since. Returns the number of operations.
    pub(crate) fn log(&mut self, hidden: &HiddenRows, payload: &mut Vec<u8>) -> Result<usize> {
        invariant!(
            self.staged.is_some() && self.rekeys == self.has_reserved(),
            "an update is logged before its new rows are complete and their keys reserved"
        );
        for file in &mut self.files {
            if let Some(rows) = hidden.of_segment(&self.table, file.segment.id()) {
                file.rejected |= rows;
            }
        }
        debug_assert!(
            self.files.iter().all(|file| file.rejected.len() <= file.segment.rows() as u64),
            "more rows of a file are rejected than it has"
        );
        let rejected: Vec<RoaringBitmap> =
            self.files.iter().map(|file| file.rejected.clone()).collect();
        let runs = runs_of(&self.table, &self.files, self.loader.options());
        add_segments(payload, &self.table, &self.files, (&rejected, &runs))?;
        Ok(self.files.len())
    }

    /// Fails with a `limit` if the table has no room for the new segments. Must be called under the
    /// commit lock, before the record is in the log.
    pub(crate) fn check_room(&self) -> Result<()> {
        check_room(&self.table, &self.files)
    }

    /// Makes the new segments part of the table. Must be called under the commit lock, once the
    /// record is in the log and before the old rows are deleted.
    pub(crate) fn stamp(&mut self, commit: Timestamp) {
        invariant!(self.ownership == Ownership::Load, "an update is committed twice");
        self.ownership = Ownership::Table;
        let files = self.loader.files();
        files.note_named(self.files.iter().map(|file| &file.segment));
        let states: Vec<Arc<SegmentState>> =
            self.files.iter().map(|file| file.state(commit, files)).collect();
        debug_assert!(
            states.iter().all(|state| state.created() == commit && state.content() == commit),
            "new rows of commit {commit} are older than it"
        );
        let runs = runs_of(&self.table, &self.files, self.loader.options());
        list(&self.table, &self.files, &states, &runs);
        self.table.set_changed(commit);
    }
}

impl Drop for BulkUpdate {
    fn drop(&mut self) {
        if self.ownership == Ownership::Load {
            let _within = walked::within(Path::ManyUpdated);
            if let Some(writing) = &mut self.writing {
                writing.abandon(&self.loader);
            }
            let files = self.files.iter();
            files.for_each(|file| self.loader.files().remove_unnamed(file.segment.name()));
        }
    }
}

/// Partition and segment of a row; `None` for one in memory.
fn place_of(locator: &RowLocator) -> Option<(u32, u64)> {
    match locator {
        RowLocator::Segment { partition, segment, .. } => Some((*partition, *segment)),
        RowLocator::Memory { .. } => None,
    }
}

/// The number of a row in its segment; `None` for one in memory.
fn row_of(locator: &RowLocator) -> Option<u32> {
    match locator {
        RowLocator::Segment { row, .. } => Some(*row),
        RowLocator::Memory { .. } => None,
    }
}
