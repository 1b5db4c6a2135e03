//! Shrinks a failing plan: removes phases, faults, sessions and operations as long as it still
//! fails.

use crate::plan::{Phase, Plan, Script};
use crate::run::run;
use std::time::{Duration, Instant};

/// Maximum number of runs.
const MAX_RUNS: usize = 1_500;
/// Maximum time of all runs.
const MAX_TIME: Duration = Duration::from_secs(60);

struct Shrinker {
    best: Plan,
    sort: String,
    runs: usize,
    started: Instant,
}

/// The smallest plan found that fails in the same way.
pub fn shrink(plan: &Plan, failure: &str) -> Plan {
    let (best, sort) = (plan.clone(), sort(failure));
    let mut shrinker = Shrinker { best, sort, runs: 0, started: Instant::now() };
    loop {
        let before = size(&shrinker.best);
        shrinker.round();
        if size(&shrinker.best) == before || shrinker.is_over() {
            return shrinker.best;
        }
    }
}

/// The part of a failure message that identifies it in a smaller plan, without sessions and rows.
fn sort(failure: &str) -> String {
    let said = failure.split(": expected ").next().unwrap_or_default();
    said.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn size(plan: &Plan) -> usize {
    let phase = |p: &Phase| {
        let ops: usize = p.scripts.iter().map(|s| 1 + s.ops.len()).sum();
        1 + p.faults.len() + p.recovery_faults.len() + ops
    };
    plan.phases.iter().map(phase).sum()
}

impl Shrinker {
    fn is_over(&self) -> bool {
        self.runs >= MAX_RUNS || self.started.elapsed() > MAX_TIME
    }

    /// Keeps a change if the plan still fails in the same way.
    fn attempt(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        if self.is_over() {
            return false;
        }
        let mut plan = self.best.clone();
        change(&mut plan);
        self.runs += 1;
        let fails = run(&plan, false).failure.is_some_and(|failure| sort(&failure) == self.sort);
        if fails {
            self.best = plan;
        }
        fails
    }

    fn round(&mut self) {
        for at in (0..self.best.phases.len()).rev() {
            if self.best.phases.len() > 1 {
                self.attempt(|p| _ = p.phases.remove(at));
            }
        }
        for phase in 0..self.best.phases.len() {
            for at in (0..self.best.phases[phase].faults.len()).rev() {
                self.attempt(|p| _ = p.phases[phase].faults.remove(at));
            }
            for at in (0..self.best.phases[phase].recovery_faults.len()).rev() {
                self.attempt(|p| _ = p.phases[phase].recovery_faults.remove(at));
            }
            for at in (0..self.best.phases[phase].scripts.len()).rev() {
                let removed = self.attempt(|p| _ = p.phases[phase].scripts.remove(at));
                if !removed {
                    self.ops(phase, at);
                }
            }
        }
        self.attempt(|p| p.nested_percent = 0);
        self.attempt(|p| p.never_blocks = false);
        self.attempt(|p| p.absent = None);
    }

    /// Removes runs of operations, longest first.
    fn ops(&mut self, phase: usize, script: usize) {
        let ops = |plan: &Plan| plan.phases[phase].scripts[script].ops.len();
        let mut length = ops(&self.best);
        while length > 0 {
            let mut at = ops(&self.best);
            while at >= length {
                at -= length;
                self.attempt(|p| {
                    p.bank_whole = false;
                    let Script { ops, .. } = &mut p.phases[phase].scripts[script];
                    ops.drain(at..at + length);
                });
                at = at.min(ops(&self.best));
            }
            length /= 2;
        }
    }
}
