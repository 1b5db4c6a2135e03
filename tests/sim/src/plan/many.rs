//! Scripts and faults for the long state machines: loads, merges, and changes and deletions of many
//! rows, each interrupted in its middle.

use crate::disk::{Call, Fault, FaultKind};
use crate::op::Op;
use crate::op::condition::Where;
use crate::op::row::Row;
use crate::plan::{Maker, Phase, Script, UNIQUE};
use nacre_testing::Random;
use nacredb::OnDuplicate;
use nacredb::walked::Path;

/// The paths that faults are aimed at, those that make few calls more often.
const AIMS: [Path; 15] = [
    Path::Load,
    Path::LoadRound,
    Path::LoadEnd,
    Path::LoadEnd,
    Path::Flush,
    Path::Merge,
    Path::Merge,
    Path::Snapshot,
    Path::Build,
    Path::ManyDeleted,
    Path::ManyUpdated,
    Path::ManyRekeyed,
    Path::ManyCommitted,
    Path::ManyCommitted,
    Path::ManyCommitted,
];

impl Maker {
    /// Changes or deletes many rows at once, among them rows that it has just written, and uses their keys
    /// and values again.
    pub(crate) fn many_script(&mut self) -> Script {
        let count = 6 + self.random.below(24) as usize;
        let mut ops = Vec::new();
        while ops.len() < count {
            self.many(&mut ops);
        }
        Script { role: "eraser", ops, prepares: false }
    }

    fn many(&mut self, ops: &mut Vec<Op>) {
        let table = if self.indexed && self.random.percent(25) { UNIQUE } else { self.table() };
        let first = self.random.between(0, 3) * 40;
        let count = *self.random.pick(&[8, 30, 120]);
        let rows: Vec<Row> = (first..first + count).map(|k| self.many_row(k)).collect();
        let replace = |rows: Vec<Row>| Op::Bulk {
            table,
            policy: OnDuplicate::Replace,
            batches: rows.chunks(50).map(<[Row]>::to_vec).collect(),
        };
        match self.random.below(8) {
            0..=2 => ops.push(replace(rows.clone())),
            3 => ops.push(Op::Insert { table, rows: rows.clone() }),
            _ => {}
        }
        if self.random.percent(60) {
            ops.push(Op::Optimize { table, full: self.random.percent(40) });
        }
        let is_explicit = self.random.percent(50);
        if is_explicit {
            ops.push(Op::Begin);
            ops.extend(self.random.percent(40).then_some(Op::Savepoint("p")));
        }
        for _ in 0..1 + self.random.below(2) {
            let change = self.change(table, first, count);
            ops.push(change);
        }
        if self.random.percent(30) {
            // After a deletion, the keys and values are free for its transaction.
            let again = rows.iter().step_by(3).cloned().collect();
            ops.push(Op::Insert { table, rows: again });
        }
        if is_explicit {
            ops.push(match self.random.below(6) {
                0 => Op::RollbackTo("p"),
                1 => Op::Delete { table, rows: Where::All },
                2 => Op::Audit { table, rows: Where::All },
                3 => Op::Add { table, rows: Where::Keys(first, first + 2), add: 1 },
                _ => Op::Select { table, rows: Where::Keys(first, first + 20) },
            });
            ops.push(if self.random.percent(70) { Op::Commit } else { Op::Rollback });
        }
        ops.push(match self.random.below(5) {
            0 => Op::Optimize { table, full: true },
            1 => Op::Maintain { steps: 1 + self.random.below(12) as usize },
            2 => Op::Insert { table, rows: rows.into_iter().step_by(4).collect() },
            3 => replace(rows),
            _ => Op::Select { table, rows: Where::All },
        });
    }

    /// Deletes many rows, or changes them: columns of any kind, unique values, or keys.
    fn change(&mut self, table: &'static str, first: i64, count: i64) -> Op {
        let rows = self.erased(first, count);
        match self.random.below(12) {
            0 | 1 => Op::Add { table, rows, add: self.random.between(-3, 3) },
            2 => Op::Text { table, rows, text: Some(format!("{:x}", self.random.bits())) },
            3 | 4 => Op::Rekey { table, rows, by: *self.random.pick(&[1, -1, 40, 1_000, -1_000]) },
            5 => Op::Wide { table, rows, w: Some(self.random.between(0, 9)) },
            _ => Op::Delete { table, rows },
        }
    }

    fn many_row(&mut self, k: i64) -> Row {
        // Mostly different values, so that a unique index does not refuse them.
        let v = if self.random.percent(95) { 10_000 + k } else { self.random.between(0, 30) };
        Row { k, v, s: Some(format!("{:x}", self.random.bits())), w: None, z: None }
    }

    fn erased(&mut self, first: i64, count: i64) -> Where {
        match self.random.below(5) {
            0 | 1 => Where::All,
            2 => Where::Keys(first, first + count / 2),
            3 => Where::Remainder(self.random.between(0, 6)),
            _ => Where::Keys(first, first + count),
        }
    }
}

impl Maker {
    /// Adds scripts that delete many rows. Returns the number of rows from which they are deleted
    /// together, in seeds that have them.
    pub(crate) fn erase(&mut self, seed: u64, phases: &mut [Phase]) -> Option<usize> {
        let mut random = Random::with_purpose(seed, "many");
        if !random.percent(40) {
            return None;
        }
        for phase in phases {
            phase.scripts.push(self.many_script());
        }
        Some(*random.pick(&[1, 2, 5, 20]))
    }

    /// Cancels operations in their middle.
    pub(crate) fn cancel(seed: u64, phases: &mut [Phase]) {
        let mut random = Random::with_purpose(seed, "cancel");
        if !random.percent(35) {
            return;
        }
        let percent = *random.pick(&[5, 20, 50]);
        for script in phases.iter_mut().flat_map(|phase| &mut phase.scripts) {
            let ops = std::mem::take(&mut script.ops);
            for op in ops {
                let is_long = op.locks_rows() || op.is_load();
                if is_long && script.role != "bank" && random.percent(percent) {
                    let within = *random.pick(&[2, 6, 20]);
                    let after = 1 + random.below(within);
                    script.ops.push(Op::Cancel { after });
                }
                script.ops.push(op);
            }
        }
    }

    /// Aims faults at the middle of long state machines.
    pub(crate) fn aim(seed: u64, phases: &mut [Phase]) {
        let mut random = Random::with_purpose(seed, "aimed faults");
        if !random.percent(35) {
            return;
        }
        for phase in phases {
            for _ in 0..1 + random.below(2) {
                let kind = match random.below(6) {
                    0 | 1 => FaultKind::Full { calls: 1 + random.below(60) },
                    2 | 3 => FaultKind::Fail,
                    4 => FaultKind::PowerCut,
                    _ => FaultKind::Kill,
                };
                let call = match kind {
                    FaultKind::Full { .. } => Some(*random.pick(&[Call::Create, Call::Write])),
                    _ => *random.pick(&[
                        None,
                        None,
                        Some(Call::Write),
                        Some(Call::Sync),
                        Some(Call::Create),
                        Some(Call::Read),
                    ]),
                };
                let within = Some(*random.pick(&AIMS));
                let within_calls = *random.pick(&[1, 3, 10, 40]);
                let nth = random.below(within_calls);
                phase.faults.push(Fault { call, class: None, within, nth, kind });
            }
        }
    }
}
