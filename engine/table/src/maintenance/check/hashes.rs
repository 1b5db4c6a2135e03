//! Checks hash tables: their files, and their entries against the keys of the segments they cover.

use crate::index::hash::reader::{KeyPlace, SegmentKeys, TableReader};
use crate::index::hash::table::{HashTable, POSITION_BITS, unpack};
use crate::maintenance::check::findings::Findings;
use crate::record::KeySet;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::Result;
use std::sync::Arc;

/// Checks the hash tables of a segment list.
pub(super) fn check(table: &Table, list: &SegmentList, findings: &mut Findings) {
    for hashes in list.tables() {
        let name = match hashes.keys() {
            KeySet::Primary => "primary key".to_string(),
            KeySet::Index(id) => {
                table.index(id).map_or_else(|_| id.to_string(), |index| index.name().to_string())
            }
        };
        let place =
            format!("table {}: hash table {:016x} of {name}", table.schema().name, hashes.id());
        let problems: Vec<_> = hashes.files().iter().flat_map(|file| file.verify()).collect();
        let is_damaged = !problems.is_empty();
        problems.iter().for_each(|problem| findings.add(format!("{place}: {}", problem.message())));
        if !is_damaged && let Err(error) = check_entries(table, list, hashes, &place, findings) {
            findings.add(format!("{place}: {}", error.message()));
        }
    }
}

/// Checks that each remaining segment has exactly its entries, and that all entries are in order.
fn check_entries(
    table: &Table,
    list: &SegmentList,
    hashes: &Arc<HashTable>,
    place: &str,
    findings: &mut Findings,
) -> Result<()> {
    let mut entries: Vec<Vec<u64>> = vec![Vec::new(); hashes.segments().len()];
    let mut reader =
        TableReader::new(hashes.clone(), (0..hashes.segments().len()).map(Some).collect());
    loop {
        while reader.is_empty() {
            reader.read_block()?;
        }
        let Some((hash, entry)) = reader.peek() else { break };
        let (segment, position) = unpack(entry);
        entries[segment].push((hash as u64) << POSITION_BITS | u64::from(position));
        reader.advance();
    }
    for (id, mut found) in hashes.segments().iter().zip(entries) {
        let Some(state) = list.iter().find(|state| state.id() == *id && state.is_current()) else {
            continue;
        };
        let Some(keys) = KeyPlace::find(table.layout(), hashes.keys(), state)? else {
            findings.add(format!("{place}: segment {id} has no index part"));
            continue;
        };
        let mut keys = SegmentKeys::new(keys);
        while !keys.is_read() {
            keys.read_block()?;
        }
        let (mut hashes, mut positions) = (Vec::new(), Vec::new());
        while keys.take(&mut hashes, &mut positions) {}
        let expected = hashes.iter().zip(&positions);
        found.sort_unstable();
        if !found
            .iter()
            .copied()
            .eq(expected.map(|(hash, at)| (*hash as u64) << POSITION_BITS | *at as u64))
        {
            findings.add(format!("{place}: its entries do not match the keys of segment {id}"));
        }
    }
    Ok(())
}
