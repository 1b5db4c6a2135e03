//! A join whose right side does not fit in memory: both sides are cut into partitions by the hash
//! of the key, and each pair of partitions is joined on its own (Grace hash join: Kitsuregawa,
//! Tanaka, Moto-oka, *Application of Hash to Data Base Machine and Its Architecture*, 1983).

use super::build_side::{BuildSide, Nulls};
use super::keys::{evaluate_all, without_nulls};
use super::spec::JoinSpec;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::spill::{Partitions, SpilledPartition};
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_types::{Result, invariant};
use std::sync::Arc;

/// The partitions of both sides: first the right one is written, then the left one, then pairs are
/// taken.
pub(super) struct JoinPartitions {
    spec: Arc<JoinSpec>,
    nulls: Nulls,
    /// Until all rows of a side are there.
    right: Option<Partitions>,
    left: Option<Partitions>,
    rights: Vec<SpilledPartition>,
    pairs: std::vec::IntoIter<(SpilledPartition, SpilledPartition)>,
}

/// Rows whose key has a null.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NullKeys {
    Keep,
    LeaveOut,
}

impl NullKeys {
    fn kept_if(keep: bool) -> NullKeys {
        if keep { NullKeys::Keep } else { NullKeys::LeaveOut }
    }
}

impl JoinPartitions {
    /// Moves the rows of a build side into partitions, for the `level`th time.
    pub fn begin(
        spec: Arc<JoinSpec>,
        level: u32,
        build: &mut BuildSide,
        context: &Context<'_>,
    ) -> Result<JoinPartitions> {
        let file = context.spill_file("join")?;
        let mut right = Partitions::new(&file, &spec.right.types, level, context);
        let left = Partitions::new(&file, &spec.left.types, level, context);
        build.drain(&spec, &mut |batch| {
            add(&mut right, &spec.right.keys, NullKeys::Keep, &batch, context).map(|_| ())
        })?;
        Ok(JoinPartitions {
            spec,
            nulls: build.nulls,
            right: Some(right),
            left: Some(left),
            rights: Vec::new(),
            pairs: Vec::new().into_iter(),
        })
    }

    /// Null information of the whole right side.
    pub fn nulls(&self) -> Nulls {
        self.nulls
    }

    /// Adds a batch of the right side.
    pub fn add_right(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        self.nulls.any_row |= batch.selected() > 0;
        let nulls = NullKeys::kept_if(self.spec.keeps_right());
        if let Some(right) = &mut self.right {
            self.nulls.any_null |= add(right, &self.spec.right.keys, nulls, batch, context)?;
        }
        Ok(())
    }

    /// Writes the buffered rest of the right side.
    pub fn finish_right(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(right) = self.right.take() {
            self.rights = right.finish(context)?;
        }
        Ok(())
    }

    /// Adds a batch of the left side.
    pub fn add_left(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        let nulls = NullKeys::kept_if(!self.spec.needs_partner());
        if let Some(left) = &mut self.left {
            add(left, &self.spec.left.keys, nulls, batch, context)?;
        }
        Ok(())
    }

    /// Writes the buffered rest of the left side and pairs the partitions.
    pub fn finish_left(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(left) = self.left.take() {
            let (lefts, rights) = (left.finish(context)?, std::mem::take(&mut self.rights));
            invariant!(
                lefts.len() == rights.len(),
                "{} left partitions for {} right ones",
                lefts.len(),
                rights.len()
            );
            self.pairs = lefts.into_iter().zip(rights).collect::<Vec<_>>().into_iter();
        }
        Ok(())
    }

    /// The next pair of partitions that can produce rows.
    pub fn next_pair(&mut self) -> Option<(SpilledPartition, SpilledPartition)> {
        let keeps_right = self.spec.keeps_right();
        self.pairs
            .find(|(left, right)| left.rows.rows() > 0 || (keeps_right && right.rows.rows() > 0))
    }
}

/// Adds a batch to the partitions of its side; whether a key had a null.
fn add(
    to: &mut Partitions,
    keys: &[Expr],
    nulls: NullKeys,
    batch: &Batch,
    context: &Context<'_>,
) -> Result<bool> {
    let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
    let keys = evaluate_all(keys, batch, context)?;
    let usable = without_nulls(&keys, rows).filter(|usable| usable.len() < rows.count());
    let kept = match (&usable, nulls) {
        (Some(usable), NullKeys::LeaveOut) => rows.narrowed(usable),
        _ => rows,
    };
    to.add(&keys, batch, kept, context)?;
    Ok(usable.is_some())
}
