//! Visits index entries of rows in memory.

use crate::index::definition::Index;
use nacre_rowstore::Entry;
use nacre_types::{Result, limits};
use std::ops::Bound;

/// Entries to read first; most keys have few rows.
const FIRST_RUN: usize = 16;

/// Visits the entries of a partition's rows between two index keys, the second exclusive, in order.
pub(crate) fn each_entry(
    index: &Index,
    partition: u32,
    from: &[u8],
    to: Option<&[u8]>,
    mut visit: impl FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let entries = index.entries(partition);
    if entries.is_empty() {
        return Ok(());
    }
    let mut run: Vec<Entry> = Vec::new();
    let mut after: Option<Entry> = None;
    let mut limit = FIRST_RUN;
    loop {
        run.clear();
        let start =
            after.as_ref().map_or(Bound::Included(from), |entry| Bound::Excluded(entry.bytes()));
        entries.range(start, to, limit, &mut run);
        debug_assert!(
            run.windows(2).all(|pair| pair[0].bytes() < pair[1].bytes()),
            "entries of index {} are out of order",
            index.name()
        );
        debug_assert!(
            run.iter().all(|e| e.bytes() >= from && to.is_none_or(|to| e.bytes() < to)),
            "an entry of index {} is outside of the range asked for",
            index.name()
        );
        debug_assert!(run.len() <= limit, "{} entries of {limit} at most are read", run.len());
        run.iter().try_for_each(&mut visit)?;
        if run.len() < limit {
            return Ok(());
        }
        after = run.pop();
        limit = limits::BLOCK_ROWS;
    }
}
