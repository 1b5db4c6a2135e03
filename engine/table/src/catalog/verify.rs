//! Verifies that the rows of a table satisfy a new unique index.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::block_keys;
use crate::layout::keys::fingerprint;
use crate::table::version::Table;
use nacre_rowstore::{Change, Node};
use nacre_types::{Result, limits};
use std::sync::Arc;

/// Checks all rows against the unique indexes that `old` did not have. Rows in memory must already
/// be indexed. The answer is final only under the commit lock.
pub(crate) fn new_indexes(table: &Table, old: &Table) -> Result<()> {
    debug_assert!(table.shares_partitions(old), "an index is verified against another table");
    let mut new = table.unique_indexes().filter(|index| !old.has_index(index.id()));
    new.try_for_each(|index| unique(table, index))
}

fn unique(table: &Table, index: &Index) -> Result<()> {
    let mut seen: Vec<(u64, u64)> = Vec::new();
    each_key(table, index, &mut |key| {
        if !index.may_repeat(key) {
            seen.push(fingerprint(key));
        }
        Ok(())
    })?;
    seen.sort_unstable();
    let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]) else {
        return Ok(());
    };
    drop(seen);
    each_key(table, index, &mut |key| {
        if fingerprint(key) == twice {
            Err(index.duplicate(&table.schema().name, key))
        } else {
            Ok(())
        }
    })
}

/// Visits the index keys of all rows as of now.
fn each_key(
    table: &Table,
    index: &Index,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for partition in table.partitions() {
        each_entry(index, partition.number(), &[], None, |entry| {
            let node = partition.rowstore().get(entry.row_key());
            match node.and_then(|node: Arc<Node>| node.newest()).map(|version| version.change) {
                Some(Change::Put(row)) if table.has_key(index, &row, entry.index_key())? => {
                    visit(entry.index_key())
                }
                _ => Ok(()),
            }
        })?;
        for state in partition.segments().iter().filter(|state| state.is_current()) {
            let deleted = state.all_deleted();
            for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
                let keys = block_keys(table.schema(), index, state, start)?;
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
