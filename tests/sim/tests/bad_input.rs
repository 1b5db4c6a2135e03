//! Every call of a fixed workload fails once: with an error, for lack of space, by a power cut, and
//! by a kill. Each time, errors must be typed, nothing acknowledged may be lost, nothing else may
//! appear, and the database must open again.

use nacre_sim::disk::{Call, Fault, FaultKind};
use nacre_sim::op::condition::Where;
use nacre_sim::op::row::Row;
use nacre_sim::op::shape::INDEXES;
use nacre_sim::op::{Op, Place};
use nacre_sim::plan::{End, Phase, Plan, Script, setups};
use nacre_sim::run::run;
use nacredb::{OnDuplicate, Options};

fn rows(from: i64, to: i64) -> Vec<Row> {
    (from..to).map(|k| Row { k, v: k * 3, s: Some(format!("row {k}")), w: None, z: None }).collect()
}

/// A variety of operations in one session.
fn workload() -> Vec<Op> {
    let table = "a";
    let unique = INDEXES.into_iter().find(|index| index.name == "u_v").unwrap();
    vec![
        Op::Create {
            table: "x",
            keyed: true,
            keys: "",
            indexes: vec![],
            documents: false,
            if_missing: false,
        },
        Op::Insert { table, rows: rows(0, 12) },
        Op::Insert { table: "heap", rows: rows(0, 5) },
        Op::Optimize { table, full: false },
        Op::Add { table, rows: Where::Keys(3, 5), add: 1 },
        Op::Begin,
        Op::Delete { table, rows: Where::Key(7) },
        Op::Savepoint("p"),
        Op::Rekey { table, rows: Where::Key(8), by: 100 },
        Op::RollbackTo("p"),
        Op::Insert { table, rows: rows(20, 22) },
        Op::Commit,
        Op::Bulk { table, policy: OnDuplicate::Replace, batches: vec![rows(10, 16), rows(14, 25)] },
        Op::Select { table, rows: Where::All },
        Op::Maintain { steps: 3 },
        Op::Optimize { table, full: true },
        Op::CreateIndex { table, index: unique, alter: false, if_missing: false },
        Op::Maintain { steps: 6 },
        Op::Insert { table, rows: vec![Row { k: 500, v: 30, s: None, w: None, z: None }] },
        Op::Select { table, rows: Where::V(33) },
        Op::AddColumn { table, default: Some(7), place: Place::First, if_missing: false },
        Op::Number { table, rows: Where::V(36), v: 1_000 },
        Op::DropIndex { table, name: unique.name, alter: false, if_there: false },
        Op::CreateAs { table: "y", from: table, rows: Where::Keys(3, 14), if_missing: false },
        Op::Truncate { table: "y" },
        Op::Drop { table: "x" },
        Op::Delete { table: "heap", rows: Where::Keys(1, 2) },
        Op::Optimize { table: "heap", full: true },
        Op::Maintain { steps: 3 },
        Op::Audit { table, rows: Where::All },
        Op::Check,
        Op::Insert { table, rows: rows(200, 203) },
    ]
}

fn plan(seed: u64, fault: Fault, recovering: bool) -> Plan {
    let phase = |faults: Vec<Fault>, recovery_faults: Vec<Fault>, ops: Vec<Op>, end| Phase {
        recovery_faults,
        faults,
        scripts: vec![Script { role: "sql", ops, prepares: false }],
        end,
    };
    let (working, opening) = if recovering { (vec![], vec![fault]) } else { (vec![fault], vec![]) };
    let after = vec![
        Op::Insert { table: "b", rows: rows(0, 3) },
        Op::Select { table: "a", rows: Where::All },
        Op::Optimize { table: "a", full: true },
    ];
    let options = Options {
        cache_bytes: 0,
        segment_rows: 6,
        flush_bytes: 1_500,
        snapshot_bytes: 1_200,
        lock_timeout_ms: 10,
        ..Options::default()
    };
    let phases = vec![
        phase(working, vec![], workload(), End::PowerCut),
        phase(vec![], opening, after, End::PowerCut),
    ];
    Plan {
        seed,
        options,
        nested_percent: 0,
        relieves: false,
        absent: None,
        never_blocks: false,
        bank_whole: true,
        tables: setups(seed, false),
        phases,
    }
}

/// Maximum number of calls of the workload, and of opening its result.
const CALLS: u64 = 900;

fn each(kind: FaultKind, call: Option<Call>, recovering: bool) {
    for nth in 0..CALLS {
        let fault = Fault { call, class: None, within: None, nth, kind };
        let outcome = run(&plan(nth + 1, fault, recovering), false);
        assert_eq!(outcome.failure, None, "{kind:?} at call {nth} of {call:?}");
        if outcome.faults == 0 {
            assert!(nth > 0, "the workload makes no {call:?}");
            return;
        }
    }
    panic!("the workload makes more than {CALLS} calls");
}

#[test]
fn every_call_fails() {
    each(FaultKind::Fail, None, false);
}

#[test]
fn every_sync_fails() {
    each(FaultKind::Fail, Some(Call::Sync), false);
}

#[test]
fn every_read_fails() {
    each(FaultKind::Fail, Some(Call::Read), false);
}

#[test]
fn the_disk_is_full_at_every_write() {
    each(FaultKind::Full { calls: 1 }, Some(Call::Write), false);
    each(FaultKind::Full { calls: 25 }, Some(Call::Write), false);
}

#[test]
fn the_power_goes_at_every_call() {
    each(FaultKind::PowerCut, None, false);
}

#[test]
fn the_process_is_killed_at_every_call() {
    each(FaultKind::Kill, None, false);
}

#[test]
fn every_call_of_recovery_fails() {
    each(FaultKind::Fail, None, true);
}

#[test]
fn the_power_goes_at_every_call_of_recovery() {
    each(FaultKind::PowerCut, None, true);
}
