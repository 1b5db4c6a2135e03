//! Scripts besides those of `make`: renaming tables and columns, creating and reading views, and
//! reading streams while other sessions run.

use crate::op::condition::Where;
use crate::op::row::{Column, Row};
use crate::op::shape::INDEXES;
use crate::op::{Op, Place};
use crate::plan::{Maker, PASSING, Script, UNIQUE, VIEWS};

impl Maker {
    pub(crate) fn extra_script(&mut self) -> Script {
        let count = 3 + self.random.below(20) as usize;
        let mut ops = Vec::new();
        let role = *self.random.pick(&["namer", "viewer", "streamer"]);
        while ops.len() < count {
            match role {
                "namer" => self.rename(&mut ops),
                "viewer" => self.look(&mut ops),
                _ => self.stream(&mut ops),
            }
        }
        Script { role, ops, prepares: false }
    }

    /// A table that may be renamed: any except the bank.
    fn renamed(&mut self) -> &'static str {
        match self.random.below(8) {
            0..=2 => "a",
            3 => "b",
            4 => "heap",
            5 if self.indexed => UNIQUE,
            _ => self.random.pick::<&'static str>(&PASSING),
        }
    }

    /// A table or a view.
    fn readable(&mut self) -> &'static str {
        if self.random.percent(60) {
            self.random.pick::<&'static str>(&VIEWS)
        } else {
            self.renamed()
        }
    }

    fn wide(&mut self) -> Where {
        let n = *self.random.pick(&[3, 7, -1]);
        if self.random.percent(50) { Where::W(n) } else { Where::Z(n) }
    }

    /// One statement on a table, under its current name.
    fn touch(&mut self, table: &'static str) -> Op {
        let rows = self.rows();
        match self.random.below(9) {
            0 | 1 => Op::Insert { table, rows: self.new_rows() },
            2 | 3 => Op::Add { table, rows, add: 1 },
            4 => Op::Delete { table, rows },
            5 => Op::Text { table, rows, text: Some("of".into()) },
            6 => Op::Upsert { table, rows: self.new_rows(), how: self.how() },
            7 => Op::Optimize { table, full: self.random.percent(30) },
            _ => Op::Select { table, rows },
        }
    }

    fn rename(&mut self, ops: &mut Vec<Op>) {
        let table = self.renamed();
        let to = *self.random.pick(&PASSING);
        match self.random.below(12) {
            // Rename and rename back.
            0..=3 => {
                ops.push(Op::Rename { table, to });
                for _ in 0..self.random.below(3) {
                    let op = self.touch(to);
                    ops.push(op);
                }
                ops.push(Op::Rename { table: to, to: table });
            }
            // Another table takes the name, temporarily or permanently.
            4 | 5 => {
                ops.push(Op::Rename { table, to });
                ops.push(Op::Create {
                    table,
                    keyed: true,
                    keys: "",
                    indexes: Vec::new(),
                    documents: false,
                    if_missing: false,
                });
                ops.push(Op::Insert { table, rows: self.new_rows() });
                if self.random.percent(50) {
                    ops.push(Op::Drop { table });
                    ops.push(Op::Rename { table: to, to: table });
                }
            }
            // Two tables exchange names.
            6 => {
                ops.push(Op::Rename { table: "a", to });
                ops.push(Op::Rename { table: "b", to: "a" });
                ops.push(Op::Rename { table: to, to: "b" });
            }
            // A snapshot from before the renaming.
            7 | 8 => {
                ops.push(Op::Begin);
                for at in 0..2 + self.random.below(5) {
                    let name = if at % 2 == 0 { table } else { self.renamed() };
                    let op =
                        if self.random.percent(70) { self.select(name) } else { self.touch(name) };
                    ops.extend(op.fits_transaction().then_some(op));
                }
                ops.push(Op::Commit);
            }
            9 => ops.push(Op::RenameColumn { table, from: Column::W, to: Column::Z }),
            10 => ops.push(match self.random.below(7) {
                0 | 1 => Op::RenameColumn { table, from: Column::Z, to: Column::W },
                2 => Op::DropColumn { table, column: Column::Z, if_there: self.random.percent(50) },
                3 => Op::Wide { table, rows: Where::All, w: Some(3) },
                4 => Op::CreateIndex { table, index: INDEXES[4], alter: false, if_missing: false },
                _ => Op::AddColumn {
                    table,
                    default: *self.random.pick(&[None, Some(7), Some(-1)]),
                    place: *self.random.pick(&[Place::Last, Place::First, Place::AfterKey]),
                    if_missing: false,
                },
            }),
            _ => {
                let op = self.select(table);
                ops.push(op);
            }
        }
    }

    /// A read of a table or a view.
    fn select(&mut self, table: &'static str) -> Op {
        let rows = match self.random.below(10) {
            0 => self.wide(),
            1..=4 => Where::All,
            5 | 6 => self.values(),
            _ => self.rows(),
        };
        match self.random.below(8) {
            0 => Op::Audit { table, rows },
            1 => Op::First { table, rows, limit: 3, down: self.random.percent(50) },
            2 => match self.readable() {
                with if with != table => Op::Join { table, with, rows },
                _ => Op::Select { table, rows },
            },
            _ => Op::Select { table, rows },
        }
    }

    fn look(&mut self, ops: &mut Vec<Op>) {
        let view = *self.random.pick(&VIEWS);
        match self.random.below(12) {
            0..=2 => {
                let (star, replace) = (self.random.percent(60), self.random.percent(50));
                let if_missing = !replace && self.random.percent(40);
                let from = if self.random.percent(30) { self.readable() } else { self.renamed() };
                let rows = if self.random.percent(20) { self.wide() } else { self.rows() };
                ops.push(Op::CreateView { view, from, rows, star, replace, if_missing });
            }
            3 => ops.push(Op::DropView { view, if_there: self.random.percent(50) }),
            // Views with names of tables, and vice versa.
            4 => ops.push(match self.random.below(4) {
                0 => Op::Create {
                    table: view,
                    keyed: true,
                    keys: "",
                    indexes: Vec::new(),
                    documents: false,
                    if_missing: true,
                },
                1 => Op::Drop { table: view },
                2 => Op::Rename { table: PASSING[0], to: view },
                _ => Op::DropView { view: "a", if_there: false },
            }),
            5 => {
                let (table, rows) = (*self.random.pick(&PASSING), self.rows());
                ops.push(Op::CreateAs {
                    table,
                    from: view,
                    rows,
                    if_missing: self.random.percent(40),
                });
            }
            6 | 7 => {
                ops.push(Op::Begin);
                for _ in 0..2 + self.random.below(4) {
                    let name = self.readable();
                    let op = self.select(name);
                    ops.push(op);
                }
                ops.push(Op::Commit);
            }
            8 => {
                let (table, rows, by) =
                    (self.renamed(), self.rows(), 2_000 + self.random.between(0, 500));
                ops.push(Op::Copy { table, from: view, rows, by });
            }
            _ => {
                let op = self.select(view);
                ops.push(op);
            }
        }
    }

    /// Reads a stream batch by batch while this and other sessions change the underlying tables.
    fn stream(&mut self, ops: &mut Vec<Op>) {
        let table = if self.random.percent(80) { self.renamed() } else { self.readable() };
        let explicit = self.random.percent(40);
        if explicit {
            ops.push(Op::Begin);
            if self.random.percent(50) {
                ops.push(Op::Add { table, rows: self.rows(), add: 1 });
            }
        } else if self.random.percent(50) {
            let rows: Vec<Row> = self.new_rows();
            ops.push(Op::Insert { table, rows });
            ops.push(Op::Optimize { table, full: false });
        }
        let rows = if self.random.percent(60) { Where::All } else { self.values() };
        ops.push(Op::Open { table, rows });
        for _ in 0..self.random.below(4) {
            let batches = self.random.below(3) as usize;
            ops.push(Op::Take { batches });
            let op = self.touch(table);
            ops.extend((!explicit || op.fits_transaction()).then_some(op));
        }
        if explicit {
            ops.push(if self.random.percent(70) { Op::Commit } else { Op::Rollback });
        }
        if self.random.percent(20) {
            ops.push(Op::Truncate { table });
        }
        ops.push(Op::Optimize { table, full: true });
        ops.push(Op::Maintain { steps: 5 });
        ops.push(Op::Take { batches: 1_000 });
    }
}
