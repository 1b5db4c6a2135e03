//! Builds the parts of an index for segments written before the index was created.
//!
//! A build is a state machine like a merge: each step reads or writes a bounded number of blocks of
//! one segment, and a record names the file once it is complete. Until then readers scan the
//! segment. A file left behind by a crash is an orphan, and the part is built again.

use crate::index::definition::Index;
use crate::index::lookup::block_columns;
use crate::layout::table_layout::spec_of;
use crate::maintenance::context::{Progress, TaskContext};
use crate::record::{self, Description, NewPart, Place};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::segments::part::parts_of;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_segment::{IndexOrder, SegmentBuilder};
use nacre_types::hash::Set;
use nacre_types::walked::{self, Path};
use nacre_types::{IndexId, Result, TableId, invariant, limits};
use std::sync::Arc;

/// Approximate number of blocks of one column to decode per step.
const READ_BLOCKS: usize = 16;

/// A build of the part of one index for one segment.
pub(crate) struct PartBuild {
    table: Arc<Table>,
    partition: u32,
    index: IndexId,
    state: Arc<SegmentState>,
    /// `None` once the whole segment is read.
    builder: Option<SegmentBuilder>,
    next_row: usize,
    files: NewFiles,
}

/// Identifies the part of one index for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartId {
    table: TableId,
    segment: u64,
    index: IndexId,
}

impl PartId {
    fn new(table: &Table, state: &SegmentState, index: IndexId) -> PartId {
        PartId { table: table.id(), segment: state.id(), index }
    }
}

/// Starts building the next missing part of an index in a partition, except those in `failed`. The
/// caller has taken this work off the agenda.
pub(crate) fn start(
    context: &TaskContext,
    table: &Arc<Table>,
    partition: &Partition,
    failed: &Set<PartId>,
) -> Option<PartBuild> {
    if table.indexes().is_empty() {
        return None;
    }
    let visible = context.snapshots().visible();
    let segments = partition.segments();
    for state in segments.iter().filter(|state| state.is_current()) {
        let missing = |index: &&Index| {
            state.part(index.id()).is_none()
                && !failed.contains(&PartId::new(table, state, index.id()))
        };
        if let Some(index) = table.indexes().iter().find(missing) {
            // More parts may be missing. A segment that is not visible yet must wait: its commit
            // may still fail.
            partition.consider(Work::IndexParts);
            if state.exists_at(visible) {
                return Some(PartBuild::new(table, partition.number(), index, state.clone()));
            }
        }
    }
    None
}

impl PartBuild {
    /// The part being built.
    pub fn part(&self) -> PartId {
        PartId::new(&self.table, &self.state, self.index)
    }

    /// The partition of its segment.
    pub fn place(&self) -> Place {
        self.table.place(self.table.partition(self.partition))
    }

    fn new(
        table: &Arc<Table>,
        partition: u32,
        index: &Index,
        state: Arc<SegmentState>,
    ) -> PartBuild {
        debug_assert!(
            table.partition(partition).segment(state.id()).is_some(),
            "partition {partition} does not list segment {}",
            state.id()
        );
        let columns = index.columns().iter().map(|at| spec_of(table.schema().key_column(*at)));
        let order = IndexOrder { columns: (0..index.columns().len()).collect(), ..index.order() };
        let builder = SegmentBuilder::new(columns.collect()).writing(0).with_indexes(vec![order]);
        PartBuild {
            table: table.clone(),
            partition,
            index: index.id(),
            state,
            builder: Some(builder),
            next_row: 0,
            files: NewFiles::default(),
        }
    }

    /// Does a bounded amount of work. Can be called again after a read of absent bytes; after any
    /// other error the build must be abandoned.
    pub fn step(&mut self, context: &TaskContext) -> Result<Progress> {
        let _within = walked::within(Path::Build);
        if !self.is_wanted(context) {
            self.abandon(context);
            return Ok(Progress::Done);
        }
        if self.builder.is_some() {
            self.read_some(context)?;
            return Ok(Progress::More);
        }
        if self.files.step(context.files())? {
            return Ok(Progress::More);
        }
        self.commit(context)?;
        debug_assert!(self.files.is_empty(), "an index build ends with files of its own");
        Ok(Progress::Done)
    }

    /// Removes the file written so far.
    pub fn abandon(&mut self, context: &TaskContext) {
        self.files.abandon(context.files());
        self.table.partition(self.partition).consider(Work::IndexParts);
    }

    /// Whether the table still has the index, and the segment.
    fn is_wanted(&self, context: &TaskContext) -> bool {
        let newest = context.catalog().newest(&self.table);
        self.state.is_current()
            && newest.is_ok_and(|newest| {
                newest.shares_partitions(&self.table) && newest.has_index(self.index)
            })
    }

    fn read_some(&mut self, context: &TaskContext) -> Result<()> {
        let Some(builder) = &mut self.builder else { return Ok(()) };
        let index = self.table.index(self.index)?;
        let rows = self.state.segment.rows();
        debug_assert!(
            builder.rows() == self.next_row,
            "{} of {} rows that were read are in an index part",
            builder.rows(),
            self.next_row
        );
        let mut blocks = 0;
        while self.next_row < rows && blocks < READ_BLOCKS {
            let count = limits::BLOCK_ROWS.min(rows - self.next_row);
            let layout = self.table.layout();
            builder.push(&block_columns(layout, index, &self.state, self.next_row, count)?);
            self.next_row += count;
            invariant!(
                builder.rows() == self.next_row,
                "row {} of a segment becomes row {} of an index part",
                self.next_row,
                builder.rows()
            );
            blocks += index.columns().len();
        }
        if self.next_row == rows
            && let Some(builder) = self.builder.take()
        {
            self.files.begin(context.files(), builder, FileKind::Part, self.table.id())?;
        }
        Ok(())
    }

    /// Appends and applies the record, unless the segment or the index is gone.
    fn commit(&mut self, context: &TaskContext) -> Result<()> {
        let files = self.files.complete();
        invariant!(files.len() == 1, "an index part is written as {} files", files.len());
        let file = files[0].clone();
        let (types, rows) = (self.table.index(self.index)?.types(), self.state.segment.rows());
        let parts = parts_of(&file);
        let part = parts.iter().find(|part| part.index() == self.index);
        // As its first reader checks it.
        invariant!(
            part.map_or(Ok(false), |part| part.fits(types, rows))?,
            "file {} is not a part of index {} for {rows} rows",
            file.name(),
            self.index
        );
        let mut turn = context.commits().lock();
        if !self.is_wanted(context) {
            drop(turn);
            self.abandon(context);
            return Ok(());
        }
        invariant!(
            self.state.part(self.index).is_none(),
            "segment {} gets a second part of index {}",
            self.state.id(),
            self.index
        );
        let mut payload = record::begin(turn.next());
        let part = NewPart { segment: self.state.id(), index: self.index, file: file.id() };
        let partition = self.table.partition(self.partition);
        // Recovery refuses a part of a segment that the log does not know.
        invariant!(
            partition.segment(part.segment).is_some(),
            "segment {} gets an index part and is not listed",
            part.segment
        );
        let place = self.table.place(partition);
        record::add_part(&mut payload, place, part);
        record::describe(&mut payload, place, &Description::of(FileKind::Part, &file));
        let committed = turn.append(&payload)?;
        self.state.add_parts(&file);
        // Directories cache the index parts they were built from.
        partition.update_segments(|list| list.forget_directories(part.segment));
        // The log may name the file from here on, even if the sync fails.
        self.files.are_named(context.files());
        drop(turn);
        context.commits().settle_strictly(committed)
    }
}
