//! `nacre-sim isolation`: many histories of both kinds, on simulated and native threads.

use crate::isolation::check::{Anomaly, Level, check};
use crate::isolation::history::History;
use crate::isolation::work::Kind;
use crate::isolation::{native, simulated};
use std::collections::BTreeMap;

/// Simulated histories per native history.
const SIMULATED_PER_NATIVE: u64 = 8;

/// The findings.
#[derive(Debug, Default)]
pub struct Found {
    /// Number of histories checked.
    pub histories: u64,
    /// Number of histories with each anomaly, by name.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// The first findings, one sentence each.
    pub told: Vec<String>,
}

/// The history with this number, and the isolation level it must satisfy.
pub fn history(number: u64) -> (String, Result<History, String>, Level) {
    let (kind, level) = match number % 2 {
        0 => (Kind::Plain, Level::Snapshot),
        _ => (Kind::Locked, Level::Serialisable),
    };
    // Neighbouring numbers have different kinds, so that both kinds also run natively.
    let native = number / 2 % SIMULATED_PER_NATIVE == SIMULATED_PER_NATIVE - 1;
    let name =
        format!("{kind:?} history {number}, {}", if native { "threads" } else { "simulated" });
    let history = if native { native::run(number, kind) } else { simulated::run(number, kind) };
    (name, history, level)
}

/// Checks a range of histories.
pub fn run(from: u64, count: u64) -> Result<Found, String> {
    let mut found = Found::default();
    for number in from..from + count {
        let (name, history, level) = history(number);
        let history = history.map_err(|error| format!("{name}: {error}"))?;
        found.histories += 1;
        for Anomaly { name: anomaly, what } in check(&history, level) {
            *found.anomalies.entry(anomaly).or_default() += 1;
            if found.told.len() < 10 {
                found.told.push(format!("{name}: {anomaly}: {what}"));
            }
        }
    }
    Ok(found)
}
