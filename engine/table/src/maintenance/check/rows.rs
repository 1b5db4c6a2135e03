//! `check`: reads everything and compares it with what must hold. Reports; repairs nothing.

use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::Visible;
use nacre_types::hash::{Set, combine, hash_bytes};
use nacre_types::{Result, Timestamp, Value, key, limits};
use std::sync::Arc;

/// More findings than these are counted, not listed.
const MAX_FINDINGS: usize = 100;

impl Store {
    /// Verifies every checksum, every zone map, the order of segments, the delete bitmaps, and that each key
    /// is in one place only, and every index against the rows. Returns what is wrong, one sentence each.
    pub fn check(self: &Arc<Self>) -> Result<Vec<String>> {
        let guard = self.snapshot();
        let mut findings = Vec::new();
        for table in self.tables() {
            check_table(&table, guard.at(), &mut findings);
            crate::maintenance::check::indexes::check(&table, guard.at(), &mut findings);
        }
        Ok(findings)
    }
}

pub(crate) fn report(findings: &mut Vec<String>, finding: String) {
    if findings.len() < MAX_FINDINGS {
        findings.push(finding);
    } else if findings.len() == MAX_FINDINGS {
        findings.push("further findings are not listed".into());
    }
}

fn check_table(table: &Arc<Table>, at: Timestamp, findings: &mut Vec<String>) {
    // Two hashes of each key make a false alarm as good as impossible without keeping the keys.
    let mut keys: Set<(u64, u64)> = Set::default();
    for partition in table.partitions() {
        check_partition(table, partition, at, &mut keys, findings);
    }
}

fn check_partition(
    table: &Table,
    partition: &Partition,
    at: Timestamp,
    keys: &mut Set<(u64, u64)>,
    findings: &mut Vec<String>,
) {
    let name = &table.schema().name;
    for state in partition.segments().iter().filter(|s| s.exists_at(at)) {
        let problems = state.segment.verify();
        let damaged = !problems.is_empty();
        for problem in problems {
            report(findings, format!("table {name}: {}", problem.message()));
        }
        if let Some(deleted) = state.deleted_at(at)
            && let Some(highest) = deleted.max()
            && highest as usize >= state.segment.rows()
        {
            report(
                findings,
                format!(
                    "table {name}: segment {}: deleted row {highest} does not exist",
                    state.segment.name()
                ),
            );
        }
        // Keys of a damaged segment cannot be read, or not be trusted.
        if !damaged && let Err(e) = check_keys(table, partition.number(), state, at, keys, findings)
        {
            report(findings, format!("table {name}: {}", e.message()));
        }
    }
    check_rowstore(table, partition, at, keys, findings);
}

/// Two hashes of a key.
pub(crate) fn fingerprint(key: &[u8]) -> (u64, u64) {
    let hash = hash_bytes(key);
    (
        hash,
        combine(
            hash,
            key.iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
                (h ^ *b as u64).wrapping_mul(0x100_0000_01b3)
            }),
        ),
    )
}

fn check_keys(
    table: &Table,
    partition: u32,
    state: &SegmentState,
    at: Timestamp,
    keys: &mut Set<(u64, u64)>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let (name, segment) = (&table.schema().name, &state.segment);
    let columns = table.order_columns(segment)?;
    let key_start = columns.len() - table.key_types().len();
    let mut in_place: Vec<Vec<u8>> = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    for start in (0..segment.rows()).step_by(limits::BLOCK_ROWS) {
        let count = limits::BLOCK_ROWS.min(segment.rows() - start);
        let vectors =
            columns.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<Vec<_>>>()?;
        for row in 0..count {
            let values: Vec<Value> = vectors.iter().map(|v| v.value(row)).collect();
            let order = table.encode_order(&values)?;
            let encoded = table.encode_key(&values[key_start..])?;
            if start + row > 0 && order < previous {
                report(
                    findings,
                    format!(
                        "table {name}: segment {}: row {} is out of order",
                        segment.name(),
                        start + row
                    ),
                );
            }
            if table.partition_of(&encoded).number() != partition {
                report(
                    findings,
                    format!(
                        "table {name}: segment {}: row {} is in the wrong partition",
                        segment.name(),
                        start + row
                    ),
                );
            }
            if !state.may_have(Some(hash_bytes(&encoded)))? {
                let row = start + row;
                report(
                    findings,
                    format!(
                        "table {name}: segment {}: the filter leaves out row {row}",
                        segment.name()
                    ),
                );
            }
            if !state.is_deleted_at((start + row) as u32, at) && !keys.insert(fingerprint(&encoded))
            {
                let key: Vec<String> =
                    values[key_start..].iter().map(ToString::to_string).collect();
                report(findings, format!("table {name}: key ({}) is there twice", key.join(", ")));
            }
            previous = order;
            if table.sort_columns().is_some() {
                in_place.push(encoded);
            }
        }
    }
    // Strictly ascending, so that no row is there twice, and by their number all are there.
    let mut previous: Option<&[u8]> = None;
    for at in 0..in_place.len() {
        let key = in_place[table.row_in_key_order(segment, at)?].as_slice();
        if previous.is_some_and(|previous| previous >= key) {
            report(
                findings,
                format!("table {name}: segment {}: key order is wrong at {at}", segment.name()),
            );
        }
        previous = Some(key);
    }
    Ok(())
}

fn check_rowstore(
    table: &Table,
    partition: &Partition,
    at: Timestamp,
    keys: &mut Set<(u64, u64)>,
    findings: &mut Vec<String>,
) {
    let name = &table.schema().name;
    let mut nodes = Vec::new();
    partition.rowstore.range_after(None, usize::MAX, &mut nodes);
    for node in nodes {
        let Visible::Row(row) = node.visible(at, None) else { continue };
        if let Err(e) = table.validate_row(&row) {
            report(findings, format!("table {name}: rowstore: {}", e.message()));
            continue;
        }
        if table.partition_of(node.key()).number() != partition.number() {
            report(
                findings,
                format!("table {name}: a row of the rowstore is in the wrong partition"),
            );
        }
        if !keys.insert(fingerprint(node.key())) {
            let key = key::decode(node.key(), &table.key_types()).unwrap_or_default();
            let key: Vec<String> = key.iter().map(ToString::to_string).collect();
            report(
                findings,
                format!(
                    "table {name}: key ({}) is in the rowstore and in a segment",
                    key.join(", ")
                ),
            );
        }
    }
}
