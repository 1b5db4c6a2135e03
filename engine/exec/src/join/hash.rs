//! Joins. The right input is collected and its keys become groups; each left row looks up its group and
//! is paired with the rows there. Without keys every right row is in one group, which is the nested loop.
//!
//! Where left rows come out whether they have a partner or not, the right input is not asked for anything before a left
//! row comes that may have one: what nobody gets to must not fail (`sql/unnest/lazy`).
//!
//! The collected side is not changed by being probed, so that several threads may share it, each with an operator
//! of its own (`parallel`); only marks are set there, which rows found a partner (`build`). Null keys never match. The
//! residual is part of the join: a row whose pairs it refuses is unmatched (`probe`).

use super::build_side::{Build, JoinSpec, has_no_rows, keeps_right};
use super::keys::{evaluate_all, without_nulls};
use super::partitioned::{Nulls, SpilledJoin};
use super::probe::Probe;
use crate::buffer::pieces;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::group::Seen;
use crate::join_filter::Filters;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::plan::JoinKind;
use nacre_types::Result;
use std::sync::Arc;

/// Hash join and nested loop.
pub(crate) struct HashJoin {
    pub(super) spec: JoinSpec,
    pub(super) residual: Option<[Expr; 1]>,
    pub(super) left_keys: Vec<Expr>,
    pub(super) right_keys: Vec<Expr>,
    pub(super) left: Box<dyn Operator>,
    /// Until it is collected.
    pub(super) right: Option<Box<dyn Operator>>,
    pub(super) build: Arc<Build>,
    /// What the left side would like to know of the keys, by key.
    pub(super) filters: Filters,
    pub(super) seen: Seen,
    /// One of several that share a build: others see to its rows.
    pub(super) shares: bool,
    pub(super) probe: Option<Probe>,
    pub(super) left_done: bool,
    /// Right and full joins: next row to ask whether it was left alone.
    pub(super) unmatched_at: usize,
    /// When this joins partitions of a join that spilled: how often they were cut.
    pub(super) level: u32,
    pub(super) spilled: Option<Box<SpilledJoin>>,
}

impl HashJoin {
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>, spec: JoinSpec) -> HashJoin {
        let build = Arc::new(Build::new(&spec));
        HashJoin { right: Some(right), shares: false, ..HashJoin::probing(left, build, spec) }
    }

    /// What is left of the rows of a build when everybody who shares it is done.
    pub fn rest(build: Arc<Build>, spec: JoinSpec) -> HashJoin {
        let nothing = Box::new(crate::operator::Values::new(spec.left_types.clone(), Vec::new()));
        HashJoin { shares: false, ..HashJoin::probing(nothing, build, spec) }
    }

    /// Over what was collected before. Does not give out rows of the right alone; [`HashJoin::rest`] does.
    pub fn probing(left: Box<dyn Operator>, build: Arc<Build>, mut spec: JoinSpec) -> HashJoin {
        let (left_keys, right_keys) = std::mem::take(&mut spec.keys).into_iter().unzip();
        let residual = spec.residual.take().map(|e| [e]);
        let left_done = has_no_rows(&build, spec.kind);
        HashJoin {
            spec,
            residual,
            left_keys,
            right_keys,
            left,
            right: None,
            build,
            filters: Vec::new(),
            seen: Seen::default(),
            shares: true,
            probe: None,
            left_done,
            unmatched_at: 0,
            level: 0,
            spilled: None,
        }
    }

    /// Tells the left side about the keys before it is asked for rows.
    pub fn filling(mut self, filters: Filters) -> HashJoin {
        self.filters = filters;
        self
    }

    /// Over what was collected before, if nobody else looks at it.
    pub fn over(left: Box<dyn Operator>, build: Arc<Build>, spec: JoinSpec) -> HashJoin {
        HashJoin { shares: false, ..HashJoin::probing(left, build, spec) }
    }

    /// Of partitions that were cut so often, out of a right side that had this.
    pub fn of_partition(mut self, level: u32, nulls: Nulls) -> HashJoin {
        if let Some(build) = Arc::get_mut(&mut self.build) {
            build.nulls = nulls;
        }
        HashJoin { level, ..self }
    }

    /// Collects the right side, in partitions once it does not fit; once.
    fn collect_right(&mut self, context: &Context<'_>) -> Result<()> {
        let Some(mut right) = self.right.take() else { return Ok(()) };
        while let Some(batch) = right.next(context)? {
            context.check_cancelled()?;
            for batch in pieces(batch) {
                self.collect(&batch, context)?;
            }
        }
        if let Some(spilled) = &mut self.spilled {
            // Filters that are not filled let everything pass.
            return spilled.finish_right(context);
        }
        if let Some(build) = Arc::get_mut(&mut self.build) {
            build.finish();
        }
        self.build.fill(&self.filters);
        self.left_done = has_no_rows(&self.build, self.spec.kind);
        Ok(())
    }

    /// Takes in a batch of the right side.
    fn collect(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        if let Some(spilled) = &mut self.spilled {
            return spilled.add_right(batch, context);
        }
        let Some(build) = Arc::get_mut(&mut self.build) else { return Ok(()) };
        if !build.collect(batch, &self.right_keys, keeps_right(self.spec.kind), context)? {
            let spec = whole_spec(&self.spec, &self.left_keys, &self.right_keys, &self.residual);
            self.spilled = Some(Box::new(SpilledJoin::begin(spec, self.level, build, context)?));
        }
        Ok(())
    }

    /// Whether the right side is collected when a left row asks for it, and not before.
    fn waits(&self) -> bool {
        use JoinKind::{Left, Mark, MarkIn, Single};
        matches!(self.spec.kind, Left | Single | Mark | MarkIn)
    }

    /// Whether any of these left rows may have a partner. With a null key it has none, but for `IN` it depends on the
    /// other side what that means, unless the key is compared with a constant: that says which rows get there at all.
    fn asks(&self, batch: &Batch, context: &Context<'_>) -> Result<bool> {
        let (all, keys): (_, Vec<Expr>) = match self.spec.kind {
            JoinKind::MarkIn => {
                let pairs = self.left_keys.iter().zip(&self.right_keys);
                let constant =
                    pairs.filter(|(_, right)| matches!(right.kind, ExprKind::Literal(_)));
                (false, constant.map(|(left, _)| left.clone()).collect())
            }
            _ => (true, Vec::new()),
        };
        let keys = evaluate_all(if all { &self.left_keys } else { &keys }, batch, context)?;
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        Ok(without_nulls(&keys, rows).is_none_or(|usable| !usable.is_empty()))
    }

    pub(super) fn keeps_right(&self) -> bool {
        keeps_right(self.spec.kind)
    }

    pub(super) fn keeps_left(&self) -> bool {
        matches!(self.spec.kind, JoinKind::Left | JoinKind::Full | JoinKind::Single)
    }

    /// Whether left rows come out at most once, by themselves, when all their partners are known.
    pub(super) fn judges_left(&self) -> bool {
        use JoinKind::{Anti, Mark, MarkIn, Semi};
        matches!(self.spec.kind, Semi | Anti | Mark | MarkIn)
    }

    /// Whether right rows come out by themselves, when all their partners are known.
    pub(super) fn judges_right(&self) -> bool {
        matches!(self.spec.kind, JoinKind::RightSemi | JoinKind::RightAnti)
    }
}

/// What a join was made from.
fn whole_spec(
    spec: &JoinSpec,
    left: &[Expr],
    right: &[Expr],
    residual: &Option<[Expr; 1]>,
) -> JoinSpec {
    JoinSpec {
        keys: left.iter().cloned().zip(right.iter().cloned()).collect(),
        residual: residual.as_ref().map(|[e]| e.clone()),
        ..spec.clone()
    }
}

impl Operator for HashJoin {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if !self.waits() {
            self.collect_right(context)?;
        }
        if let Some(spilled) = &mut self.spilled {
            return spilled.next(&mut *self.left, context);
        }
        loop {
            let Some(mut probe) = self.probe.take() else {
                if self.left_done {
                    break;
                }
                match self.left.next(context)? {
                    Some(batch) if self.right.is_some() && self.asks(&batch, context)? => {
                        let left =
                            std::mem::replace(&mut self.left, crate::operator::Values::nothing());
                        self.left = Box::new(Returned { batch: Some(batch), rest: left });
                        self.collect_right(context)?;
                        if let Some(spilled) = &mut self.spilled {
                            return spilled.next(&mut *self.left, context);
                        }
                    }
                    Some(batch) => self.probe = Some(self.start_probe(batch, context)?),
                    None => self.left_done = true,
                }
                continue;
            };
            let judges = self.judges_left() || self.judges_right();
            if (!judges || self.residual.is_some())
                && let Some(batch) = self.advance(&mut probe, context)?
            {
                self.probe = Some(probe);
                return Ok(Some(batch));
            }
            let rest = if self.judges_left() {
                self.left_kept(probe)
            } else if self.keeps_left() && self.residual.is_some() {
                self.left_alone(&probe)
            } else {
                None
            };
            if let Some(batch) = rest {
                return Ok(Some(batch));
            }
        }
        context.check_cancelled()?;
        if self.shares {
            return Ok(None);
        }
        Ok(self.right_alone())
    }
}

/// A batch that was looked at and given back, before all others.
struct Returned {
    batch: Option<Batch>,
    rest: Box<dyn Operator>,
}

impl Operator for Returned {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        match self.batch.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.rest.next(context),
        }
    }
}
