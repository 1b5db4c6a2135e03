//! Expands a seed: the settings of the database, the operations of each session, and the faults. A
//! plan is data, so that a failing one can be shrunk.

mod documents;
mod make;
mod many;
mod migrations;
mod naming;
mod parts;

pub use parts::{End, Phase, Script, Setup};

use crate::disk::{Call, Class, Fault, FaultKind};
use crate::op::shape::INDEXES;
use nacre_testing::Random;
use nacredb::{Durability, Options};

/// Number of accounts of the bank.
pub const ACCOUNTS: i64 = 12;
/// Initial balance of each account.
pub const BALANCE: i64 = 1_000;

/// A whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Determines everything else: scheduling, and the state after a crash.
    pub seed: u64,
    /// Settings of the database.
    pub options: Options,
    /// Percentage of calls during which other sessions run.
    pub nested_percent: u64,
    /// Whether a write may do maintenance first: the host has no background work, and the rowstores may
    /// exceed their soft limit by enough.
    pub relieves: bool,
    /// In a hundred pages of segments, those that are absent when they are read first, and in a
    /// hundred reads, those before which pages are evicted.
    pub absent: Option<(u64, u64)>,
    /// Whether threads must not block while such pages are fetched.
    pub never_blocks: bool,
    /// Whether the bank's sessions are complete, so that its sum must be preserved.
    pub bank_whole: bool,
    /// Permanent tables.
    pub tables: Vec<Setup>,
    /// Phases, in order.
    pub phases: Vec<Phase>,
}

/// Permanent tables, and whether they have a primary key.
const TABLES: [(&str, bool); 4] = [("bank", true), ("a", true), ("b", true), ("heap", false)];
/// A further table if there are indexes: its rows compete for unique values.
pub(crate) const UNIQUE: &str = "u";
/// A rarely used table that receives more rows by one statement than the rowstore takes.
pub(crate) const BIG: &str = "big";
/// Temporary tables.
pub(crate) const PASSING: [&str; 2] = ["x", "y"];
/// Views.
pub(crate) const VIEWS: [&str; 2] = ["shown", "veiled"];

/// Sort and shard keys of a table, which affect the placement of rows but no results.
pub(crate) fn keys(random: &mut Random, keyed: bool) -> &'static str {
    const KEYED: [&str; 7] = [
        "",
        "",
        "",
        ", shard key (k)",
        ", sort key (v)",
        ", sort key (s, k)",
        ", shard key (k), sort key (v)",
    ];
    const HEAP: [&str; 5] =
        ["", "", ", sort key (v)", ", shard key ()", ", shard key (s), sort key (k)"];
    if keyed { random.pick::<&'static str>(&KEYED) } else { random.pick::<&'static str>(&HEAP) }
}

/// The permanent tables of a seed.
pub fn setups(seed: u64, indexed: bool) -> Vec<Setup> {
    let setup = |(name, keyed): (&'static str, bool)| {
        let mut random = Random::with_purpose(seed, name);
        let keys = keys(&mut random, keyed);
        let mut indexes = Vec::new();
        if indexed && name != "bank" {
            let unique = if name == UNIQUE { 100 } else { 15 };
            for index in
                INDEXES.iter().filter(|index| !index.columns.contains(&crate::op::row::Column::W))
            {
                if random.percent(if index.unique { unique / 2 } else { 30 }) {
                    indexes.push(*index);
                }
            }
        }
        // Drawn separately, so that older seeds keep their meaning where there are none.
        let documents = name != "bank"
            && Random::with_purpose(seed ^ u64::from(name.as_bytes()[0]), "documents").percent(20);
        Setup { name, keyed, keys, indexes, documents }
    };
    TABLES.into_iter().chain(indexed.then_some((UNIQUE, true))).map(setup).collect()
}

/// One seed in this many has an `INSERT … SELECT` of more rows than the rowstore takes.
const BIG_EVERY: u64 = 400;

/// Segments of fewer rows come by the thousand.
const FEW_ROWS: usize = 30;

pub(crate) struct Maker {
    pub random: Random,
    /// Whether tables have indexes.
    pub indexed: bool,
    pub keys: i64,
    /// Length of long texts in bytes; 0 for none.
    pub long: usize,
    /// Frequency of faults.
    faulty: u64,
}

/// Creates the plan of a seed.
pub fn plan(seed: u64) -> Plan {
    let mut random = Random::with_purpose(seed, "plan");
    let strict = random.percent(85);
    // Drawn separately, so that older seeds keep their meaning.
    let hash_from = *Random::with_purpose(seed, "hash tables").pick(&[0.0, 2.0, 8.0]);
    let merge_from = *Random::with_purpose(seed, "runs").pick(&[2, 2, 3, 4]);
    let segment_bytes =
        *Random::with_purpose(seed, "segment bytes").pick(&[1_000, 5_000, 50_000, 1 << 20]);
    let load_rest = *Random::with_purpose(seed, "load rest").pick(&[0, 0, 2, 256]);
    let bulk_rows = *Random::with_purpose(seed, "bulk rows").pick(&[1, 2, 5, 20, 1 << 14]);
    // Where few footers fit, reading them again is most of the time; few such seeds say as much as many.
    let metadata_bytes = match Random::with_purpose(seed, "footers").below(8) {
        0 => 0,
        1 => 4_000,
        2 | 3 => 30_000,
        _ => 1 << 20,
    };
    let mut options = Options {
        load_rest,
        bulk_rows,
        durability: if strict {
            Durability::Strict
        } else {
            Durability::Relaxed { interval_ms: 20 }
        },
        memory_limit: 64 << 20,
        cache_bytes: *random.pick(&[0, 4 << 10, 1 << 20]),
        metadata_bytes,
        segment_rows: *random.pick(&[3, 8, 30, 200, 2_000]),
        segment_bytes,
        merge_from,
        hash_from,
        flush_bytes: *random.pick(&[600, 2_000, 8_000, 100_000]),
        snapshot_bytes: *random.pick(&[500, 3_000, 20_000, 1 << 20]),
        lock_timeout_ms: *random.pick(&[5, 50, 1_000]),
        partitions: *random.pick(&[1, 1, 3]),
        ..Options::default()
    };
    if options.segment_rows < FEW_ROWS && options.metadata_bytes > 0 {
        // Thousands of such segments with room for few footers only read them again and again, for minutes.
        options.metadata_bytes = options.metadata_bytes.max(30_000);
    }
    let mut memory = Random::with_purpose(seed, "memory");
    if memory.percent(30) {
        options.rowstore_bytes = *memory.pick(&[3_000, 10_000, 40_000]);
        options.memory_bytes = 64 << 20;
    }
    let indexed = random.percent(40);
    let mut maker = Maker {
        indexed,
        keys: *random.pick(&[6, 20, 60, 400]),
        long: if random.percent(25) { *random.pick(&[300, 3_000, 9_000]) } else { 0 },
        faulty: *random.pick(&[0, 0, 30, 60, 100]),
        random: random.clone(),
    };
    let count = 1 + random.below(4);
    let mut phases: Vec<Phase> = (0..count).map(|_| maker.phase()).collect();
    // Expensive, and therefore rare.
    if seed.is_multiple_of(BIG_EVERY) {
        options.segment_rows = 10_000;
        options.flush_bytes = options.flush_bytes.max(8_000);
        // Thousands of segments, and room for few of their footers, would take half an hour.
        options.segment_bytes = options.segment_bytes.max(50_000);
        options.metadata_bytes = options.metadata_bytes.max(300_000);
        let script = Script { role: "filler", ops: maker.fill(), prepares: false };
        phases[0].scripts.truncate(2);
        phases[0].scripts.push(script);
        phases.truncate(2);
    }
    // Also drawn separately.
    let extra = Random::with_purpose(seed, "names and streams");
    let mut extra =
        Maker { random: extra, indexed, keys: maker.keys, long: maker.long, faulty: maker.faulty };
    if extra.random.percent(40) {
        for phase in &mut phases {
            let scripts = 1 + extra.random.below(2);
            phase.scripts.extend((0..scripts).map(|_| extra.extra_script()));
        }
    }
    let extra = extra.migrations(seed, &mut phases);
    let many = Random::with_purpose(seed, "many rows");
    let mut many = Maker { random: many, ..extra };
    let bulk_rows = options.bulk_rows;
    if let Some(rows) = many.erase(seed, &mut phases) {
        options.bulk_rows = rows;
    }
    let mut prepared = Random::with_purpose(seed, "prepared statements");
    if prepared.percent(40) {
        phases
            .iter_mut()
            .flat_map(|phase| &mut phase.scripts)
            .for_each(|script| script.prepares = prepared.percent(60));
    }
    fail_first_reads(seed, &mut phases);
    Maker::aim(seed, &mut phases);
    Maker::cancel(seed, &mut phases);
    let mut tables = setups(seed, indexed);
    documents::use_paths(seed, &mut tables, &mut phases);
    let relieves = options.rowstore_bytes == Options::SHARE
        && (maker.long > 0 || seed.is_multiple_of(BIG_EVERY) || options.bulk_rows != bulk_rows);
    Plan {
        seed,
        options,
        nested_percent: *random.pick(&[0, 15, 40]),
        relieves,
        absent: absent(seed),
        never_blocks: Random::with_purpose(seed, "never blocks").percent(50),
        bank_whole: true,
        tables,
        phases,
    }
}

impl Plan {
    /// Whether the rowstores have so little memory that writes wait for it. Background work is then
    /// a session of its own.
    pub fn is_limited(&self) -> bool {
        self.options.rowstore_bytes != Options::SHARE
    }
}

/// How much of the files is absent; drawn separately.
fn absent(seed: u64) -> Option<(u64, u64)> {
    let mut random = Random::with_purpose(seed, "absent");
    let lacks = random.percent(30);
    lacks.then(|| (*random.pick(&[3, 20, 100]), *random.pick(&[0, 5, 50])))
}

/// Makes files in the format of segments fail when they are opened to be read.
fn fail_first_reads(seed: u64, phases: &mut [Phase]) {
    let mut random = Random::with_purpose(seed, "first reads");
    if !random.percent(25) {
        return;
    }
    for phase in phases {
        for _ in 0..random.below(4) {
            let call = Some(*random.pick(&[Call::Open, Call::Open, Call::Read]));
            let (class, nth) = (Some(Class::Segment), random.below(30));
            phase.faults.push(Fault { call, class, within: None, nth, kind: FaultKind::Fail });
        }
    }
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

    /// Stops the machine or the process at some call.
    fn stop(&mut self, within: u64) -> Fault {
        let kind = if self.random.percent(70) { FaultKind::PowerCut } else { FaultKind::Kill };
        let (call, class, nth) = self.place(within);
        Fault { call, class, within: None, nth, kind }
    }

    fn place(&mut self, within: u64) -> (Option<Call>, Option<Class>, u64) {
        let random = &mut self.random;
        let classes = [Class::Log, Class::Segment, Class::Snapshot];
        let calls = [Call::Create, Call::Write, Call::Sync, Call::Remove, Call::Truncate];
        match random.below(4) {
            0 => (None, None, random.below(within * 2)),
            1 => (None, Some(*random.pick(&classes)), random.below(within)),
            2 => (Some(*random.pick(&calls)), None, random.below(within)),
            _ => (
                Some(*random.pick(&calls)),
                Some(*random.pick(&classes)),
                random.below(within / 2 + 1),
            ),
        }
    }

    fn fault(&mut self, within: u64) -> Fault {
        let (mut call, class, nth) = self.place(within);
        let random = &mut self.random;
        let kind = match random.below(11) {
            0..=5 => FaultKind::Fail,
            6 | 7 => FaultKind::Full { calls: 1 + random.below(60) },
            10 => FaultKind::Crowded { calls: 1 + random.below(200) },
            8 => FaultKind::Slow { ms: 1 + random.below(2_000) },
            _ => FaultKind::Jump { ms: 1 + random.below(100_000) },
        };
        if kind == FaultKind::Fail && random.percent(25) {
            call = Some(*random.pick(&[Call::Read, Call::Open, Call::List]));
        }
        Fault { call, class, within: None, nth, kind }
    }
}
