//! Checks rows: checksums and zone maps of segments, their order, delete bitmaps, key filters, rows
//! in memory, and that each key is stored in one place only.

use crate::layout::keys::fingerprint;
use crate::maintenance::check::findings::{Findings, Seen};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::Visible;
use nacre_types::hash::hash_bytes;
use nacre_types::{Result, Timestamp, Value, key, limits};

/// Checks the rows of a segment as seen at `at`. Fails if it met absent bytes.
pub(super) fn check_segment(
    table: &Table,
    partition: u32,
    state: &SegmentState,
    at: Timestamp,
    keys: &mut Seen,
    findings: &mut Findings,
) -> Result<()> {
    let place = format!("table {}", table.schema().name);
    let is_damaged = findings.verify(&place, &state.segment)?;
    if let Some(deleted) = state.deleted_at(at)
        && let Some(highest) = deleted.max()
        && highest as usize >= state.segment.rows()
    {
        findings.add(format!(
            "{place}: segment {}: deleted row {highest} does not exist",
            state.segment.name()
        ));
    }
    // Keys of a damaged segment may be unreadable or wrong.
    if is_damaged {
        return Ok(());
    }
    let checked = check_keys(table, partition, state, at, keys, findings);
    findings.check(&place, checked)
}

fn check_keys(
    table: &Table,
    partition: u32,
    state: &SegmentState,
    at: Timestamp,
    keys: &mut Seen,
    findings: &mut Findings,
) -> Result<()> {
    let (name, segment) = (&table.schema().name, &state.segment);
    let columns = table.layout().order_columns(segment)?;
    let key_start = columns.len() - table.layout().key_types().len();
    let mut in_place: Vec<Vec<u8>> = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    for start in (0..segment.rows()).step_by(limits::BLOCK_ROWS) {
        let count = limits::BLOCK_ROWS.min(segment.rows() - start);
        let vectors =
            columns.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<Vec<_>>>()?;
        for row in 0..count {
            let values: Vec<Value> = vectors.iter().map(|v| v.value(row)).collect();
            let order = table.layout().encode_order(&values)?;
            let encoded = table.layout().encode_key(&values[key_start..])?;
            if start + row > 0 && order < previous {
                findings.add(format!(
                    "table {name}: segment {}: row {} is out of order",
                    segment.name(),
                    start + row
                ));
            }
            if table.partition_of(&encoded).number() != partition {
                findings.add(format!(
                    "table {name}: segment {}: row {} is in the wrong partition",
                    segment.name(),
                    start + row
                ));
            }
            if !state.may_have(Some(hash_bytes(&encoded)))? {
                let row = start + row;
                findings.add(format!(
                    "table {name}: segment {}: row {row} is missing from the key filter",
                    segment.name()
                ));
            }
            if !state.is_deleted_at((start + row) as u32, at) && !keys.insert(fingerprint(&encoded))
            {
                let key: Vec<String> =
                    values[key_start..].iter().map(ToString::to_string).collect();
                findings.add(format!("table {name}: key ({}) exists twice", key.join(", ")));
            }
            previous = order;
            if table.layout().sort_columns().is_some() {
                in_place.push(encoded);
            }
        }
    }
    debug_assert!(
        in_place.is_empty() || in_place.len() == segment.rows(),
        "{} keys of a segment of {} rows",
        in_place.len(),
        segment.rows()
    );
    // Strictly ascending, so no row repeats; the count matches, so none is missing.
    let mut previous: Option<&[u8]> = None;
    for at in 0..in_place.len() {
        let key = in_place[table.layout().row_in_key_order(segment, at)?].as_slice();
        if previous.is_some_and(|previous| previous >= key) {
            findings.add(format!(
                "table {name}: segment {}: key order is wrong at {at}",
                segment.name()
            ));
        }
        previous = Some(key);
    }
    Ok(())
}

/// Checks the rows in memory as seen at `at`.
pub(super) fn check_rowstore(
    table: &Table,
    partition: &Partition,
    at: Timestamp,
    keys: &mut Seen,
    findings: &mut Findings,
) {
    let name = &table.schema().name;
    let mut nodes = Vec::new();
    partition.rowstore().range_after(None, usize::MAX, &mut nodes);
    for node in nodes {
        let Visible::Row(row) = node.visible(at, None) else { continue };
        if let Err(e) = table.layout().validate_row(&row) {
            findings.add(format!("table {name}: rowstore: {}", e.message()));
            continue;
        }
        if table.partition_of(node.key()).number() != partition.number() {
            findings.add(format!("table {name}: a row of the rowstore is in the wrong partition"));
        }
        if !keys.insert(fingerprint(node.key())) {
            let key = key::decode(node.key(), &table.layout().key_types()).unwrap_or_default();
            let key: Vec<String> = key.iter().map(ToString::to_string).collect();
            findings.add(format!(
                "table {name}: key ({}) is in the rowstore and in a segment",
                key.join(", ")
            ));
        }
    }
}
