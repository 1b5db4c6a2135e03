//! Scripts that change the catalog in transactions.

use crate::op::condition::Where;
use crate::op::row::Column;
use crate::op::shape::{INDEXES, Index};
use crate::op::{Op, Place};
use crate::plan::{Maker, PASSING, Phase, Script, UNIQUE, VIEWS};
use nacre_testing::Random;

impl Maker {
    /// Adds such scripts to some plans.
    pub(crate) fn migrations(self, seed: u64, phases: &mut [Phase]) -> Maker {
        let mut maker = Maker { random: Random::with_purpose(seed, "migrations"), ..self };
        if maker.random.percent(35) {
            for phase in phases {
                let scripts = 1 + maker.random.below(2);
                phase.scripts.extend((0..scripts).map(|_| maker.migration_script()));
            }
        }
        maker
    }

    fn migration_script(&mut self) -> Script {
        let count = 4 + self.random.below(20) as usize;
        let mut ops = Vec::new();
        while ops.len() < count {
            self.migrate(&mut ops);
        }
        Script { role: "migrator", ops, prepares: self.random.percent(20) }
    }

    /// A transaction that changes the catalog and rows.
    fn migrate(&mut self, ops: &mut Vec<Op>) {
        ops.push(Op::Begin);
        if self.random.percent(40) {
            let table = self.table();
            ops.push(Op::Insert { table, rows: self.new_rows() });
        }
        // A table that others have filled, and whose rows are in segments.
        let filled = if self.random.percent(70) { self.table() } else { UNIQUE };
        if self.random.percent(40) {
            let op = self.other_columns(filled);
            ops.push(op);
        }
        if self.random.percent(40) {
            let op = self.new_index(filled);
            ops.push(op);
        }
        for _ in 0..1 + self.random.below(6) {
            let op = self.migration_step(filled);
            ops.push(op);
            if self.random.percent(20) {
                let name = *self.random.pick(&["p", "q"]);
                ops.push(match self.random.below(3) {
                    0 => Op::Savepoint(name),
                    1 => Op::RollbackTo(name),
                    _ => Op::Release(name),
                });
            }
        }
        ops.push(if self.random.percent(75) { Op::Commit } else { Op::Rollback });
    }

    /// Other columns of a table with rows, which others go on changing.
    fn other_columns(&mut self, table: &'static str) -> Op {
        let lenient = self.random.percent(50);
        if self.random.percent(30) {
            return Op::DropColumn { table, column: Column::W, if_there: lenient };
        }
        Op::AddColumn {
            table,
            default: *self.random.pick(&[None, Some(7)]),
            place: *self.random.pick(&[Place::Last, Place::First]),
            if_missing: lenient,
        }
    }

    /// An index of such a table. Mostly unique ones: what others insert meanwhile may break them.
    fn new_index(&mut self, table: &'static str) -> Op {
        let lenient = self.random.percent(50);
        let unique: Vec<Index> = INDEXES.into_iter().filter(|index| index.unique).collect();
        let any = self.random.percent(30);
        let index = *self.random.pick(if any { &INDEXES[..] } else { &unique });
        Op::CreateIndex { table, index, alter: !lenient, if_missing: lenient }
    }

    fn migration_step(&mut self, filled: &'static str) -> Op {
        let table = *self.random.pick(&PASSING);
        let (index, lenient) = (*self.random.pick(&INDEXES), self.random.percent(50));
        let (rows, view) = (self.rows(), *self.random.pick(&VIEWS));
        let other = if self.random.percent(50) { filled } else { table };
        match self.random.below(26) {
            0..=4 => Op::Create {
                table,
                keyed: self.random.percent(70),
                keys: "",
                indexes: Vec::new(),
                documents: false,
                if_missing: lenient,
            },
            5 | 6 => Op::Drop { table },
            7 => Op::CreateAs { table, from: self.table(), rows, if_missing: lenient },
            8 => Op::CreateView {
                view,
                from: table,
                rows,
                star: self.random.percent(50),
                replace: lenient,
                if_missing: false,
            },
            9 => Op::DropView { view, if_there: lenient },
            10 => Op::CreateIndex { table: other, index, alter: !lenient, if_missing: lenient },
            11 => {
                Op::DropIndex { table: other, name: index.name, alter: !lenient, if_there: lenient }
            }
            12 | 13 => self.other_columns(other),
            14 => Op::Rename { table, to: self.random.pick::<&str>(&PASSING) },
            15 => Op::Truncate { table: if lenient { other } else { table } },
            16..=18 => Op::Insert { table: other, rows: self.new_rows() },
            19 => Op::Delete { table: other, rows },
            20 | 21 => Op::Add { table: other, rows, add: 1 },
            22 => Op::Wide { table: other, rows, w: *self.random.pick(&[None, Some(3)]) },
            23 => Op::Select { table: view, rows: Where::All },
            _ => Op::Select { table: other, rows },
        }
    }
}
