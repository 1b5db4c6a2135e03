//! Joins whose collected side does not fit: both sides are cut into partitions by the hash of the key, and each pair
//! of partitions is joined by itself, cutting it again when it still does not fit (Grace hash join).
//!
//! Where cutting does not help, because all rows of a partition have one key or there are no keys, the right side is
//! taken a block at a time and the left one is read again for each. That is right only where a pair of rows counts
//! whatever other pairs there are; the other kinds end with `limit`.

use super::build_side::{Build, JoinSpec, keeps_right};
use super::hash::HashJoin;
use super::keys::{evaluate_all, without_nulls};
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::operator::protocol::Operator;
use crate::spill::{Partition, Partitions, SpillScan, SpilledRows};
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::JoinKind;
use nacre_types::Result;
use std::sync::Arc;

/// After so many levels a partition is taken as it is.
const MAX_LEVELS: u32 = 6;

/// What `IN` must know of the whole right side.
#[derive(Clone, Copy, Default)]
pub(crate) struct Nulls {
    /// Whether there was any row, and any with a null in its key.
    pub any_row: bool,
    pub any_null: bool,
}

/// See the module.
pub(crate) struct SpilledJoin {
    spec: JoinSpec,
    left_keys: Vec<Expr>,
    right_keys: Vec<Expr>,
    level: u32,
    nulls: Nulls,
    /// Until all of it is there.
    right: Option<Partitions>,
    left: Option<Partitions>,
    rights: Vec<Partition>,
    pairs: std::vec::IntoIter<(Partition, Partition)>,
    current: Option<Box<dyn Operator>>,
}

/// Left rows without a partner do not come out.
fn needs_partner(kind: JoinKind) -> bool {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    matches!(kind, Inner | Semi | Right | RightSemi | RightAnti)
}

impl SpilledJoin {
    /// Puts what was collected of the right side into partitions. `level`: how often its rows were cut before.
    pub fn begin(
        spec: JoinSpec,
        level: u32,
        build: &mut Build,
        context: &Context<'_>,
    ) -> Result<SpilledJoin> {
        let file = context.spill_file("join")?;
        let (left_keys, right_keys) = spec.keys.iter().cloned().unzip();
        let right = Partitions::new(&file, &spec.right_types, level, context);
        let left = Partitions::new(&file, &spec.left_types, level, context);
        let mut join = SpilledJoin {
            level,
            nulls: build.nulls,
            right: Some(right),
            left: Some(left),
            rights: Vec::new(),
            pairs: Vec::new().into_iter(),
            current: None,
            left_keys,
            right_keys,
            spec,
        };
        build.drain(&join.spec, &mut |batch| {
            join_add(&mut join.right, &join.right_keys, true, &batch, context).map(|_| ())
        })?;
        Ok(join)
    }

    /// One more batch of the right side.
    pub fn add_right(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        self.nulls.any_row |= batch.selected() > 0;
        let keeps = keeps_right(self.spec.kind);
        self.nulls.any_null |= join_add(&mut self.right, &self.right_keys, keeps, batch, context)?;
        Ok(())
    }

    /// There are no more of them.
    pub fn finish_right(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(right) = self.right.take() {
            self.rights = right.finish(context)?;
        }
        Ok(())
    }

    /// The next joined rows; the left side is read first, all of it.
    pub fn next(
        &mut self,
        left: &mut dyn Operator,
        context: &Context<'_>,
    ) -> Result<Option<Batch>> {
        while self.left.is_some() {
            let Some(batch) = left.next(context)? else {
                if let Some(lefts) = self.left.take() {
                    let rights = std::mem::take(&mut self.rights);
                    self.pairs = lefts
                        .finish(context)?
                        .into_iter()
                        .zip(rights)
                        .collect::<Vec<_>>()
                        .into_iter();
                }
                break;
            };
            context.check_cancelled()?;
            join_add(
                &mut self.left,
                &self.left_keys,
                !needs_partner(self.spec.kind),
                &batch,
                context,
            )?;
        }
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some((left, right)) = self.pairs.next() else { return Ok(None) };
            let can_come_out =
                left.rows.rows() > 0 || (keeps_right(self.spec.kind) && right.rows.rows() > 0);
            if can_come_out {
                self.current = Some(self.join(left, right));
            }
        }
    }

    fn join(&self, left: Partition, right: Partition) -> Box<dyn Operator> {
        let (spec, level) = (self.spec.clone(), self.level + 1);
        if right.one_hash || level >= MAX_LEVELS {
            return Box::new(BlockJoin {
                spec,
                nulls: self.nulls,
                left: Arc::new(left.rows),
                right: right.rows,
                at: 0,
                current: None,
            });
        }
        let scan = |partition: Partition| Box::new(SpillScan::new(Arc::new(partition.rows)));
        Box::new(HashJoin::new(scan(left), scan(right), spec).of_partition(level, self.nulls))
    }
}

/// Puts a batch into partitions; whether there was a null in a key. Rows with such a key are left out unless they are
/// to be kept.
fn join_add(
    to: &mut Option<Partitions>,
    keys: &[Expr],
    keep_nulls: bool,
    batch: &Batch,
    context: &Context<'_>,
) -> Result<bool> {
    let Some(to) = to else { return Ok(false) };
    let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
    let keys = evaluate_all(keys, batch, context)?;
    let usable = without_nulls(&keys, rows).filter(|usable| usable.len() < rows.count());
    let kept = usable.as_ref().filter(|_| !keep_nulls).map_or(rows, |usable| rows.narrowed(usable));
    to.add(&keys, batch, kept, context)?;
    Ok(usable.is_some())
}

/// Joins the left rows with one block of the right ones after the other.
struct BlockJoin {
    spec: JoinSpec,
    nulls: Nulls,
    left: Arc<SpilledRows>,
    right: SpilledRows,
    /// Chunks of the right side that were in a block.
    at: usize,
    current: Option<HashJoin>,
}

impl BlockJoin {
    /// The next block, and whether there are more behind it.
    fn block(&mut self, context: &Context<'_>) -> Result<(Build, bool)> {
        let mut build = Build::new(&self.spec);
        build.nulls = self.nulls;
        let keys: Vec<Expr> = self.spec.keys.iter().map(|(_, key)| key.clone()).collect();
        let mut fits = true;
        while fits && let Some(batch) = self.right.read(self.at)? {
            context.check_cancelled()?;
            fits = build.collect(&batch, &keys, keeps_right(self.spec.kind), context)?;
            self.at += 1;
        }
        build.finish();
        Ok((build, self.at < self.right.chunks()))
    }
}

impl Operator for BlockJoin {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
                if self.at >= self.right.chunks() {
                    return Ok(None);
                }
            }
            if self.at > 0 && self.at >= self.right.chunks() {
                return Ok(None);
            }
            let first = self.at == 0;
            let (build, more) = self.block(context)?;
            let pairs_count_alone = matches!(
                self.spec.kind,
                JoinKind::Inner | JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti
            );
            if !pairs_count_alone && (more || !first) {
                return Err(context.over_limit("join"));
            }
            let left = Box::new(SpillScan::new(self.left.clone()));
            self.current = Some(HashJoin::over(left, Arc::new(build), self.spec.clone()));
        }
    }
}
