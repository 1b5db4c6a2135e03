//! Runs all checks on all tables.

use crate::maintenance::check::findings::Findings;
use crate::maintenance::check::{hashes, indexes, rows, runs};
use crate::maintenance::context::TaskContext;

/// Verifies every checksum, every zone map, the order of segments and runs, the delete bitmaps, that each
/// key is stored in one place only, and every index against the rows. Returns the violations, one
/// sentence each.
pub(crate) fn check(context: &TaskContext) -> Vec<String> {
    let guard = context.snapshots().take();
    let mut findings = Findings::default();
    for table in context.catalog().tables() {
        rows::check(&table, guard.at(), &mut findings);
        runs::check(&table, &mut findings);
        indexes::check(&table, guard.at(), &mut findings);
        for partition in table.partitions() {
            hashes::check(&table, &partition.segments(), &mut findings);
        }
    }
    findings.into_list()
}
