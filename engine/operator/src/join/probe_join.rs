//! A join whose right side is complete: left batches are probed as they come.

use super::build_side::BuildSide;
use super::probe::Prober;
use super::spec::JoinSpec;
use crate::context::Context;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_types::Result;
use std::sync::Arc;

/// Whether a join also returns right rows on their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RightRows {
    /// After the last left row.
    Return,
    /// Several joins share the build side; one of them returns the rows when all are done.
    LeaveToOthers,
}

/// Joins left rows with a complete build side.
pub struct ProbeJoin {
    /// `None` at its end.
    left: Option<Box<dyn Operator>>,
    prober: Prober,
    right_rows: RightRows,
}

impl ProbeJoin {
    /// Over a build side.
    pub fn new(
        left: Box<dyn Operator>,
        build: Arc<BuildSide>,
        spec: Arc<JoinSpec>,
        right_rows: RightRows,
    ) -> ProbeJoin {
        let prober = Prober::new(spec, build);
        let left = (!prober.leaves_nothing()).then_some(left);
        ProbeJoin { left, prober, right_rows }
    }

    /// Returns only the right rows due at the end, once all joins sharing the build side are done.
    pub fn rest(build: Arc<BuildSide>, spec: Arc<JoinSpec>) -> ProbeJoin {
        ProbeJoin { left: None, prober: Prober::new(spec, build), right_rows: RightRows::Return }
    }
}

impl Operator for ProbeJoin {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.prober.next(context)? {
                return Ok(Some(batch));
            }
            let Some(left) = &mut self.left else { break };
            match left.next(context)? {
                Some(batch) => self.prober.begin(batch, context)?,
                None => self.left = None,
            }
        }
        context.check_cancelled()?;
        Ok(match self.right_rows {
            RightRows::Return => self.prober.right_alone(),
            RightRows::LeaveToOthers => None,
        })
    }
}
