//! Finds the isolation violations of a history.
//!
//! The lists give the order of versions of each key, and with it the dependencies: a write after a
//! write (ww), a read of a write (wr), a write over a version that was read (rw). A transaction
//! that was acknowledged before another began precedes it (start). Snapshot isolation forbids:
//!
//! - G0: a cycle of ww; G1a: a read of aborted data; G1b: a read of intermediate data; G1c: a cycle
//!   of ww and wr;
//! - lost update: an acknowledged append that is in no list at the end, or lists that disagree
//!   about their order;
//! - G-SIa: a dependency, ww or wr, on a transaction that committed after the dependent one had
//!   begun;
//! - G-SIb: a cycle with exactly one rw, and otherwise ww, wr or start: an inconsistent snapshot.
//!
//! Serialisability also forbids G2, a cycle with more than one rw: write skew.

use crate::isolation::history::{End, Event, History, Transaction};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The level that a history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Snapshot isolation.
    Snapshot,
    /// Serialisability, and snapshot isolation as well.
    Serialisable,
}

/// A forbidden phenomenon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its common name.
    pub name: &'static str,
    /// The evidence.
    pub what: String,
}

#[derive(Default)]
struct Graph {
    /// From one transaction to another.
    ww: BTreeSet<(usize, usize)>,
    wr: BTreeSet<(usize, usize)>,
    rw: BTreeSet<(usize, usize)>,
    start: BTreeSet<(usize, usize)>,
}

/// All anomalies of a history, one per kind.
pub fn check(history: &History, level: Level) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let mut report = |name: &'static str, what: String| {
        if !found.iter().any(|a: &Anomaly| a.name == name) {
            found.push(Anomaly { name, what });
        }
    };
    let writers = writers(history);
    let orders = orders(history, &writers, &mut report);
    reads(history, &writers, &mut report);
    let graph = graph(history, &writers, &orders);
    cycles(history, &graph, level, &mut report);
    found
}

/// For each number, the transaction that appended it, the list, and whether it was that
/// transaction's last append there.
type Writers = BTreeMap<u64, (usize, usize, bool)>;

fn writers(history: &History) -> Writers {
    let mut out = Writers::new();
    for (at, transaction) in history.iter().enumerate() {
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        for event in &transaction.events {
            if let Event::Append { key, value } = event {
                if let Some(before) = last.insert(*key, *value)
                    && let Some(entry) = out.get_mut(&before)
                {
                    entry.2 = false;
                }
                out.insert(*value, (at, *key, true));
            }
        }
    }
    out
}

/// The values of a read without the reader's own appends, which must be at the end.
fn foreign<'a>(own: &[u64], values: &'a [u64]) -> Option<&'a [u64]> {
    let at = values.len().checked_sub(own.len())?;
    (values[at..] == *own).then_some(&values[..at])
}

/// Calls `seen` for each read with the values of other transactions, or `None` if the reader's own
/// appends are not at the end.
fn each_read(transaction: &Transaction, mut seen: impl FnMut(usize, &[u64], Option<&[u64]>)) {
    let mut own: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for event in &transaction.events {
        match event {
            Event::Append { key, value } => own.entry(*key).or_default().push(*value),
            Event::Read { key, values } => {
                let own = own.get(key).map_or(&[][..], Vec::as_slice);
                seen(*key, values, foreign(own, values));
            }
        }
    }
}

/// The version order of each list: the longest value that a committed transaction read.
fn orders(
    history: &History,
    writers: &Writers,
    report: &mut impl FnMut(&'static str, String),
) -> BTreeMap<usize, Vec<u64>> {
    let mut orders: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for transaction in history.iter().filter(|t| t.end == End::Committed) {
        each_read(transaction, |key, values, _| {
            let longest = orders.entry(key).or_default();
            if values.len() > longest.len() {
                *longest = values.to_vec();
            }
        });
    }
    for transaction in history.iter().filter(|t| t.end == End::Committed) {
        each_read(transaction, |key, values, _| {
            let longest = &orders[&key];
            if !longest.starts_with(values) {
                report("lost update", format!("list {key} was {values:?} and was {longest:?}"));
            }
        });
    }
    for (value, (writer, key, _)) in writers {
        let there = orders.get(key).is_some_and(|order| order.contains(value));
        if history[*writer].end == End::Committed && !there {
            report("lost update", format!("{value}, committed by T{writer}, is not in list {key}"));
        }
    }
    for (key, order) in &orders {
        let distinct: BTreeSet<_> = order.iter().collect();
        if distinct.len() != order.len() {
            report("duplicate", format!("list {key} is {order:?}"));
        }
    }
    orders
}

fn reads(history: &History, writers: &Writers, report: &mut impl FnMut(&'static str, String)) {
    for (at, transaction) in history.iter().enumerate() {
        each_read(transaction, |key, values, foreign| {
            let Some(foreign) = foreign else {
                report(
                    "internal",
                    format!(
                        "T{at} does not see its own appends at the end of list {key}: {values:?}"
                    ),
                );
                return;
            };
            for value in foreign {
                match writers.get(value) {
                    None => report(
                        "garbage",
                        format!("T{at} read {value}, which no transaction appended"),
                    ),
                    Some((writer, ..)) if history[*writer].end == End::Aborted => {
                        report("G1a", format!("T{at} read {value}, which T{writer} rolled back"));
                    }
                    Some((writer, ..)) if *writer == at => {
                        report(
                            "internal",
                            format!("T{at} read its own {value} in a place of others"),
                        );
                    }
                    Some(_) => {}
                }
            }
            if let Some(last) = foreign.last()
                && let Some((writer, _, false)) = writers.get(last)
            {
                report("G1b", format!("T{at} read list {key} in the midst of T{writer}"));
            }
        });
    }
}

fn graph(history: &History, writers: &Writers, orders: &BTreeMap<usize, Vec<u64>>) -> Graph {
    let mut graph = Graph::default();
    let committed = |at: &usize| history[*at].end == End::Committed;
    let writer = |value: &u64| writers.get(value).map(|(at, ..)| *at).filter(committed);
    for order in orders.values() {
        for pair in order.windows(2) {
            if let (Some(a), Some(b)) = (writer(&pair[0]), writer(&pair[1]))
                && a != b
            {
                graph.ww.insert((a, b));
            }
        }
    }
    for at in (0..history.len()).filter(committed) {
        each_read(&history[at], |key, _, foreign| {
            let Some(foreign) = foreign else { return };
            if let Some(from) = foreign.last().and_then(writer) {
                graph.wr.insert((from, at));
            }
            // The first transaction that appended to the version read, unless it is the reader
            // itself.
            let later =
                orders[&key].iter().skip(foreign.len()).filter_map(writer).find(|w| *w != at);
            if let Some(over) = later {
                graph.rw.insert((at, over));
            }
        });
    }
    for a in (0..history.len()).filter(committed) {
        for b in (0..history.len()).filter(committed) {
            if a != b && history[a].finish.answered < history[b].begin.called {
                graph.start.insert((a, b));
            }
        }
    }
    graph
}

/// A path from one transaction to another.
fn way(edges: &[&BTreeSet<(usize, usize)>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut way = vec![to];
            while let Some(previous) = before.get(way.last().unwrap_or(&to)) {
                way.push(*previous);
                if *previous == from {
                    break;
                }
            }
            way.reverse();
            return Some(way);
        }
        for set in edges {
            for (_, next) in set.range((at, 0)..=(at, usize::MAX)) {
                if *next != from && !before.contains_key(next) {
                    before.insert(*next, at);
                    queue.push_back(*next);
                }
            }
        }
    }
    None
}

fn cycles(
    history: &History,
    graph: &Graph,
    level: Level,
    report: &mut impl FnMut(&'static str, String),
) {
    let Graph { ww, wr, rw, start } = graph;
    let mut search = |name: &'static str,
                      first: &BTreeSet<(usize, usize)>,
                      rest: &[&BTreeSet<(usize, usize)>]| {
        for (a, b) in first {
            if let Some(way) = way(rest, *b, *a) {
                let way: Vec<String> = way.iter().map(|t| format!("T{t}")).collect();
                report(name, format!("T{a} → {}", way.join(" → ")));
                return;
            }
        }
    };
    search("G0", ww, &[ww]);
    search("G1c", wr, &[ww, wr]);
    search("G-SIb", rw, &[ww, wr, start]);
    if level == Level::Serialisable {
        search("G2", rw, &[ww, wr, rw]);
    }
    for (a, b) in ww.iter().chain(wr) {
        if history[*a].finish.called > history[*b].begin.answered {
            report("G-SIa", format!("T{b} depends on T{a}, which committed after T{b} had begun"));
        }
    }
}
