//! Snapshot bytes: like those of the log ([`crate::log`]), for a database with a snapshot and
//! records after it.

use crate::edit::damage;
use crate::input::Input;
use crate::log::{base, change, damaged, raw, rewritten};

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let base = base(true);
    match input.below(4) {
        0 => raw(base, "snap-0000000000000100", &mut input),
        1 => damaged(base, "snap-", &mut input),
        _ => {
            let mut payload = base.snapshot.clone().unwrap_or_default();
            damage(&mut payload, &mut input);
            let mut records = base.records.clone();
            if input.one_in(4) {
                change(&mut records, &mut input);
            }
            rewritten(base, Some(&payload), &records);
        }
    }
}
