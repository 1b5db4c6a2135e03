//! What one seed means: the settings of the database, what each session does, and what goes wrong. A plan is data, so
//! that a failing one can be made smaller.

use crate::disk::{Call, Class, Fault, FaultKind};
use crate::op::{Op, Row, Upsert, Where};
use crate::random::Random;
use nacredb::{Durability, OnDuplicate, Options};

/// Accounts of the bank, and what each holds at first.
pub const ACCOUNTS: i64 = 12;
/// See [`ACCOUNTS`].
pub const BALANCE: i64 = 1_000;

/// How a phase ends when nothing ends it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The power goes.
    PowerCut,
    /// The process is killed.
    Kill,
    /// The database is closed.
    Close,
}

/// What one session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What it is there for.
    pub role: &'static str,
    /// One after the other.
    pub ops: Vec<Op>,
}

/// From one start of the database to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// While it opens.
    pub recovery_faults: Vec<Fault>,
    /// Afterwards.
    pub faults: Vec<Fault>,
    /// The sessions.
    pub scripts: Vec<Script>,
    /// The end.
    pub end: End,
}

/// A whole story.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Decides what the plan does not say: the order of things, what a crash leaves.
    pub seed: u64,
    /// Settings of the database.
    pub options: Options,
    /// How often, of a hundred calls, others run inside one.
    pub nested_percent: u64,
    /// Whether the sessions of the bank are complete, so that its sum must stay.
    pub bank_whole: bool,
    /// One after the other.
    pub phases: Vec<Phase>,
}

/// Tables that are always there, and whether they have a primary key.
pub const TABLES: [(&str, bool); 4] = [("bank", true), ("a", true), ("b", true), ("heap", false)];
/// Tables that come and go.
const PASSING: [&str; 2] = ["x", "y"];

/// Keys of a table beside its primary key: they change where rows are, and no answer.
pub fn keys(random: &mut Random, keyed: bool) -> &'static str {
    const KEYED: [&str; 7] =
        ["", "", "", ", shard key (k)", ", sort key (v)", ", sort key (s, k)", ", shard key (k), sort key (v)"];
    const HEAP: [&str; 5] = ["", "", ", sort key (v)", ", shard key ()", ", shard key (s), sort key (k)"];
    if keyed { random.pick::<&'static str>(&KEYED) } else { random.pick::<&'static str>(&HEAP) }
}

/// Tables whose rows are inserted or changed: they have a primary key.
const UPSERTED: [&str; 3] = ["a", "a", "b"];

struct Maker {
    random: Random,
    keys: i64,
    /// Bytes of a long text; 0 for none.
    long: usize,
    /// How often things go wrong.
    faulty: u64,
}

/// The plan of a seed.
pub fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed, "plan");
    let strict = random.percent(85);
    // Of its own, so that older seeds stay what they were.
    let hash_from = *Random::new(seed, "hash tables").pick(&[0.0, 2.0, 8.0]);
    let options = Options {
        durability: if strict { Durability::Strict } else { Durability::Relaxed { interval_ms: 20 } },
        memory_limit: 64 << 20,
        cache_bytes: *random.pick(&[0, 4 << 10, 1 << 20]),
        segment_rows: *random.pick(&[3, 8, 30, 200, 2_000]),
        hash_from,
        flush_bytes: *random.pick(&[600, 2_000, 8_000, 100_000]),
        snapshot_bytes: *random.pick(&[500, 3_000, 20_000, 1 << 20]),
        lock_timeout_ms: *random.pick(&[5, 50, 1_000]),
        partitions: *random.pick(&[1, 1, 3]),
        ..Options::default()
    };
    let mut maker = Maker {
        keys: *random.pick(&[6, 20, 60, 400]),
        long: if random.percent(25) { *random.pick(&[300, 3_000, 9_000]) } else { 0 },
        faulty: *random.pick(&[0, 0, 30, 60, 100]),
        random: random.clone(),
    };
    let phases = 1 + random.below(4);
    let phases = (0..phases).map(|_| maker.phase()).collect();
    Plan { seed, options, nested_percent: *random.pick(&[0, 15, 40]), bank_whole: true, phases }
}

impl Maker {
    fn phase(&mut self) -> Phase {
        let mut recovery_faults = Vec::new();
        let mut faults = Vec::new();
        if self.random.percent(25) {
            recovery_faults.push(self.stop(12));
        }
        if self.random.percent(self.faulty / 4) {
            recovery_faults.push(self.fault(6));
        }
        if self.random.percent(60) {
            let within = *self.random.pick(&[10, 60, 300, 1_000]);
            faults.push(self.stop(within));
        }
        while self.random.percent(self.faulty / 2) {
            let within = *self.random.pick(&[4, 20, 100]);
            faults.push(self.fault(within));
        }
        let sessions = 1 + self.random.below(5);
        let scripts = (0..sessions).map(|_| self.script()).collect();
        let end = *self.random.pick(&[End::PowerCut, End::PowerCut, End::Kill, End::Close]);
        Phase { recovery_faults, faults, scripts, end }
    }

    /// The machine or the process stops at some call.
    fn stop(&mut self, within: u64) -> Fault {
        let kind = if self.random.percent(70) { FaultKind::PowerCut } else { FaultKind::Kill };
        let (call, class, nth) = self.place(within);
        Fault { call, class, nth, kind }
    }

    fn place(&mut self, within: u64) -> (Option<Call>, Option<Class>, u64) {
        let random = &mut self.random;
        let classes = [Class::Log, Class::Segment, Class::Snapshot];
        let calls = [Call::Create, Call::Write, Call::Sync, Call::Remove, Call::Truncate];
        match random.below(4) {
            0 => (None, None, random.below(within * 2)),
            1 => (None, Some(*random.pick(&classes)), random.below(within)),
            2 => (Some(*random.pick(&calls)), None, random.below(within)),
            _ => (Some(*random.pick(&calls)), Some(*random.pick(&classes)), random.below(within / 2 + 1)),
        }
    }

    fn fault(&mut self, within: u64) -> Fault {
        let (mut call, class, nth) = self.place(within);
        let random = &mut self.random;
        let kind = match random.below(10) {
            0..=5 => FaultKind::Fail,
            6 | 7 => FaultKind::Full { calls: 1 + random.below(60) },
            8 => FaultKind::Slow { ms: 1 + random.below(2_000) },
            _ => FaultKind::Jump { ms: 1 + random.below(100_000) },
        };
        if kind == FaultKind::Fail && random.percent(25) {
            call = Some(*random.pick(&[Call::Read, Call::Open, Call::List]));
        }
        Fault { call, class, nth, kind }
    }

    fn script(&mut self) -> Script {
        let count = 3 + self.random.below(22) as usize;
        let mut ops = Vec::new();
        let role = match self.random.below(16) {
            0..=2 => "bank",
            3 => "auditor",
            4 => "reader",
            5 | 6 => "racer",
            7 => "catalog",
            8 | 9 => "loader",
            10 | 11 => "keeper",
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
                _ => self.sql(&mut ops),
            }
        }
        Script { role, ops }
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

    /// Few keys, many sessions.
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
        ops.push(match self.random.below(7) {
            0 | 1 => {
                let (keyed, if_missing) = (self.random.percent(70), self.random.percent(50));
                Op::Create { table, keyed, keys: keys(&mut self.random, keyed), if_missing }
            }
            2 => Op::Drop { table },
            3 => Op::Insert { table, rows: self.new_rows() },
            4 => Op::Select { table, rows: Where::All },
            5 => Op::Delete { table, rows },
            _ => Op::Optimize { table, full: false },
        });
    }

    fn load(&mut self, ops: &mut Vec<Op>) {
        let table = self.table();
        let policy = *self.random.pick(&[OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace]);
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
            20 | 21 => Op::Upsert {
                table: self.random.pick::<&'static str>(&UPSERTED),
                rows: self.new_rows(),
                how: self.how(),
            },
            22 => Op::Copy { table, from: self.table(), rows, by: *self.random.pick(&[1_000, 5_000, -3_000, 1]) },
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

    fn how(&mut self) -> Upsert {
        use Upsert::{Duplicate, Ignore, Nothing, Replace, Update};
        *self.random.pick(&[Replace, Ignore, Nothing, Update, Duplicate])
    }

    /// Not the bank: its sum is its own.
    fn table(&mut self) -> &'static str {
        const NAMES: [&str; 5] = ["a", "a", "a", "b", "heap"];
        self.random.pick::<&'static str>(&NAMES)
    }

    fn key(&mut self) -> i64 {
        self.random.between(0, self.keys - 1)
    }

    fn rows(&mut self) -> Where {
        let k = self.key();
        match self.random.below(10) {
            0 => Where::All,
            1 => Where::Remainder(self.random.between(0, 6)),
            2 => Where::NoText,
            3..=5 => Where::Keys(k, k + self.random.between(0, self.keys / 3)),
            _ => Where::Key(k),
        }
    }

    fn new_rows(&mut self) -> Vec<Row> {
        let count = *self.random.pick(&[1, 1, 2, 5, 20]);
        let from = self.key();
        // Mostly neighbours; sometimes beyond all other keys, so that they are new for sure.
        let from = if self.random.percent(40) { from + self.keys + self.random.between(0, 1_000) } else { from };
        (0..count).map(|at| self.row(from + at)).collect()
    }

    fn row(&mut self, k: i64) -> Row {
        Row { k, v: self.random.between(-100, 100), s: self.text() }
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
