//! The build side of a join: rows grouped by key.

use super::keys::{evaluate_all, key_type, without_nulls};
use super::spec::JoinSpec;
use crate::buffer::limits::NO_ROW;
use crate::buffer::{RowBuffer, pieces};
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::group::Grouper;
use crate::join_filter::{self, JoinFilters};
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_types::{Result, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What `IN` must know about the whole right side.
#[derive(Clone, Copy, Default)]
pub(super) struct Nulls {
    /// Whether there was any row.
    pub any_row: bool,
    /// Whether there was a row with a null in its key.
    pub any_null: bool,
}

/// The right input. Once it is complete, the rows of each group are listed together.
pub struct BuildSide {
    pub(super) rows: RowBuffer,
    pub(super) grouper: Grouper,
    /// Group of each row, [`NO_ROW`] when its key has a null. Empty once the side is complete.
    group_of: Vec<u32>,
    /// Rows of group `g`: `members[starts[g]..starts[g + 1]]`.
    starts: Vec<u32>,
    pub(super) members: Vec<u32>,
    /// The most bytes of text in a row.
    pub(super) longest_row: usize,
    /// Covers all rows of the right side, including those not collected here.
    pub(super) nulls: Nulls,
    held: Reservation,
    /// If right rows are returned at the end: which of them found a partner.
    pub(super) marks: Vec<AtomicBool>,
}

impl BuildSide {
    /// Nothing collected.
    pub fn new(spec: &JoinSpec) -> BuildSide {
        debug_assert_eq!(spec.left.keys.len(), spec.right.keys.len(), "keys come in pairs");
        let pairs = spec.left.keys.iter().zip(&spec.right.keys);
        let types: Vec<_> = pairs.map(|(l, r)| key_type(l.data_type, r.data_type)).collect();
        BuildSide {
            rows: RowBuffer::new(&spec.right.types),
            grouper: Grouper::new(&types),
            group_of: Vec::new(),
            starts: vec![0],
            members: Vec::new(),
            longest_row: 0,
            nulls: Nulls::default(),
            held: Reservation::default(),
            marks: Vec::new(),
        }
    }

    /// Collects all of an input, fetching what it misses where the host's threads can wait; `limit`
    /// when it does not fit in memory.
    pub fn collected(
        mut right: Box<dyn Operator>,
        spec: &JoinSpec,
        context: &Context<'_>,
    ) -> Result<Arc<BuildSide>> {
        let mut build = BuildSide::new(spec);
        let mut waits = context.fetch_waits();
        while let Some(batch) = waits.call(|| right.next(context))? {
            context.check_cancelled()?;
            for batch in pieces(batch) {
                if !build.collect(&batch, spec, context)? {
                    return Err(context.over_limit("join"));
                }
            }
        }
        build.complete(spec);
        Ok(Arc::new(build))
    }

    /// Collects a batch; false when everything collected so far exceeds the memory.
    pub(super) fn collect(
        &mut self,
        batch: &Batch,
        spec: &JoinSpec,
        context: &Context<'_>,
    ) -> Result<bool> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        context.statistics.build_rows.add(rows.count());
        let keys = evaluate_all(&spec.right.keys, batch, context)?;
        let usable = without_nulls(&keys, rows);
        self.nulls.any_row |= !rows.is_empty();
        self.nulls.any_null |= usable.as_ref().is_some_and(|usable| usable.len() < rows.count());
        let mut groups = Vec::new();
        match usable {
            None => {
                self.grouper.assign(&keys, rows, &mut groups)?;
                self.rows.append(batch, rows)?;
                self.group_of.extend_from_slice(&groups);
            }
            Some(usable) => {
                let narrowed = rows.narrowed(&usable);
                self.grouper.assign(&keys, narrowed, &mut groups)?;
                if spec.keeps_right() {
                    // Rows with a null key match nothing but must be returned at the end.
                    self.rows.append(batch, rows)?;
                    let mut with_key = usable.iter().zip(&groups).peekable();
                    for row in rows.iter() {
                        let group = with_key.next_if(|(usable, _)| **usable as usize == row);
                        self.group_of.push(group.map_or(NO_ROW, |(_, group)| *group));
                    }
                } else {
                    self.rows.append(batch, narrowed)?;
                    self.group_of.extend_from_slice(&groups);
                }
            }
        }
        debug_assert_eq!(self.group_of.len(), self.rows.rows(), "every row has a group");
        let bytes =
            self.rows.memory_bytes() + self.grouper.memory_bytes() + self.group_of.len() * 8;
        Ok(self.held.try_resize(bytes, context.memory))
    }

    /// Lists the rows of each group together, after the last row.
    pub(super) fn complete(&mut self, spec: &JoinSpec) {
        debug_assert_eq!(self.group_of.len(), self.rows.rows(), "a build is completed once");
        let groups = self.grouper.groups();
        let mut starts = vec![0u32; groups + 1];
        for group in self.group_of.iter().filter(|g| **g != NO_ROW) {
            starts[*group as usize + 1] += 1;
        }
        for g in 0..groups {
            starts[g + 1] += starts[g];
        }
        let mut next = starts.clone();
        self.members = vec![0; starts[groups] as usize];
        for (row, group) in self.group_of.iter().enumerate().filter(|(_, g)| **g != NO_ROW) {
            let at = &mut next[*group as usize];
            self.members[*at as usize] = row as u32;
            *at += 1;
        }
        debug_assert_eq!(next[..groups], starts[1..], "each group has as many rows as counted");
        self.starts = starts;
        self.group_of = Vec::new();
        self.longest_row = self.rows.longest_row();
        if spec.keeps_right() {
            self.marks.resize_with(self.rows.rows(), AtomicBool::default);
        }
    }

    /// Passes all rows to `to` and is empty afterwards.
    pub(super) fn drain(
        &mut self,
        spec: &JoinSpec,
        to: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let BuildSide { rows, nulls, .. } = std::mem::replace(self, BuildSide::new(spec));
        self.nulls = nulls;
        let order: Vec<u32> = (0..rows.rows() as u32).collect();
        order
            .chunks(limits::VECTOR_ROWS)
            .try_for_each(|rows_of| to(Batch::new(rows.take(rows_of), rows_of.len())))
    }

    /// The rows of a group, in the order they came.
    pub(super) fn members(&self, group: u32) -> &[u32] {
        if group == NO_ROW {
            return &[];
        }
        let group = group as usize;
        &self.members[self.starts[group] as usize..self.starts[group + 1] as usize]
    }

    /// Whether no left row can produce anything.
    pub(super) fn leaves_nothing(&self, spec: &JoinSpec) -> bool {
        spec.needs_partner() && self.members.is_empty()
    }

    /// Whether a row found a partner.
    pub(super) fn is_marked(&self, row: u32) -> bool {
        self.marks[row as usize].load(Ordering::Relaxed)
    }

    /// Notes that a row found a partner.
    pub(super) fn mark(&self, row: u32) {
        self.marks[row as usize].store(true, Ordering::Relaxed);
    }

    /// Fills the filters that the left side applies to its keys.
    pub fn fill(&self, filters: &JoinFilters) {
        join_filter::fill(filters, &self.grouper);
    }
}
