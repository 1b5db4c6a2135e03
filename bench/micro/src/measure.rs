//! Medians of interleaved rounds, and processor time.

use std::sync::LazyLock;
use std::time::Instant;

const ROUNDS: usize = 15;

/// A named piece of work that returns the number of units done.
pub type Work<'a> = (String, Box<dyn FnMut() -> usize + 'a>);

/// Returns the nanoseconds per unit of each piece of work: medians over rounds in which each runs
/// once.
pub fn interleaved(mut works: Vec<Work<'_>>) -> Vec<(String, f64)> {
    let mut times: Vec<Vec<f64>> = works.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        for (at, (_, work)) in works.iter_mut().enumerate() {
            let started = Instant::now();
            let units = work();
            let elapsed = started.elapsed().as_nanos() as f64 / units.max(1) as f64;
            // The first round warms up.
            if round > 0 {
                times[at].push(elapsed);
            }
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    works.into_iter().zip(&mut times).map(|((name, _), times)| (name, median(times))).collect()
}

/// Returns the processor time of this thread in nanoseconds, or elapsed time where the system does
/// not report it. For work that is too long for rounds.
pub fn cpu_ns() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = ran.and_then(|text| text.split_whitespace().next()?.parse().ok());
    ran.unwrap_or_else(|| START.elapsed().as_nanos() as u64)
}
