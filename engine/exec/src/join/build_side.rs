//! The collected side of a join: rows by the group of their key.

use super::keys::{evaluate_all, key_type, without_nulls};
use super::partitioned::Nulls;
use crate::buffer::limits::NO_ROW;
use crate::buffer::{RowBuffer, pieces};
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::group::Grouper;
use crate::join_filter::Filters;
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::JoinKind;
use nacre_types::{DataType, Result, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a join is made from.
#[derive(Clone)]
pub(crate) struct JoinSpec {
    pub kind: JoinKind,
    pub keys: Vec<(Expr, Expr)>,
    pub residual: Option<Expr>,
    pub left_types: Vec<DataType>,
    pub right_types: Vec<DataType>,
}

/// The right input: its rows, and after the last one the rows of each group together.
pub(crate) struct Build {
    pub(super) rows: RowBuffer,
    pub(super) grouper: Grouper,
    /// Group of each row, [`NO_ROW`] when its key has a null.
    group_of: Vec<u32>,
    /// Rows of group `g`: `members[starts[g]..starts[g + 1]]`.
    pub(super) starts: Vec<u32>,
    pub(super) members: Vec<u32>,
    /// Bytes of text of a row at most.
    pub(super) longest_row: usize,
    /// What there was, rows that were not collected included.
    pub nulls: Nulls,
    held: Reservation,
    /// Whether rows come out by themselves in the end, and then which of them found a partner.
    keeps: bool,
    pub(super) marks: Vec<AtomicBool>,
}

impl Build {
    /// Nothing collected.
    pub fn new(spec: &JoinSpec) -> Build {
        let types: Vec<_> =
            spec.keys.iter().map(|(l, r)| key_type(l.data_type, r.data_type)).collect();
        Build {
            rows: RowBuffer::new(&spec.right_types),
            grouper: Grouper::new(&types),
            group_of: Vec::new(),
            starts: Vec::new(),
            members: Vec::new(),
            longest_row: 0,
            nulls: Nulls::default(),
            held: Reservation::default(),
            keeps: keeps_right(spec.kind),
            marks: Vec::new(),
        }
    }

    pub(super) fn is_marked(&self, row: u32) -> bool {
        self.marks[row as usize].load(Ordering::Relaxed)
    }

    pub(super) fn mark(&self, row: u32) {
        self.marks[row as usize].store(true, Ordering::Relaxed);
    }

    /// Collects all of an input; `limit` when that cannot be held.
    pub fn collected(
        mut right: Box<dyn Operator>,
        spec: &JoinSpec,
        context: &Context<'_>,
    ) -> Result<Arc<Build>> {
        let mut build = Build::new(spec);
        let keys: Vec<Expr> = spec.keys.iter().map(|(_, key)| key.clone()).collect();
        while let Some(batch) = right.next(context)? {
            context.check_cancelled()?;
            for batch in pieces(batch) {
                if !build.collect(&batch, &keys, keeps_right(spec.kind), context)? {
                    return Err(context.over_limit("join"));
                }
            }
        }
        build.finish();
        Ok(Arc::new(build))
    }

    /// Takes in a batch; false when all of it together is more than can be held.
    pub fn collect(
        &mut self,
        batch: &Batch,
        keys: &[Expr],
        keeps_right: bool,
        context: &Context<'_>,
    ) -> Result<bool> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        context.statistics.build_rows.add(rows.count());
        let keys = evaluate_all(keys, batch, context)?;
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
                if keeps_right {
                    // Rows with a null key match nothing, but must come out in the end.
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
        let held = self.rows.memory_bytes() + self.grouper.memory_bytes() + self.group_of.len() * 8;
        Ok(self.held.try_resize(held, context.memory))
    }

    /// Fills the filters of the keys.
    pub fn fill(&self, filters: &Filters) {
        crate::join_filter::fill(filters, &self.grouper);
    }

    /// Gives all rows away.
    pub fn drain(
        &mut self,
        spec: &JoinSpec,
        to: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let Build { rows, nulls, .. } = std::mem::replace(self, Build::new(spec));
        self.nulls = nulls;
        let order: Vec<u32> = (0..rows.rows() as u32).collect();
        order
            .chunks(limits::VECTOR_ROWS)
            .try_for_each(|rows_of| to(Batch::new(rows.take(rows_of), rows_of.len())))
    }

    /// All rows are there.
    pub fn finish(&mut self) {
        let groups = self.grouper.groups();
        let mut starts = vec![0u32; groups + 1];
        for group in self.group_of.iter().filter(|g| **g != NO_ROW) {
            starts[*group as usize + 1] += 1;
        }
        for g in 0..groups {
            starts[g + 1] += starts[g];
        }
        let mut next = starts.clone();
        self.members = vec![0; starts.last().map_or(0, |n| *n as usize)];
        for (row, group) in self.group_of.iter().enumerate().filter(|(_, g)| **g != NO_ROW) {
            let at = &mut next[*group as usize];
            self.members[*at as usize] = row as u32;
            *at += 1;
        }
        self.starts = starts;
        self.group_of = Vec::new();
        self.longest_row = self.rows.longest_row();
        if self.keeps {
            self.marks.resize_with(self.rows.rows(), AtomicBool::default);
        }
    }
}

/// Nothing on the right: nothing of the left can come out either.
pub(super) fn has_no_rows(build: &Build, kind: JoinKind) -> bool {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    let needs_partner = matches!(kind, Inner | Semi | Right | RightSemi | RightAnti);
    needs_partner && build.members.is_empty()
}

pub(crate) fn keeps_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti)
}
