//! Generates the operations of sessions, according to each session's role.

use crate::op::condition::Where;
use crate::op::row::{Column, Row};
use crate::op::shape::{INDEXES, Index};
use crate::op::{Op, Place, Upsert};
use crate::plan::{ACCOUNTS, BIG, Maker, PASSING, Script, UNIQUE, keys};
use nacredb::OnDuplicate;

impl Maker {
    pub(crate) fn script(&mut self) -> Script {
        let count = 3 + self.random.below(22) as usize;
        let mut ops = Vec::new();
        let role = match self.random.below(if self.indexed { 24 } else { 16 }) {
            0..=2 => "bank",
            3 => "auditor",
            4 => "reader",
            5 | 6 => "racer",
            7 => "catalog",
            8 | 9 => "loader",
            10 | 11 => "keeper",
            16..=18 => "rival",
            19 | 20 => "schemer",
            21 | 22 => "seeker",
            _ => "sql",
        };
        while ops.len() < count {
            match role {
                "bank" => self.transfer(&mut ops),
                "auditor" => self.audit(&mut ops),
                "reader" => self.read(&mut ops),
                "racer" => self.race(&mut ops),
                "catalog" => self.catalog(&mut ops),
                "loader" => self.load(&mut ops),
                "keeper" => self.keep(&mut ops),
                "rival" => self.vie(&mut ops),
                "schemer" => self.scheme(&mut ops),
                "seeker" => self.seek(&mut ops),
                _ => self.sql(&mut ops),
            }
        }
        Script { role, ops, prepares: false }
    }

    fn transfer(&mut self, ops: &mut Vec<Op>) {
        let table = "bank";
        let from = self.random.between(0, ACCOUNTS - 1);
        let to = (from + self.random.between(1, ACCOUNTS - 1)) % ACCOUNTS;
        let amount = self.random.between(1, 50);
        ops.push(Op::Begin);
        if self.random.percent(30) {
            ops.push(Op::ForUpdate { table, rows: Where::Key(from) });
        }
        ops.push(Op::Add { table, rows: Where::Key(from), add: -amount });
        ops.push(Op::Add { table, rows: Where::Key(to), add: amount });
        ops.push(if self.random.percent(90) { Op::Commit } else { Op::Rollback });
    }

    fn audit(&mut self, ops: &mut Vec<Op>) {
        let long = self.random.percent(50);
        if long {
            ops.push(Op::Begin);
        }
        for _ in 0..1 + self.random.below(6) {
            ops.push(Op::Audit { table: "bank", rows: Where::All });
            if self.random.percent(30) {
                ops.push(Op::Sleep { ms: self.random.below(5) });
            }
        }
        if long {
            ops.push(Op::Commit);
        }
    }

    fn read(&mut self, ops: &mut Vec<Op>) {
        ops.push(Op::Begin);
        for _ in 0..3 + self.random.below(12) {
            let table = self.table();
            let rows = self.rows();
            ops.push(match self.random.below(5) {
                0 => Op::Audit { table, rows: Where::All },
                1 => Op::Sleep { ms: self.random.below(5) },
                _ => Op::Select { table, rows },
            });
        }
        ops.push(Op::Commit);
    }

    /// Many sessions on few keys.
    fn race(&mut self, ops: &mut Vec<Op>) {
        let table = "a";
        let explicit = self.random.percent(60);
        if explicit {
            ops.push(Op::Begin);
        }
        for _ in 0..1 + self.random.below(3) {
            let k = self.random.between(0, 2);
            let rows = Where::Key(k);
            ops.push(match self.random.below(8) {
                0 => Op::Insert { table, rows: vec![self.row(k)] },
                6 | 7 => Op::Upsert { table, rows: vec![self.row(k)], how: self.how() },
                1 => Op::Delete { table, rows },
                2 => Op::ForUpdate { table, rows },
                3 => Op::Select { table, rows },
                4 => Op::Rekey { table, rows, by: self.random.between(-1, 1) },
                _ => Op::Add { table, rows, add: 1 },
            });
        }
        if explicit {
            ops.push(if self.random.percent(85) { Op::Commit } else { Op::Rollback });
        }
    }

    fn catalog(&mut self, ops: &mut Vec<Op>) {
        let table = *self.random.pick(&PASSING);
        let rows = self.rows();
        ops.push(match self.random.below(9) {
            7 | 8 => {
                let (from, if_missing) = (self.table(), self.random.percent(40));
                Op::CreateAs { table, from, rows, if_missing }
            }
            0 | 1 => {
                let (keyed, if_missing) = (self.random.percent(70), self.random.percent(50));
                let few = if self.indexed { self.random.below(3) } else { 0 };
                let mut indexes: Vec<Index> =
                    (0..few).map(|_| *self.random.pick(&INDEXES[..3])).collect();
                indexes.sort();
                indexes.dedup();
                Op::Create {
                    table,
                    keyed,
                    keys: keys(&mut self.random, keyed),
                    indexes,
                    documents: false,
                    if_missing,
                }
            }
            2 => Op::Drop { table },
            3 => Op::Insert { table, rows: self.new_rows() },
            4 => Op::Select { table, rows: Where::All },
            5 => Op::Delete { table, rows },
            _ => Op::Optimize { table, full: false },
        });
    }

    /// Many sessions on few unique values.
    fn vie(&mut self, ops: &mut Vec<Op>) {
        if self.random.percent(30) {
            // A value that exists only briefly.
            let v = self.random.between(0, 4);
            ops.push(Op::Insert { table: UNIQUE, rows: vec![Row { v, ..self.row(50 + v) }] });
            ops.push(Op::Delete { table: UNIQUE, rows: Where::Key(50 + v) });
            return;
        }
        let table = if self.random.percent(80) { UNIQUE } else { "heap" };
        let explicit = self.random.percent(60);
        if explicit {
            ops.push(Op::Begin);
        }
        for _ in 0..1 + self.random.below(3) {
            let (k, v) = (self.random.between(0, 3), self.random.between(0, 4));
            let rows = match self.random.below(6) {
                0 => Where::V(v),
                1 => Where::In([v, v + 1, 7]),
                2 => Where::S("of".into()),
                3 => Where::Keys(0, 2),
                _ => Where::Key(k),
            };
            let row = |maker: &mut Maker, k| Row { v, ..maker.row(k) };
            ops.push(match self.random.below(12) {
                0 | 1 => Op::Insert { table, rows: vec![row(self, k)] },
                2 | 3 => Op::Upsert {
                    table: UNIQUE,
                    rows: vec![row(self, k), row(self, k + 1)],
                    how: self.how(),
                },
                4 | 5 => Op::Number { table, rows, v },
                6 => Op::Add { table, rows, add: 1 },
                7 => Op::Delete { table, rows },
                8 => Op::Text { table, rows, text: self.text() },
                9 => Op::ForUpdate { table, rows },
                10 => Op::Rekey { table, rows, by: self.random.between(-1, 1) },
                _ => Op::Select { table, rows },
            });
        }
        if explicit {
            ops.push(if self.random.percent(85) { Op::Commit } else { Op::Rollback });
        }
    }

    /// Indexes and columns are added and dropped on tables with rows.
    fn scheme(&mut self, ops: &mut Vec<Op>) {
        if self.random.percent(20) {
            return self.constrain(ops);
        }
        let table = if self.random.percent(70) { self.table() } else { UNIQUE };
        let index = *self.random.pick(&INDEXES);
        let (alter, lenient) = (self.random.percent(30), self.random.percent(30));
        let rows = self.rows();
        ops.push(match self.random.below(20) {
            0..=5 => Op::CreateIndex { table, index, alter, if_missing: lenient && !alter },
            6..=8 => Op::DropIndex { table, name: index.name, alter, if_there: lenient && !alter },
            9 | 10 => Op::AddColumn {
                table,
                default: *self.random.pick(&[None, Some(7), Some(-1)]),
                place: *self.random.pick(&[Place::Last, Place::First, Place::AfterKey]),
                if_missing: lenient,
            },
            11 => Op::DropColumn { table, column: Column::W, if_there: lenient },
            12 => Op::Truncate { table },
            13 => Op::Wide { table, rows, w: *self.random.pick(&[None, Some(3), Some(7)]) },
            14 => Op::Select { table, rows: Where::W(*self.random.pick(&[3, 7, -1])) },
            15 => Op::Maintain { steps: 1 + self.random.below(6) as usize },
            16 => Op::Insert { table, rows: self.new_rows() },
            17 => Op::Optimize { table, full: self.random.percent(30) },
            _ => Op::Select { table, rows },
        });
    }

    /// Creates a unique index over conforming rows, most of them in segments, while other sessions
    /// write, again and again. There are enough that what they write often has the value of one.
    fn constrain(&mut self, ops: &mut Vec<Op>) {
        let (table, index) = (UNIQUE, INDEXES[5]);
        let rows: Vec<Row> = (0..30).map(|k| Row { v: k - 15, ..self.row(k) }).collect();
        ops.push(Op::DropIndex { table, name: index.name, alter: false, if_there: true });
        ops.push(Op::Delete { table, rows: Where::All });
        ops.push(Op::Upsert { table, rows, how: Upsert::Replace });
        ops.push(Op::Optimize { table, full: false });
        for _ in 0..5 {
            ops.push(Op::CreateIndex { table, index, alter: false, if_missing: false });
            ops.push(Op::DropIndex { table, name: index.name, alter: false, if_there: true });
        }
        ops.push(Op::CreateIndex { table, index, alter: false, if_missing: false });
    }

    /// Queries that can use indexes.
    fn seek(&mut self, ops: &mut Vec<Op>) {
        let explicit = self.random.percent(40);
        if explicit {
            ops.push(Op::Begin);
        }
        for _ in 0..1 + self.random.below(5) {
            let table = if self.random.percent(70) { self.table() } else { UNIQUE };
            let rows = self.values();
            ops.push(match self.random.below(12) {
                0 => Op::First {
                    table,
                    rows,
                    limit: 1 + self.random.below(4) as usize,
                    down: self.random.percent(50),
                },
                1 => Op::Join { table, with: self.table(), rows },
                2 => Op::Audit { table, rows },
                3 => Op::Add { table, rows, add: self.random.between(-2, 2) },
                4 => Op::Text { table, rows, text: self.text() },
                5 => Op::Delete { table, rows },
                6 => Op::ForUpdate { table, rows },
                _ => Op::Select { table, rows },
            });
        }
        if explicit {
            ops.push(Op::Commit);
        }
    }

    /// A statement that inserts more rows than the rowstore takes, followed by operations on them.
    pub(crate) fn fill(&mut self) -> Vec<Op> {
        let (table, keyed) = (BIG, self.random.percent(60));
        let keys = *self.random.pick(&["", ", sort key (v)"]);
        let indexes: Vec<Index> =
            INDEXES[..1].iter().copied().filter(|_| self.random.percent(50)).collect();
        let mut ops = vec![
            Op::Create { table, keyed, keys, indexes, documents: false, if_missing: true },
            Op::Fill {
                table,
                policy: OnDuplicate::Error,
                rows: 65_536 + self.random.between(0, 2_000),
            },
            Op::Audit { table, rows: Where::All },
            Op::Select { table, rows: Where::V(self.random.between(0, 999)) },
        ];
        let policy =
            *self.random.pick(&[OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace]);
        let more = [
            Op::CreateIndex { table, index: INDEXES[2], alter: false, if_missing: false },
            Op::CreateIndex { table, index: INDEXES[5], alter: false, if_missing: false },
            Op::Fill { table, policy, rows: 65_600 },
            Op::Delete { table, rows: Where::V(3) },
            Op::Maintain { steps: 20 },
            Op::Select { table, rows: Where::Both("fill".into(), 12) },
        ];
        for op in more {
            if self.random.percent(50) {
                ops.push(op);
            }
        }
        ops
    }

    fn load(&mut self, ops: &mut Vec<Op>) {
        let table = if self.indexed && self.random.percent(25) { UNIQUE } else { self.table() };
        let policy =
            *self.random.pick(&[OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace]);
        let batches = (0..1 + self.random.below(4))
            .map(|_| {
                let count = 1 + self.random.below(25);
                let mut rows: Vec<Row> = (0..count)
                    .map(|_| {
                        let k = self.key();
                        self.row(k)
                    })
                    .collect();
                if self.random.percent(50) {
                    rows.sort();
                    rows.dedup_by_key(|row| row.k);
                }
                rows
            })
            .collect();
        ops.push(Op::Bulk { table, policy, batches });
        if self.random.percent(50) {
            ops.push(Op::Select { table, rows: Where::All });
        }
    }

    fn keep(&mut self, ops: &mut Vec<Op>) {
        let table = self.table();
        ops.push(match self.random.below(12) {
            0..=4 => Op::Maintain { steps: 1 + self.random.below(4) as usize },
            5 | 6 => Op::Optimize { table, full: true },
            7 | 8 => Op::Optimize { table, full: false },
            9 => Op::Check,
            10 => Op::SyncLog,
            _ => Op::Sleep { ms: self.random.below(30) },
        });
    }

    fn sql(&mut self, ops: &mut Vec<Op>) {
        let explicit = self.random.percent(50);
        if explicit {
            ops.push(Op::Begin);
        }
        let count = if explicit { 1 + self.random.below(7) } else { 1 };
        for _ in 0..count {
            let op = self.statement();
            ops.push(op);
            if explicit && self.random.percent(25) {
                let name = *self.random.pick(&["p", "q"]);
                ops.push(match self.random.below(5) {
                    0..=1 => Op::Savepoint(name),
                    2..=3 => Op::RollbackTo(name),
                    _ => Op::Release(name),
                });
            }
        }
        if explicit {
            ops.push(if self.random.percent(80) { Op::Commit } else { Op::Rollback });
        }
    }

    fn statement(&mut self) -> Op {
        let table = if self.random.percent(5) { *self.random.pick(&PASSING) } else { self.table() };
        let rows = self.rows();
        match self.random.below(24) {
            20 | 21 => {
                Op::Upsert { table: self.upserted(), rows: self.new_rows(), how: self.how() }
            }
            22 => Op::Copy {
                table,
                from: self.table(),
                rows,
                by: *self.random.pick(&[1_000, 5_000, -3_000, 1]),
            },
            0..=5 => Op::Insert { table, rows: self.new_rows() },
            6..=8 => Op::Add { table, rows, add: self.random.between(-9, 9) },
            9 => Op::Text { table, rows, text: self.text() },
            10 | 11 => Op::Rekey { table, rows, by: *self.random.pick(&[1, -1, 100, -100]) },
            12..=14 => Op::Delete { table, rows },
            15 => Op::ForUpdate { table, rows },
            16 => Op::Audit { table, rows },
            _ => Op::Select { table, rows },
        }
    }

    pub(crate) fn how(&mut self) -> Upsert {
        use Upsert::{Duplicate, Ignore, Nothing, Replace, Update};
        *self.random.pick(&[Replace, Ignore, Nothing, Update, Duplicate])
    }

    /// A table for upserts, which needs a primary key.
    fn upserted(&mut self) -> &'static str {
        match self.random.below(4) {
            0 => "b",
            1 if self.indexed => UNIQUE,
            _ => "a",
        }
    }

    /// Any table except the bank, whose sum must not change.
    pub(crate) fn table(&mut self) -> &'static str {
        const NAMES: [&str; 5] = ["a", "a", "a", "b", "heap"];
        self.random.pick::<&'static str>(&NAMES)
    }

    fn key(&mut self) -> i64 {
        self.random.between(0, self.keys - 1)
    }

    /// A condition on values instead of keys.
    pub(crate) fn values(&mut self) -> Where {
        let v = self.random.between(-30, 30);
        let s = (*self.random.pick(&["mother", "of", "pearl", ""])).to_string();
        match self.random.below(8) {
            0 => Where::Vs(v, v + self.random.between(0, 20)),
            1 => Where::In([v, v + 1, -v]),
            2 => Where::S(s),
            3 => Where::Both(s, v),
            4 => Where::Either(s, v),
            5 => Where::NoText,
            _ => Where::V(v),
        }
    }

    pub(crate) fn rows(&mut self) -> Where {
        if self.indexed && self.random.percent(30) {
            return self.values();
        }
        let k = self.key();
        match self.random.below(10) {
            0 => Where::All,
            1 => Where::Remainder(self.random.between(0, 6)),
            2 => Where::NoText,
            3..=5 => Where::Keys(k, k + self.random.between(0, self.keys / 3)),
            _ => Where::Key(k),
        }
    }

    pub(crate) fn new_rows(&mut self) -> Vec<Row> {
        let count = *self.random.pick(&[1, 1, 2, 5, 20]);
        let from = self.key();
        // Mostly neighbouring keys; sometimes keys beyond all others, which are certainly new.
        let from = if self.random.percent(40) {
            from + self.keys + self.random.between(0, 1_000)
        } else {
            from
        };
        (0..count).map(|at| self.row(from + at)).collect()
    }

    fn row(&mut self, k: i64) -> Row {
        Row { k, v: self.random.between(-100, 100), s: self.text(), w: None, z: None }
    }

    fn text(&mut self) -> Option<String> {
        let random = &mut self.random;
        match random.below(10) {
            0 | 1 => None,
            2 => Some(String::new()),
            3..=5 => Some((*random.pick(&["mother", "of", "pearl"])).to_string()),
            6 if self.long > 0 => {
                let tag = random.bits();
                Some(format!("{tag:x} ").repeat(self.long / 17 + 1))
            }
            _ => Some(format!("{:x}", random.bits())),
        }
    }
}
