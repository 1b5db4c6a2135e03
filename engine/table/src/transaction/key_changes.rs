//! Which keys a transaction has added and removed: values of columns that rows refer to, or that refer to rows.

use crate::segments::state::SegmentState;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::step::{Step, Undo};
use nacre_column::Vector;
use nacre_rowstore::{Change, Row};
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{DataType, Error, Result, TableId, Value, key, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Rows of a block from which on its columns are decoded whole.
const MANY: u64 = 16;

/// Columns whose values are followed.
pub struct FollowedKey {
    /// The table.
    pub table: TableId,
    /// Ids of the columns.
    pub columns: Vec<u32>,
    /// Types as which their values are encoded.
    pub types: Vec<DataType>,
}

/// What rows had in the columns of a key, and have now. Rows with a null in one of them do not count.
#[derive(Default)]
pub struct KeyChanges {
    /// Values of new rows, and of changed rows after the change, encoded.
    pub added: Set<Vec<u8>>,
    /// Values of deleted rows, and of changed rows before the change, encoded.
    pub removed: Set<Vec<u8>>,
    /// Those of them that committed rows had.
    pub committed: Set<Vec<u8>>,
}

impl KeyChanges {
    fn note(&mut self, values: Vec<u8>, origin: Origin) {
        match origin {
            Origin::New => drop(self.added.insert(values)),
            Origin::Committed => {
                self.committed.insert(values.clone());
                self.removed.insert(values);
            }
            Origin::Own => drop(self.removed.insert(values)),
        }
    }
}

/// Where a row with a key was found.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    /// It is new.
    New,
    /// It was committed, and is not there any more.
    Committed,
    /// The transaction had written it, and it is not there any more.
    Own,
}

/// A followed key of a table.
struct Followed<'a> {
    key: &'a FollowedKey,
    /// Positions of its columns.
    columns: Vec<usize>,
    changes: &'a mut KeyChanges,
}

impl Followed<'_> {
    /// Notes a row, given the value of each of the columns.
    fn note(&mut self, values: impl Iterator<Item = Value>, origin: Origin) -> Result<()> {
        debug_assert!(
            self.columns.len() == self.key.types.len(),
            "{} columns are followed as {} types",
            self.columns.len(),
            self.key.types.len()
        );
        let mut encoded = Vec::new();
        for (value, data_type) in values.zip(&self.key.types) {
            if value.is_null() {
                return Ok(());
            }
            key::append(&mut encoded, *data_type, &value)?;
        }
        self.changes.note(encoded, origin);
        Ok(())
    }

    /// Notes a row in memory.
    fn row(&mut self, table: &Table, row: &Row, origin: Origin) -> Result<()> {
        debug_assert!(
            self.key.table == table.id(),
            "a row of table {} is followed as one of {}",
            table.id(),
            self.key.table
        );
        let columns = self.columns.clone();
        self.note(columns.iter().map(|at| table.layout().rows().value(row, *at)), origin)
    }

    /// Notes rows of a segment.
    fn segment(
        &mut self,
        table: &Table,
        segment: &Segment,
        rows: &RoaringBitmap,
        origin: Origin,
    ) -> Result<()> {
        debug_assert!(
            rows.max().is_none_or(|last| (last as usize) < segment.rows()),
            "row {:?} of {}",
            rows.max(),
            segment.rows()
        );
        let mapping = table.layout().segment_mapping(segment);
        debug_assert!(
            self.columns.iter().all(|at| *at < mapping.len()),
            "a column is followed that table {} does not have",
            table.id()
        );
        for start in (0..segment.rows()).step_by(limits::BLOCK_ROWS) {
            let count = limits::BLOCK_ROWS.min(segment.rows() - start);
            let range = start as u32..(start + count) as u32;
            let here = rows.range_cardinality(range.clone());
            if here < MANY {
                for row in rows.range(range) {
                    let values = table.layout().segment_row(segment, row, &self.columns)?;
                    self.note(values.into_iter(), origin)?;
                }
                continue;
            }
            let decoded = |at: &usize| {
                let column = &table.schema().columns[*at];
                match mapping[*at] {
                    Some(place) => segment.decode(place, start, count),
                    None => Ok(Vector::constant(column.data_type, &column.default, count)),
                }
            };
            let columns = self.columns.iter().map(decoded).collect::<Result<Vec<_>>>()?;
            for row in rows.range(range) {
                let at = row as usize - start;
                self.note(columns.iter().map(|column| column.value(at)), origin)?;
            }
        }
        Ok(())
    }
}

/// The changes of keys by the steps of a transaction after the first ones, in the order of `keys`.
pub(super) fn since(core: &Core, first: usize, keys: &[FollowedKey]) -> Result<Vec<KeyChanges>> {
    let mut changes: Vec<KeyChanges> = keys.iter().map(|_| KeyChanges::default()).collect();
    let mut tables: Vec<TableId> = keys.iter().map(|key| key.table).collect();
    tables.sort_unstable();
    tables.dedup();
    for id in tables {
        let Some(table) = super::ddl::table_by_id(core, id) else { continue };
        let of_table = keys.iter().zip(&mut changes).filter(|(key, _)| key.table == id);
        let mut followed = Vec::new();
        for (key, changes) in of_table {
            let columns = table.schema().positions(&key.columns).ok_or_else(|| {
                Error::corrupt(format!("a key of table {} lacks a column", table.schema().name))
            })?;
            followed.push(Followed { key, columns, changes });
        }
        of_one(core, first, &table, &mut followed)?;
    }
    Ok(changes)
}

fn of_one(
    core: &Core,
    first: usize,
    table: &Arc<Table>,
    followed: &mut [Followed<'_>],
) -> Result<()> {
    debug_assert!(
        followed.iter().all(|key| key.key.table == table.id()),
        "a key of another table is followed"
    );
    let mut seen: Set<usize> = Set::default();
    let of_table = |step: &&Step| step.table().is_some_and(|known| known.id() == table.id());
    for step in core.writes().steps_from(first).iter().filter(of_table) {
        match step {
            // What a row was before its first change counts.
            Step::Write(undo)
                if undo.claim.is_none() && seen.insert(Arc::as_ptr(&undo.node).addr()) =>
            {
                written(core, table, undo, followed)?;
            }
            Step::Claim(claimed) => {
                let segment = &claimed.state.segment;
                for key in &mut *followed {
                    key.segment(table, segment, &claimed.rows, Origin::Committed)?;
                }
            }
            Step::Hide { segment, rows, .. } => {
                let Some(state) = core.own_segment(*segment) else { continue };
                for key in &mut *followed {
                    key.segment(table, &state.segment, rows, Origin::Own)?;
                }
            }
            Step::Update(update) => {
                for own in update.own_segments() {
                    let rows = left(core, table, &own.state);
                    for key in &mut *followed {
                        key.segment(table, &own.state.segment, &rows, Origin::New)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rows of a segment of the transaction that it sees.
fn left(core: &Core, table: &Table, state: &SegmentState) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    debug_assert!(
        core.own_segment(state.id()).is_some(),
        "segment {} is not one of the transaction",
        state.id()
    );
    rows.insert_range(0..state.segment.rows() as u32);
    rows -= &*state.all_deleted();
    if let Some(hidden) = core.writes().hidden().of_segment(table, state.id()) {
        rows -= hidden;
    }
    rows
}

/// Notes what a row was before the step that first changed it, and is now.
fn written(core: &Core, table: &Table, undo: &Undo, followed: &mut [Followed<'_>]) -> Result<()> {
    debug_assert!(
        undo.node.is_locked_by(core.writes().owner()),
        "a row was written without its lock"
    );
    let Some(now) = undo.node.pending() else { return Ok(()) };
    let committed = || undo.node.newest().map(|version| version.change);
    let (before, origin) = match &undo.previous {
        Some(own) => (Some(own.clone()), Origin::Own),
        None => (committed(), Origin::Committed),
    };
    let mut note = |row: Row, origin| -> Result<()> {
        let row = table.layout().upgrade(row)?;
        followed.iter_mut().try_for_each(|key| key.row(table, &row, origin))
    };
    match (before, undo.hidden) {
        (Some(Change::Put(row)), _) => note(row, origin)?,
        // A row of a segment that the transaction has written.
        (_, Some(hidden)) => {
            if let Some(state) = core.own_segment(hidden.segment) {
                let rows = RoaringBitmap::from_iter([hidden.row]);
                for key in &mut *followed {
                    key.segment(table, &state.segment, &rows, Origin::Own)?;
                }
            }
        }
        _ => {}
    }
    match now {
        Change::Put(row) => {
            let row = table.layout().upgrade(row)?;
            followed.iter_mut().try_for_each(|key| key.row(table, &row, Origin::New))
        }
        Change::Delete | Change::Flushed => Ok(()),
    }
}
