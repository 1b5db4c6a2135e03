//! Building the parts of an index for segments that were written before it was made.
//!
//! A build is a state machine like a merge: each step reads or writes a bounded number of blocks of one segment, and
//! the file it makes is named by a record once it is complete. Until then the segment is read as a whole. Left behind
//! by a crash, a file is an orphan, and the segment's part is built again.

use crate::index::definition::Index;
use crate::maintenance::merge::Progress;
use crate::read::probe::block_columns;
use crate::record::{self, NewPart};
use crate::segments::file::NewFiles;
use crate::segments::state::SegmentState;
use crate::store::{Store, file_name_of_part};
use crate::table::version::Table;
use nacre_segment::{ColumnSpec, IndexOrder, SegmentBuilder};
use nacre_types::hash::Set;
use nacre_types::{IndexId, Result, TableId, limits};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Blocks of one column that a step decodes, about.
const READ_BLOCKS: usize = 64;

/// The part of one index for one segment, being built.
pub(crate) struct Build {
    table: Arc<Table>,
    partition: u32,
    index: IndexId,
    state: Arc<SegmentState>,
    /// Empty once everything has been read.
    builder: Option<SegmentBuilder>,
    next_row: usize,
    files: NewFiles,
}

impl Store {
    /// Builds all parts that a table's indexes do not have yet, which house-keeping does step by step.
    #[cfg(test)]
    pub(crate) fn build_indexes(&self, table: &Arc<Table>) -> Result<()> {
        let mut maintenance = self.lock_maintenance();
        self.check_open()?;
        self.abandon(&mut maintenance);
        loop {
            let table = self.newest(table)?;
            let Some(mut build) = self.start_build(&table, &Set::default()) else { return Ok(()) };
            loop {
                match build.step(self) {
                    Ok(Progress::More) => {}
                    Ok(Progress::Done) => break,
                    Err(error) => {
                        build.abandon(self);
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Whether a table may have parts to be built.
    pub(crate) fn may_build(table: &Table) -> bool {
        !table.indexes().is_empty()
            && table.partitions().iter().any(|p| p.may_index().load(Ordering::Relaxed))
    }

    /// Starts with the next part that is missing.
    pub(crate) fn start_build(&self, table: &Arc<Table>, failed: &Set<PartId>) -> Option<Build> {
        if table.indexes().is_empty() {
            return None;
        }
        for partition in table.partitions() {
            if !partition.may_index().swap(false, Ordering::Relaxed) {
                continue;
            }
            // A segment that is not visible yet waits for its turn: its commit may still fail. It says so again.
            let visible = self.visible();
            let segments = partition.segments();
            for state in segments.iter().filter(|state| state.is_current()) {
                let missing = |index: &&Index| {
                    let id = index.schema.id;
                    state.part(id).is_none()
                        && !failed.contains(&(table.id(), state.segment.id(), id))
                };
                if let Some(index) = table.indexes().iter().find(missing) {
                    // There may be more.
                    partition.consider_indexing();
                    if state.exists_at(visible) {
                        return Some(Build::new(table, partition.number(), index, state.clone()));
                    }
                }
            }
        }
        None
    }
}

/// The part of an index that a table's segment has.
pub(crate) type PartId = (TableId, u64, IndexId);

impl Build {
    /// What is built.
    pub(crate) fn part(&self) -> PartId {
        (self.table.id(), self.state.segment.id(), self.index)
    }

    fn new(table: &Arc<Table>, partition: u32, index: &Index, state: Arc<SegmentState>) -> Build {
        let columns = index.columns.iter().map(|at| {
            let column = &table.schema().columns[*at];
            ColumnSpec { id: column.id, data_type: column.data_type, nullable: column.nullable }
        });
        let order = IndexOrder { columns: (0..index.columns.len()).collect(), ..index.order() };
        let builder =
            SegmentBuilder::new(columns.collect()).with_indexes(vec![order]).indexes_only();
        Build {
            table: table.clone(),
            partition,
            index: index.schema.id,
            state,
            builder: Some(builder),
            next_row: 0,
            files: NewFiles::default(),
        }
    }

    /// Does a bounded piece of work. After an error the build must be abandoned.
    pub(crate) fn step(&mut self, store: &Store) -> Result<Progress> {
        if !self.is_wanted(store) {
            self.abandon(store);
            return Ok(Progress::Done);
        }
        if self.builder.is_some() {
            self.read_some(store)?;
            return Ok(Progress::More);
        }
        if self.files.step(store)? {
            return Ok(Progress::More);
        }
        self.commit(store)?;
        Ok(Progress::Done)
    }

    /// Removes what was written.
    pub(crate) fn abandon(&mut self, store: &Store) {
        self.files.abandon(store);
        self.table.partition(self.partition).consider_indexing();
    }

    /// Whether the table still has the index, and the segment.
    fn is_wanted(&self, store: &Store) -> bool {
        let newest = store.newest(&self.table);
        self.state.is_current()
            && newest.is_ok_and(|newest| {
                newest.shares_partitions(&self.table) && newest.index(self.index).is_ok()
            })
    }

    fn read_some(&mut self, store: &Store) -> Result<()> {
        let Some(mut builder) = self.builder.take() else { return Ok(()) };
        let index = self.table.index(self.index)?;
        let rows = self.state.segment.rows();
        let mut blocks = 0;
        while self.next_row < rows && blocks < READ_BLOCKS {
            let count = limits::BLOCK_ROWS.min(rows - self.next_row);
            builder.push(&block_columns(&self.table, index, &self.state, self.next_row, count)?);
            self.next_row += count;
            blocks += index.columns.len();
        }
        if self.next_row < rows {
            self.builder = Some(builder);
        } else {
            self.files.begin(store, builder, file_name_of_part)?;
        }
        Ok(())
    }

    /// Appends and applies the record, unless the segment or the index went meanwhile.
    fn commit(&mut self, store: &Store) -> Result<()> {
        let [file] = self.files.complete() else { return Ok(()) };
        let file = file.clone();
        let mut state = store.commit.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_wanted(store) {
            drop(state);
            self.abandon(store);
            return Ok(());
        }
        let commit = state.last + 1;
        let mut payload = record::begin(commit);
        let part = NewPart { segment: self.state.segment.id(), index: self.index, file: file.id() };
        record::add_part(
            &mut payload,
            self.table.place(self.table.partition(self.partition)),
            part,
        );
        let lsn = store.log.append(&payload)?;
        state.last = commit;
        self.state.add_parts(&file);
        // The list knows the parts that there were when it was made.
        self.table.partition(self.partition).update_segments(|_| {});
        // Whether or not the sync succeeds, the log may name the file from here on.
        self.files.are_named();
        drop(state);
        store.settle_strictly((commit, lsn))
    }
}
