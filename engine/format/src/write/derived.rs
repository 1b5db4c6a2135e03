//! Columns that are derived from those of the rows when a segment is written: the key order, the
//! filter of the keys, and the columns of indexes. They take the whole segment to sort, so they are
//! made in steps.

use super::blocks::Column;
use super::filter::FilterBuild;
use super::index_order::{IndexOrder, permuted_block};
use crate::column::ColumnSpec;
use nacre_column::{BlockValues, RowSorter, Values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, invariant};
use std::collections::VecDeque;

/// What is derived.
pub(super) enum Wanted {
    /// The row numbers in the order of some columns.
    KeyOrder {
        columns: Vec<usize>,
        id: u32,
    },
    /// The filter of some columns.
    KeyFilter {
        columns: Vec<usize>,
        id: u32,
    },
    Index(IndexOrder),
}

impl Wanted {
    /// Number of columns it makes.
    pub fn columns(&self) -> usize {
        match self {
            Wanted::KeyOrder { .. } | Wanted::KeyFilter { .. } => 1,
            Wanted::Index(index) => index.keys.len() + 2,
        }
    }

    fn sources(&self) -> &[usize] {
        match self {
            Wanted::KeyOrder { columns, .. } | Wanted::KeyFilter { columns, .. } => columns,
            Wanted::Index(index) => &index.columns,
        }
    }
}

/// Derives columns, in order.
pub(super) struct Derivation {
    rows: usize,
    wanted: VecDeque<Wanted>,
    stage: Stage,
    /// Row numbers in the order of the current columns.
    order: Vec<u32>,
    /// The current index columns in that order.
    sorted: Vec<Column>,
    added: Vec<Column>,
}

enum Stage {
    Begin,
    Sort(RowSorter),
    /// Writes down the order, and gathers the sorted columns of an index.
    Gather,
    Filter(FilterBuild),
}

impl Derivation {
    /// Derives these columns for a segment of some rows.
    pub fn new(wanted: Vec<Wanted>, rows: usize) -> Derivation {
        Derivation {
            rows,
            wanted: wanted.into(),
            stage: Stage::Begin,
            order: Vec::new(),
            sorted: Vec::new(),
            added: Vec::new(),
        }
    }

    /// Does work that takes about as long as writing `left` blocks; returns what it cost. `None`
    /// once everything is derived.
    pub fn step(&mut self, columns: &[Column], left: usize) -> Option<usize> {
        let wanted = self.wanted.front()?;
        debug_assert!(
            wanted.sources().iter().all(|at| *at < columns.len()),
            "a column is derived from one that is not there"
        );
        let sources: Vec<&[BlockValues]> =
            wanted.sources().iter().map(|at| columns[*at].blocks.as_slice()).collect();
        let rows = self.rows;
        match &mut self.stage {
            Stage::Begin => {
                self.stage = match wanted {
                    Wanted::KeyFilter { .. } => Stage::Filter(FilterBuild::new(rows)),
                    _ => Stage::Sort(RowSorter::new((0..rows as u32).collect(), left)),
                };
                Some(0)
            }
            Stage::Sort(sorter) => {
                let cost = sorter.step(&sources);
                if cost.is_none() {
                    self.end_sort(columns);
                }
                Some(cost.unwrap_or(0))
            }
            Stage::Gather => {
                let numbers = self.added.last_mut()?;
                let at = numbers.blocks.len();
                let Some(part) = self.order.chunks(BLOCK_ROWS).nth(at) else {
                    self.end_gather(at);
                    return Some(0);
                };
                let rows = part.iter().map(|row| i64::from(*row)).collect();
                numbers.blocks.push((Values::I64(rows), None));
                for (column, source) in self.sorted.iter_mut().zip(&sources) {
                    let physical = column.spec.data_type.physical();
                    debug_assert!(
                        column.blocks.len() == at,
                        "a column of an index has {} blocks, another {at}",
                        column.blocks.len()
                    );
                    column.blocks.push(permuted_block(source, physical, part));
                }
                Some(1 + 2 * self.sorted.len())
            }
            Stage::Filter(filter) => {
                let sorted: Vec<&[BlockValues]> =
                    self.sorted.iter().map(|column| column.blocks.as_slice()).collect();
                let more = filter.step(if sorted.is_empty() { &sources } else { &sorted });
                if !more {
                    self.end_filter();
                }
                Some(1)
            }
        }
    }

    /// The derived columns.
    pub fn finish(self) -> Vec<Column> {
        debug_assert!(self.wanted.is_empty(), "columns of a segment are missing");
        self.added
    }

    fn end_sort(&mut self, columns: &[Column]) {
        let Stage::Sort(sorter) = std::mem::replace(&mut self.stage, Stage::Begin) else { return };
        self.order = sorter.finish();
        invariant!(
            self.order.len() == self.rows,
            "{} of {} rows are put in order",
            self.order.len(),
            self.rows
        );
        let id = match self.wanted.front() {
            Some(Wanted::Index(index)) => {
                invariant!(
                    index.columns.len() == index.keys.len(),
                    "{} ids for the {} columns of an index",
                    index.keys.len(),
                    index.columns.len()
                );
                let empty = |(at, id): (&usize, &u32)| {
                    let column = &columns[*at];
                    let spec = ColumnSpec { id: *id, ..column.spec.clone() };
                    Column { searched: true, ..Column::new(spec, Vec::new(), column.raw_bytes) }
                };
                self.sorted = index.columns.iter().zip(&index.keys).map(empty).collect();
                index.rows
            }
            Some(Wanted::KeyOrder { id, .. }) => *id,
            Some(Wanted::KeyFilter { .. }) | None => return,
        };
        let spec = ColumnSpec { id, data_type: DataType::UInt32, nullable: false };
        self.added.push(Column::new(spec, Vec::new(), self.rows as u64 * 8));
        self.stage = Stage::Gather;
    }

    /// Called once this number of blocks is in order.
    fn end_gather(&mut self, blocks: usize) {
        debug_assert!(
            blocks == self.rows.div_ceil(BLOCK_ROWS),
            "{blocks} blocks of {} rows are in order",
            self.rows
        );
        self.order = Vec::new();
        self.stage = match self.wanted.front() {
            Some(Wanted::Index(_)) => Stage::Filter(FilterBuild::new(self.rows)),
            _ => {
                self.wanted.pop_front();
                Stage::Begin
            }
        };
    }

    fn end_filter(&mut self) {
        let Stage::Filter(filter) = std::mem::replace(&mut self.stage, Stage::Begin) else {
            return;
        };
        let id = match self.wanted.pop_front() {
            Some(Wanted::Index(index)) => index.filter,
            Some(Wanted::KeyFilter { id, .. } | Wanted::KeyOrder { id, .. }) => id,
            None => return,
        };
        self.added.append(&mut self.sorted);
        let spec = ColumnSpec { id, data_type: DataType::UInt16, nullable: false };
        self.added.push(Column::new(spec, filter.finish(), self.rows as u64 * 8));
    }
}
