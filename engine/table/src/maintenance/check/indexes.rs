//! Checks indexes: every part against its segment's rows, every row in memory against its entries,
//! and the uniqueness of unique values.

use crate::index::definition::Index;
use crate::index::lookup::block_keys;
use crate::layout::keys::fingerprint;
use crate::maintenance::check::findings::{Findings, Seen};
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::Visible;
use nacre_types::hash::hash_bytes;
use nacre_types::{Result, Timestamp, key, limits};
use std::ops::Bound;
use std::sync::Arc;

/// How far an index was checked against a segment.
pub(super) struct CheckedIndex {
    /// The keys of its rows, as far as they were read.
    keys: Vec<Vec<u8>>,
    /// Whether the keys were compared with those of other segments.
    is_met: bool,
}

impl CheckedIndex {
    /// Nothing checked.
    pub fn new() -> CheckedIndex {
        CheckedIndex { keys: Vec::new(), is_met: false }
    }

    /// Compares the values of a segment as seen at `at` with others, then the index part with them;
    /// returns whether there is more. Fails if it met absent bytes.
    pub fn step(
        &mut self,
        (table, index): (&Table, &Index),
        state: &SegmentState,
        at: Timestamp,
        seen: &mut Seen,
        findings: &mut Findings,
    ) -> Result<bool> {
        let name = name_of(table, index);
        if !self.is_met {
            if let Err(error) = self.read_keys(table, index, state) {
                return findings.check(&name, Err(error)).map(|()| false);
            }
            for (row, key) in self.keys.iter().enumerate() {
                if !state.is_deleted_at(row as u32, at) {
                    meet(table, index, key, seen, findings);
                }
            }
            self.is_met = true;
            return Ok(true);
        }
        let Some(part) = state.part(index.id()) else { return Ok(false) };
        if part.file().id() != state.id() {
            findings.verify(&name, part.file())?;
        }
        let checked = part
            .check(index.types(), index.name(), state.segment.rows())
            .and_then(|()| check_part(table, index, &part, &self.keys, findings));
        findings.check(&name, checked).map(|()| false)
    }

    /// What was read before a miss is not read again.
    fn read_keys(&mut self, table: &Table, index: &Index, state: &SegmentState) -> Result<()> {
        while self.keys.len() < state.segment.rows() {
            self.keys.extend(block_keys(table.layout(), index, state, self.keys.len())?);
        }
        debug_assert!(
            self.keys.len() == state.segment.rows(),
            "{} keys of a segment of {} rows",
            self.keys.len(),
            state.segment.rows()
        );
        Ok(())
    }
}

fn name_of(table: &Table, index: &Index) -> String {
    format!("table {}: index {}", table.schema().name, index.name())
}

fn meet(table: &Table, index: &Index, index_key: &[u8], seen: &mut Seen, findings: &mut Findings) {
    if !index.may_repeat(index_key) && !seen.insert(fingerprint(index_key)) {
        let values = key::decode(index_key, index.types()).unwrap_or_default();
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        findings.add(format!("{}: ({}) exists twice", name_of(table, index), values.join(", ")));
    }
}

/// Checks that a part contains every row exactly once, under its key, in order.
fn check_part(
    table: &Table,
    index: &Index,
    part: &Arc<Part>,
    keys: &[Vec<u8>],
    findings: &mut Findings,
) -> Result<()> {
    debug_assert!(
        keys.len() == part.file().rows(),
        "{} keys are compared with a part of {}",
        keys.len(),
        part.file().rows()
    );
    let mut previous: Option<(&[u8], u32)> = None;
    for start in (0..keys.len()).step_by(limits::BLOCK_ROWS) {
        let count = limits::BLOCK_ROWS.min(keys.len() - start);
        let columns =
            part.keys().iter().map(|c| part.file().decode(*c, start, count).map(Arc::new));
        let stored = index.encode_rows(&Batch::new(columns.collect::<Result<_>>()?, count))?;
        for (at, (stored, row)) in stored.iter().zip(part.rows(start, count)?).enumerate() {
            let place = || format!("{}: segment {}", name_of(table, index), part.file().name());
            let Some(key) = keys.get(row as usize) else { continue };
            if stored != key {
                findings.add(format!(
                    "{}: row {row} has another key than position {}",
                    place(),
                    start + at
                ));
            }
            // Strictly ascending, so no row repeats; the count matches, so none is missing.
            if previous.is_some_and(|previous| previous >= (key.as_slice(), row)) {
                findings.add(format!("{}: position {} is out of order", place(), start + at));
            }
            previous = Some((key, row));
            let is_left_out = key::parts(key, index.types()).any(|part| part.first() == Some(&0));
            if let Some(filter) = part.filter()
                && !is_left_out
                && !part.file().may_have(filter, hash_bytes(key))?
            {
                findings.add(format!("{}: row {row} is missing from the filter", place()));
            }
        }
    }
    Ok(())
}

/// Checks that every visible row in memory has an index entry.
pub(super) fn check_memory(
    table: &Table,
    index: &Index,
    partition: &Partition,
    at: Timestamp,
    seen: &mut Seen,
    findings: &mut Findings,
) {
    let entries = index.entries(partition.number());
    partition.each_node(|node| {
        let Visible::Row(row) = node.visible(at, None) else { return };
        let layout = table.layout();
        let key = layout.upgrade(row).and_then(|row| index.key_of(layout, &row));
        let Ok(key) = key else { return };
        let place = [key.as_slice(), node.key()].concat();
        let mut found = Vec::new();
        entries.range(Bound::Included(&place), None, 1, &mut found);
        if found.first().is_none_or(|entry| entry.bytes() != place) {
            findings.add(format!("{}: a row in memory has no entry", name_of(table, index)));
        }
        meet(table, index, &key, seen, findings);
    });
}
