//! Verifies that no two rows of a table have the same key of a new unique index, in bounded memory.
//!
//! Keys are compared by their fingerprints, which are collected and sorted in a share of the memory of
//! statements. If those of a table do not fit, a pass over the rows takes a range of fingerprints that
//! does, and the next pass continues after it. Of rows that are verified a second time, only the keys
//! of those committed since are collected, and one pass compares them with all others.

use crate::catalog::to_verify::ToVerify;
use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::block_keys;
use crate::layout::keys::fingerprint;
use crate::statement_memory::StatementMemory;
use crate::table::version::Table;
use nacre_types::{Error, Result, invariant, limits};

/// The least fingerprints of a pass. They are collected even if no memory is left for them.
const LEAST: usize = if cfg!(test) { 64 } else { 1 << 16 };
/// The share of the memory of statements that fingerprints may take.
const SHARE: usize = 2;

/// Two hashes of a key.
type Fingerprint = (u64, u64);

/// Fingerprints of one pass.
struct Pass<'a> {
    memory: &'a StatementMemory,
    all: Vec<Fingerprint>,
    /// How many may be collected.
    most: usize,
}

impl<'a> Pass<'a> {
    /// Takes memory for this many fingerprints, or for as many as there is room for.
    fn new(memory: &'a StatementMemory, wanted: usize) -> Pass<'a> {
        let share = memory.limit_bytes() / SHARE / size_of::<Fingerprint>();
        let mut most = wanted.min(share).max(LEAST);
        while most > LEAST && !memory.take(most * size_of::<Fingerprint>()) {
            most = (most / 2).max(LEAST);
        }
        if most == LEAST {
            memory.take_always(most * size_of::<Fingerprint>());
        }
        debug_assert!(most >= LEAST, "a pass of {most} fingerprints");
        Pass { memory, all: Vec::with_capacity(most), most }
    }

    /// Sorts the fingerprints. Returns one that was collected twice.
    fn sort(&mut self) -> Option<Fingerprint> {
        debug_assert!(self.all.len() <= self.most, "{} of {}", self.all.len(), self.most);
        self.all.sort_unstable();
        self.all.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// Keeps the lower half, once there is no room for more. Returns where the range of this pass ends
    /// now. All fingerprints must differ.
    fn keep_half(&mut self) -> Fingerprint {
        invariant!(self.all.len() > 1, "half of {} fingerprints is kept", self.all.len());
        let end = self.all[self.all.len() / 2];
        self.all.truncate(self.all.len() / 2);
        debug_assert!(
            self.all.last().is_some_and(|last| *last < end),
            "the range ends before {end:?}"
        );
        end
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.memory.give_back(self.most * size_of::<Fingerprint>());
    }
}

/// Checks rows against the unique indexes that the old version of the table did not have. Rows in
/// memory must already be in them.
pub(super) fn verify(table: &Table, old: &Table, to_verify: ToVerify<'_>) -> Result<()> {
    debug_assert!(table.shares_partitions(old), "an index is verified against another table");
    let mut new = table.unique_indexes().filter(|index| !old.has_index(index.id()));
    new.try_for_each(|index| verify_index(table, index, to_verify))
}

fn verify_index(table: &Table, index: &Index, to_verify: ToVerify<'_>) -> Result<()> {
    debug_assert!(index.is_unique(), "index {} is verified and not unique", index.name());
    let in_memory = |partition| index.entries(partition).len();
    let rows: usize = table
        .partitions()
        .iter()
        .map(|one| in_memory(one.number()) + one.segments().live_rows() as usize)
        .sum();
    // Rows that come meanwhile make a pass more.
    let mut pass = Pass::new(to_verify.memory, rows);
    let twice = match to_verify.is_all() || !collect_new(table, index, to_verify, &mut pass)? {
        true => find_in_passes(table, index, to_verify, &mut pass)?,
        false => find_new(table, index, to_verify, &mut pass)?,
    };
    drop(pass);
    let Some(twice) = twice else { return Ok(()) };
    each_key(table, index, ToVerify { since: 0, ..to_verify }, &mut |key| match fingerprint(key)
        == twice
    {
        true => Err(index.duplicate(&table.schema().name, key)),
        false => Ok(()),
    })?;
    // Other rows may have the same key as well, and were not looked at.
    let name = &table.schema().name;
    Err(Error::conflict(format!("rows of table {name} were changed while they were verified"))
        .with_hint("retry the statement"))
}

/// A fingerprint that several of all rows have.
fn find_in_passes(
    table: &Table,
    index: &Index,
    to_verify: ToVerify<'_>,
    pass: &mut Pass<'_>,
) -> Result<Option<Fingerprint>> {
    let all = ToVerify { since: 0, ..to_verify };
    let mut start = (0, 0);
    loop {
        let (mut end, mut twice) = (None, None);
        pass.all.clear();
        each_key(table, index, all, &mut |key| {
            let one = fingerprint(key);
            let is_out =
                |end: Option<Fingerprint>| one < start || end.is_some_and(|end| one >= end);
            if is_out(end) || twice.is_some() {
                return Ok(());
            }
            if pass.all.len() == pass.most {
                twice = pass.sort();
                if twice.is_some() {
                    return Ok(());
                }
                end = Some(pass.keep_half());
                if is_out(end) {
                    return Ok(());
                }
            }
            pass.all.push(one);
            Ok(())
        })?;
        let twice = twice.or_else(|| pass.sort());
        match end {
            Some(end) if twice.is_none() => {
                invariant!(start < end, "a pass over fingerprints from {start:?} on takes none");
                start = end;
            }
            _ => return Ok(twice),
        }
    }
}

/// Collects the fingerprints of the rows committed since; returns `false` if there are too many.
fn collect_new(
    table: &Table,
    index: &Index,
    to_verify: ToVerify<'_>,
    pass: &mut Pass<'_>,
) -> Result<bool> {
    debug_assert!(!to_verify.is_all(), "all rows are collected as new ones");
    let mut is_full = false;
    each_key(table, index, to_verify, &mut |key| {
        is_full |= pass.all.len() == pass.most;
        if !is_full {
            pass.all.push(fingerprint(key));
        }
        Ok(())
    })?;
    Ok(!is_full)
}

/// A fingerprint of those collected that several rows have.
fn find_new(
    table: &Table,
    index: &Index,
    to_verify: ToVerify<'_>,
    pass: &mut Pass<'_>,
) -> Result<Option<Fingerprint>> {
    let mut twice = pass.sort();
    if twice.is_some() || pass.all.is_empty() {
        return Ok(twice);
    }
    let mut is_met = vec![false; pass.all.len()];
    debug_assert!(pass.all.is_sorted(), "new fingerprints are searched out of order");
    each_key(table, index, ToVerify { since: 0, ..to_verify }, &mut |key| {
        let one = fingerprint(key);
        if let Ok(at) = pass.all.binary_search(&one)
            && std::mem::replace(&mut is_met[at], true)
        {
            twice = Some(one);
        }
        Ok(())
    })?;
    Ok(twice)
}

/// Visits the index keys of rows that no other row may have.
fn each_key(
    table: &Table,
    index: &Index,
    to_verify: ToVerify<'_>,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let rows = to_verify.rows;
    let mut visit = |key: &[u8]| if index.may_repeat(key) { Ok(()) } else { visit(key) };
    for partition in table.partitions() {
        // Listed first: a row that is flushed meanwhile is not met twice.
        let list = rows.segments(partition);
        each_entry(index, partition.number(), &[], None, |entry| {
            let node = partition.rowstore().get(entry.row_key());
            let node = node.filter(|node| to_verify.has_node(node));
            match node.and_then(|node| rows.row(&node)) {
                Some(row) if table.has_key(index, &row, entry.index_key())? => {
                    visit(entry.index_key())
                }
                _ => Ok(()),
            }
        })?;
        for state in list.iter().filter(|state| to_verify.has_segment(state)) {
            let deleted = rows.deleted(state);
            for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
                let keys = block_keys(table.layout(), index, state, start)?;
                debug_assert!(
                    keys.len() == limits::BLOCK_ROWS.min(state.segment.rows() - start),
                    "{} keys of the block at row {start}",
                    keys.len()
                );
                let live =
                    keys.iter().zip(start as u32..).filter(|(_, row)| !deleted.contains(*row));
                live.map(|(key, _)| key).try_for_each(|key| visit(key))?;
            }
        }
    }
    Ok(())
}
