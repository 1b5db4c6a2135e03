//! Snapshot bytes: as with the log's ([`crate::log`]), of a database that has a snapshot and records after it.

use crate::edit::damage;
use crate::input::Input;
use crate::log::{base, change, damaged, raw, rewritten};

/// One run.
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
