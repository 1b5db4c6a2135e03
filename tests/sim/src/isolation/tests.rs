//! Tests the checker on histories with known anomalies.

use crate::isolation::check::{Level, check};
use crate::isolation::history::{End, Event, History, Span, Transaction};
use crate::isolation::simulated;
use crate::isolation::work::Kind;

fn append(key: usize, value: u64) -> Event {
    Event::Append { key, value }
}

fn read(key: usize, values: &[u64]) -> Event {
    Event::Read { key, values: values.to_vec() }
}

/// A transaction that lasts from one moment to another.
fn during(from: u64, to: u64, events: &[Event]) -> Transaction {
    let moment = |at: u64| Span { called: at * 10, answered: at * 10 + 1 };
    Transaction {
        events: events.to_vec(),
        begin: moment(from),
        finish: moment(to),
        end: End::Committed,
    }
}

fn aborted(from: u64, to: u64, events: &[Event]) -> Transaction {
    Transaction { end: End::Aborted, ..during(from, to, events) }
}

fn names(history: &History, level: Level) -> Vec<&'static str> {
    let mut names: Vec<_> = check(history, level).into_iter().map(|a| a.name).collect();
    names.sort_unstable();
    names
}

#[track_caller]
fn finds(history: History, expected: &[&str]) {
    assert_eq!(names(&history, Level::Snapshot), expected);
}

#[test]
fn one_after_the_other_is_clean() {
    let history = vec![
        during(1, 2, &[append(0, 1), read(0, &[1])]),
        during(3, 4, &[read(0, &[1]), append(0, 2), append(1, 3)]),
        aborted(5, 6, &[append(0, 9)]),
        during(7, 8, &[read(0, &[1, 2]), read(1, &[3])]),
    ];
    assert!(check(&history, Level::Serialisable).is_empty());
}

#[test]
fn snapshots_of_concurrent_transactions_are_clean() {
    let history = vec![
        during(1, 5, &[append(0, 1)]),
        during(2, 9, &[read(0, &[]), read(0, &[])]),
        during(10, 11, &[read(0, &[1])]),
    ];
    assert!(check(&history, Level::Serialisable).is_empty());
}

#[test]
fn g0_writes_in_a_circle() {
    let history = vec![
        during(1, 5, &[append(0, 1), append(1, 2)]),
        during(2, 6, &[append(0, 3), append(1, 4)]),
        during(9, 10, &[read(0, &[1, 3]), read(1, &[4, 2])]),
    ];
    let found = names(&history, Level::Snapshot);
    assert!(found.contains(&"G0") && found.contains(&"G-SIa"), "{found:?}");
}

#[test]
fn g1a_a_read_of_what_was_rolled_back() {
    finds(vec![aborted(1, 5, &[append(0, 1)]), during(2, 6, &[read(0, &[1])])], &["G1a"]);
}

#[test]
fn g1b_a_read_in_the_midst() {
    let history = vec![
        during(1, 2, &[append(0, 1), append(0, 2)]),
        during(3, 4, &[read(0, &[1])]),
        during(5, 6, &[read(0, &[1, 2])]),
    ];
    let found = names(&history, Level::Snapshot);
    assert!(found.contains(&"G1b"), "{found:?}");
}

#[test]
fn g1c_information_in_a_circle() {
    let history = vec![
        during(1, 5, &[append(0, 1), read(1, &[2])]),
        during(2, 6, &[append(1, 2), read(0, &[1])]),
        during(9, 10, &[read(0, &[1]), read(1, &[2])]),
    ];
    let found = names(&history, Level::Snapshot);
    assert!(found.contains(&"G1c"), "{found:?}");
}

#[test]
fn a_lost_update() {
    // Both append to the empty list, and the second overwrites the first one's append.
    finds(
        vec![
            during(1, 5, &[read(0, &[]), append(0, 1)]),
            during(2, 6, &[read(0, &[]), append(0, 2)]),
            during(9, 10, &[read(0, &[2])]),
        ],
        &["lost update"],
    );
}

#[test]
fn an_update_over_a_concurrent_one_interferes() {
    // Nothing is lost, but the second never sees the first, which committed after the second had
    // begun.
    let history = vec![
        during(1, 5, &[append(0, 1)]),
        during(2, 6, &[append(0, 2)]),
        during(9, 10, &[read(0, &[1, 2])]),
    ];
    finds(history, &["G-SIa"]);
}

#[test]
fn g_sia_a_read_past_the_snapshot() {
    finds(vec![during(1, 5, &[append(0, 1)]), during(2, 6, &[read(0, &[1])])], &["G-SIa"]);
}

#[test]
fn g_sib_half_of_a_commit() {
    let history = vec![
        during(1, 2, &[append(0, 1), append(1, 2)]),
        during(3, 4, &[read(0, &[1]), read(1, &[])]),
    ];
    let found = names(
        &[history, vec![during(9, 10, &[read(0, &[1]), read(1, &[2])])]].concat(),
        Level::Snapshot,
    );
    assert_eq!(found, ["G-SIb"]);
}

#[test]
fn g_sib_a_snapshot_from_the_past() {
    finds(
        vec![
            during(1, 2, &[append(0, 1)]),
            during(3, 4, &[read(0, &[])]),
            during(5, 6, &[read(0, &[1])]),
        ],
        &["G-SIb"],
    );
}

#[test]
fn write_skew_is_for_serialisability_only() {
    let history = vec![
        during(1, 5, &[read(0, &[]), read(1, &[]), append(0, 1)]),
        during(2, 6, &[read(0, &[]), read(1, &[]), append(1, 2)]),
        during(9, 10, &[read(0, &[1]), read(1, &[2])]),
    ];
    assert!(check(&history, Level::Snapshot).is_empty());
    assert_eq!(names(&history, Level::Serialisable), ["G2"]);
}

#[test]
fn own_appends_are_at_the_end() {
    finds(vec![during(1, 2, &[append(0, 1), read(0, &[])])], &["internal", "lost update"]);
}

#[test]
fn simulated_histories_repeat_and_plain_ones_have_write_skew() {
    let mut skew = 0;
    for seed in 1..=60 {
        let history = simulated::run(seed, Kind::Plain).unwrap();
        assert_eq!(
            format!("{history:?}"),
            format!("{:?}", simulated::run(seed, Kind::Plain).unwrap())
        );
        assert_eq!(check(&history, Level::Snapshot), [], "seed {seed}");
        skew += check(&history, Level::Serialisable).iter().filter(|a| a.name == "G2").count();
    }
    // Snapshot isolation allows write skew; the histories must contain some to be a useful test.
    assert!(skew > 0);
}
