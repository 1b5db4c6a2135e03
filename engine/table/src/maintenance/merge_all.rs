//! The merge of all runs of a table into one sorted run per partition: what `OPTIMIZE … FULL` does.
//!
//! It goes on step by step. Between its steps flushes, snapshots and other threads' steps can run,
//! and absent bytes be fetched. One runs at a time, because two would plan the same merges anew.

use crate::maintenance::collect::collect;
use crate::maintenance::scheduler::Scheduler;
use crate::table::version::Table;
use nacre_types::{Result, invariant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A merge of a whole table. After it is dropped, what it has begun goes on as background work.
pub struct MergeAll {
    table: Arc<Table>,
    stage: Stage,
    /// Whether flushes and snapshots that are due have not failed since it began.
    is_urgent: bool,
    turn: Option<MergeTurn>,
}

/// What the next step does.
enum Stage {
    /// Flushes the table.
    Flush,
    /// Plans the merge of a partition.
    Plan(u32),
    /// Merges a partition.
    Merge(u32),
    /// Removes the files that are left.
    Collect,
}

/// What a step of a merge of a whole table has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStep {
    /// There are more steps.
    More,
    /// Another one must end first. It was helped on.
    Busy,
    /// The table is merged.
    Done,
}

/// Held by the one that runs.
pub(super) struct MergeTurn(Arc<AtomicBool>);

impl MergeTurn {
    /// Takes the turn; `None` if it is taken.
    pub fn take(taken: &Arc<AtomicBool>) -> Option<MergeTurn> {
        (!taken.swap(true, Ordering::AcqRel)).then(|| MergeTurn(taken.clone()))
    }
}

impl Drop for MergeTurn {
    fn drop(&mut self) {
        let was_taken = self.0.swap(false, Ordering::AcqRel);
        invariant!(was_taken, "two merges of whole tables ran at a time");
    }
}

impl MergeAll {
    /// Merges the segments of a table, beginning with the first step.
    pub(crate) fn new(table: &Arc<Table>) -> MergeAll {
        MergeAll { table: table.clone(), stage: Stage::Flush, is_urgent: true, turn: None }
    }

    /// Does a step. Can be called again after a read of absent bytes.
    pub(crate) fn step(&mut self, scheduler: &Scheduler) -> Result<MergeStep> {
        let context = scheduler.context();
        context.commits().check_writable()?;
        if self.turn.is_none() {
            self.turn = MergeTurn::take(scheduler.merging_all());
        }
        if self.turn.is_none() {
            return match scheduler.maintain_in_turn() {
                Err(error) if error.missing().is_some() => Err(error),
                // Any other error is that of the work.
                _ => Ok(MergeStep::Busy),
            };
        }
        match self.stage {
            Stage::Flush => {
                scheduler.flush(&self.table)?;
                self.stage = Stage::Plan(0);
            }
            Stage::Plan(number) | Stage::Merge(number) => {
                let is_planned = matches!(self.stage, Stage::Merge(_));
                let is_left = self.merge_partition(scheduler, number, is_planned)?;
                let is_last = number as usize + 1 >= self.table.partitions().len();
                self.stage = match (is_left, is_last) {
                    (true, _) => Stage::Merge(number),
                    (false, true) => Stage::Collect,
                    (false, false) => Stage::Plan(number + 1),
                };
            }
            Stage::Collect => {
                let _tasks = scheduler.lock();
                context.commits().check_open()?;
                collect(context)?;
                return Ok(MergeStep::Done);
            }
        }
        Ok(MergeStep::More)
    }

    /// Does a step of the merge of a partition; returns whether there are more.
    fn merge_partition(
        &mut self,
        scheduler: &Scheduler,
        number: u32,
        is_planned: bool,
    ) -> Result<bool> {
        let mut tasks = scheduler.lock();
        scheduler.context().commits().check_open()?;
        // The table may have been altered meanwhile.
        let table = scheduler.context().catalog().newest(&self.table)?;
        let partition = table.partition(number);
        debug_assert!(self.turn.is_some(), "a whole table is merged out of turn");
        if !scheduler.plan_all(&mut tasks, &table, partition, is_planned)? {
            return Ok(false);
        }
        // Planned again after a miss, it would begin again.
        self.stage = Stage::Merge(number);
        let stepped = scheduler.merge_some(&mut tasks, &table, partition);
        if stepped.is_ok() && self.is_urgent {
            self.is_urgent = scheduler.do_all_urgent(&mut tasks);
        }
        scheduler.note(&tasks);
        stepped.map(|()| true)
    }
}
