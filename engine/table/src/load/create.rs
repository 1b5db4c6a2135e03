//! A table that is made with its rows, in one commit: after a crash there are both or neither, and whoever begins after
//! it sees both. Whoever began before may know the table, as he knows any new one, and sees it empty.
//!
//! While it is loaded the table is in no catalog, so nothing else looks at it or keeps its files from being removed.

use crate::load::bulk_load::{BulkLoad, OnDuplicate};
use crate::record;
use crate::segments::state::SegmentState;
use crate::store::Store;
use nacre_types::{Result, TableSchema};
use std::sync::Arc;

impl Store {
    /// Starts a load into a table that is made when the load finishes. `already_exists` when its name is taken, now or
    /// then.
    pub fn bulk_create(self: &Arc<Self>, schema: TableSchema) -> Result<BulkLoad> {
        let table = self.new_table(schema)?;
        self.read_catalog(|catalog| catalog.check_name(table.schema()))?;
        let mut load = self.bulk_load(&table, OnDuplicate::Error);
        load.creates = true;
        Ok(load)
    }
}

impl BulkLoad {
    /// Publishes the table and all rows, or neither. Returns how many rows it has.
    pub(super) fn publish_created(&mut self) -> Result<u64> {
        let (store, table) = (self.store.clone(), self.table.clone());
        let mut payload = record::begin(0);
        record::create_table(&mut payload, table.schema())?;
        self.add_segments(&mut payload)?;
        store.commit_ddl(payload, |catalog, commit| {
            catalog.add(&table, commit)?;
            for partition in table.partitions() {
                let own = self.files.iter().filter(|f| f.partition == partition.number());
                let states = own.map(|f| {
                    let state = SegmentState::new(f.segment.clone(), commit, f.rejected.clone());
                    Arc::new(state.with_content(commit).with_bitmaps(&store.bitmaps))
                });
                partition.update_segments(|list| list.extend(states));
            }
            table.set_changed(commit);
            // From here on the files belong to the table, whatever becomes of the record.
            self.done = true;
            Ok(())
        })?;
        Ok(self.files.iter().map(|f| f.segment.rows() as u64 - f.rejected.len()).sum())
    }
}
