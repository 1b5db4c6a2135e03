//! The join operator: collects its right side, then probes it with left rows, or joins partitions
//! of both sides when the right one does not fit in memory.
//!
//! If the join returns left rows without a partner, it does not read the right side until a left
//! row may have one: an input that no row needs must not fail (the unnesting of `nacre_sql` relies
//! on it).

use super::blocks::BlockJoin;
use super::build_side::{BuildSide, Nulls};
use super::keys::{evaluate_all, without_nulls};
use super::partitions::JoinPartitions;
use super::probe::Prober;
use super::spec::JoinSpec;
use crate::buffer::pieces;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::join_filter::JoinFilters;
use crate::operator::protocol::Operator;
use crate::spill::{SpillScan, SpilledPartition};
use nacre_column::Batch;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::plan::JoinKind;
use nacre_types::Result;
use std::sync::Arc;

/// After this many levels of partitioning, partitions are joined a block at a time.
const MAX_LEVELS: u32 = 6;

/// Hash join and nested loop.
pub struct HashJoin {
    spec: Arc<JoinSpec>,
    /// `None` at its end.
    left: Option<Box<dyn Operator>>,
    /// Until it is collected.
    right: Option<Right>,
    /// A left batch to probe with.
    waiting: Option<Batch>,
    /// Over an empty build side until the right side is collected.
    prober: Prober,
    /// Filters of the left side's scans, to be filled with the keys.
    filters: JoinFilters,
    /// Number of times the inputs were partitioned before: 0 unless they are partitions of a
    /// spilled join.
    level: u32,
    /// Nulls of the whole right side, when the input is a partition of it.
    nulls: Nulls,
    /// Both sides on their way to the temporary file, when the right one does not fit.
    spilled: Option<JoinPartitions>,
    /// The join of two partitions.
    current: Option<Box<dyn Operator>>,
}

/// The right side while it is collected.
struct Right {
    rows: Box<dyn Operator>,
    build: BuildSide,
}

impl HashJoin {
    /// Joins two inputs. `filters`, one for each key, are filled before the first left row is read.
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        spec: JoinSpec,
        filters: JoinFilters,
    ) -> HashJoin {
        let spec = Arc::new(spec);
        let nothing = Arc::new(BuildSide::new(&spec));
        let right = Right { rows: right, build: BuildSide::new(&spec) };
        HashJoin {
            left: Some(left),
            right: Some(right),
            waiting: None,
            prober: Prober::new(spec.clone(), nothing),
            spec,
            filters,
            level: 0,
            nulls: Nulls::default(),
            spilled: None,
            current: None,
        }
    }

    /// The join as one of partitions, which were cut `level` times.
    fn of_partition(mut self, level: u32, nulls: Nulls) -> HashJoin {
        debug_assert!(level > 0, "partitions were cut at least once");
        (self.level, self.nulls) = (level, nulls);
        if let Some(right) = &mut self.right {
            right.build.nulls = nulls;
        }
        self
    }

    /// Collects the right side, in partitions once it does not fit; once. After an error of the
    /// right input, the next call continues.
    fn collect_right(&mut self, context: &Context<'_>) -> Result<()> {
        let Some(Right { rows, build }) = &mut self.right else { return Ok(()) };
        while let Some(batch) = rows.next(context)? {
            context.check_cancelled()?;
            for batch in pieces(batch) {
                if let Some(spilled) = &mut self.spilled {
                    spilled.add_right(&batch, context)?;
                } else if !build.collect(&batch, &self.spec, context)? {
                    let spec = self.spec.clone();
                    let spilled = JoinPartitions::begin(spec, self.level, build, context)?;
                    self.spilled = Some(spilled);
                }
            }
        }
        let Some(Right { mut build, .. }) = self.right.take() else { return Ok(()) };
        if let Some(spilled) = &mut self.spilled {
            // An empty filter passes everything.
            return spilled.finish_right(context);
        }
        build.complete(&self.spec);
        build.fill(&self.filters);
        self.prober = Prober::new(self.spec.clone(), Arc::new(build));
        if self.prober.leaves_nothing() {
            self.left = None;
        }
        Ok(())
    }

    /// Whether any of these left rows may have a partner. A row with a null key has none, except
    /// that the result of `IN` then depends on the right side, unless the key is compared with a
    /// constant: that says which rows get there at all.
    fn needs_right(&self, batch: &Batch, context: &Context<'_>) -> Result<bool> {
        let constant: Vec<Expr>;
        let keys = if self.spec.kind == JoinKind::MarkIn {
            let pairs = self.spec.left.keys.iter().zip(&self.spec.right.keys);
            let compared = pairs.filter(|(_, right)| matches!(right.kind, ExprKind::Literal(_)));
            constant = compared.map(|(left, _)| left.clone()).collect();
            &constant
        } else {
            &self.spec.left.keys
        };
        let keys = evaluate_all(keys, batch, context)?;
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        Ok(without_nulls(&keys, rows).is_none_or(|usable| !usable.is_empty()))
    }

    /// The next joined rows of the left batches; `None` after the last.
    fn next_probed(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.prober.next(context)? {
                return Ok(Some(batch));
            }
            let Some(left) = &mut self.left else { return Ok(None) };
            if self.waiting.is_none() {
                self.waiting = left.next(context)?;
            }
            let Some(batch) = &self.waiting else {
                self.left = None;
                continue;
            };
            if self.right.is_some() && self.needs_right(batch, context)? {
                self.collect_right(context)?;
            }
            let Some(batch) = self.waiting.take() else { continue };
            match &mut self.spilled {
                None => self.prober.begin(batch, context)?,
                Some(spilled) => {
                    spilled.add_left(&batch, context)?;
                    return Ok(None);
                }
            }
        }
    }

    /// The next joined rows of pairs of partitions. The whole left side is partitioned first.
    fn next_of_partitions(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let Some(spilled) = &mut self.spilled else { return Ok(None) };
        while let Some(left) = &mut self.left {
            match left.next(context)? {
                Some(batch) => {
                    context.check_cancelled()?;
                    spilled.add_left(&batch, context)?;
                }
                None => {
                    self.left = None;
                    spilled.finish_left(context)?;
                }
            }
        }
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some((left, right)) = spilled.next_pair() else { return Ok(None) };
            self.current =
                Some(join_of(left, right, spilled.nulls(), self.level + 1, self.spec.clone()));
        }
    }
}

/// The join of two partitions: partitioned again if need be, or a block at a time where cutting
/// would not help.
fn join_of(
    left: SpilledPartition,
    right: SpilledPartition,
    nulls: Nulls,
    level: u32,
    spec: Arc<JoinSpec>,
) -> Box<dyn Operator> {
    if right.one_hash || level >= MAX_LEVELS {
        return Box::new(BlockJoin::new(left.rows, right.rows, nulls, spec));
    }
    let scan = |partition: SpilledPartition| Box::new(SpillScan::new(Arc::new(partition.rows)));
    let join = HashJoin::new(scan(left), scan(right), (*spec).clone(), Vec::new());
    Box::new(join.of_partition(level, nulls))
}

impl Operator for HashJoin {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if !self.spec.collects_late() {
            self.collect_right(context)?;
        }
        if self.spilled.is_none()
            && let Some(batch) = self.next_probed(context)?
        {
            return Ok(Some(batch));
        }
        if self.spilled.is_some() {
            return self.next_of_partitions(context);
        }
        context.check_cancelled()?;
        Ok(self.prober.right_alone())
    }
}
