//! Joins whose right side does not fit in memory and cannot be partitioned by key: the right side
//! is read one block at a time, and the left side is read again for each block.
//!
//! This is correct only if each pair of rows is independent of the others; other kinds of joins
//! fail with `limit`.

use super::build_side::{BuildSide, Nulls};
use super::probe_join::{ProbeJoin, RightRows};
use super::spec::JoinSpec;
use crate::context::Context;
use crate::operator::protocol::Operator;
use crate::spill::{SpillScan, SpilledRows};
use nacre_column::Batch;
use nacre_types::Result;
use std::sync::Arc;

/// Joins the left rows with one block of the right rows after the other.
pub(super) struct BlockJoin {
    spec: Arc<JoinSpec>,
    /// Nulls of the whole right side.
    nulls: Nulls,
    left: Arc<SpilledRows>,
    right: SpilledRows,
    /// The first chunk of the right side behind the blocks so far.
    at: usize,
    /// The join with the block before `at`.
    current: Option<ProbeJoin>,
    /// Whether all blocks are joined.
    is_done: bool,
}

impl BlockJoin {
    /// Joins rows of the temporary file.
    pub fn new(
        left: SpilledRows,
        right: SpilledRows,
        nulls: Nulls,
        spec: Arc<JoinSpec>,
    ) -> BlockJoin {
        BlockJoin { spec, nulls, left: Arc::new(left), right, at: 0, current: None, is_done: false }
    }

    /// Collects the next block.
    fn collect_block(&mut self, context: &Context<'_>) -> Result<BuildSide> {
        let mut build = BuildSide::new(&self.spec);
        build.nulls = self.nulls;
        let mut fits = true;
        while fits && let Some(batch) = self.right.read(self.at)? {
            context.check_cancelled()?;
            fits = build.collect(&batch, &self.spec, context)?;
            self.at += 1;
        }
        build.complete(&self.spec);
        Ok(build)
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
                self.is_done = self.at >= self.right.chunks();
            }
            if self.is_done {
                return Ok(None);
            }
            // Without right rows there is one empty block, because left rows may still be returned.
            let is_first = self.at == 0;
            let build = self.collect_block(context)?;
            let is_only = is_first && self.at >= self.right.chunks();
            if !is_only && !self.spec.pairs_are_independent() {
                return Err(context.over_limit("join"));
            }
            let left = Box::new(SpillScan::new(self.left.clone()));
            let (build, spec) = (Arc::new(build), self.spec.clone());
            self.current = Some(ProbeJoin::new(left, build, spec, RightRows::Return));
        }
    }
}
