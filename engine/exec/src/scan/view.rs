//! The view of a table that a scan reads.

use super::point::only_partition;
use super::spec::ScanSpec;
use nacre_operator::context::Context;
use nacre_table::{Table, TableView};
use std::sync::Arc;

/// The view of a table for a scan, reduced to one partition if the filters fix the shard key.
pub(super) fn view_of(table: &Arc<Table>, spec: ScanSpec<'_>, context: &Context<'_>) -> TableView {
    let mut view = context.transaction.view(table);
    if let Some(partition) = only_partition(table, spec.projection, spec.filters, context) {
        view.only_partition(partition);
        context.statistics.partitions_skipped.add(table.partitions().len() - 1);
    }
    view
}
