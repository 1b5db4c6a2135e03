//! Bulk load: rows go directly into sorted segments and become visible together at the end.
//!
//! Existing keys are searched for in two phases: first among committed rows, without a lock; then
//! under the commit lock, only if the table changed meanwhile. The first phase does not see commits
//! in progress, which may still fail; so what it rejects, skips or replaces needs no second check.
//! Source: Apache Doris, delete bitmaps of merge-on-write loads.

use crate::layout::constraints::check_row_length;
use crate::load::duplicates::resolve_inside;
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::pending::Pending;
use crate::load::publish::{self, Ownership};
use crate::load::write::write_sorted;
use crate::load::{one_by_one, unique};
use crate::table::sharding::Share;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_types::{Error, Result, TableSchema, invariant};
use std::sync::Arc;

/// A load into several partitions keeps at most this many segments' worth of rows in memory.
const PENDING_SEGMENTS: usize = 2;

/// A load under way. Dropping it leaves the table as it was.
pub struct BulkLoad {
    loader: Arc<Loader>,
    table: Arc<Table>,
    on_duplicate: OnDuplicate,
    /// Indexed by partition.
    pending: Vec<Pending>,
    files: Vec<Loaded>,
    /// Rows to insert one by one through a transaction.
    one_by_one: Option<Vec<Batch>>,
    /// Whether the load also creates the table.
    creates: bool,
    /// The error that lost rows, after which the load cannot finish.
    failed: Option<Error>,
    ownership: Ownership,
}

impl BulkLoad {
    /// Starts a load into a table.
    pub(crate) fn into_table(
        loader: &Arc<Loader>,
        table: &Arc<Table>,
        on_duplicate: OnDuplicate,
    ) -> BulkLoad {
        let one_by_one = on_duplicate != OnDuplicate::Error && table.has_unique_index();
        BulkLoad {
            loader: loader.clone(),
            table: table.clone(),
            on_duplicate,
            pending: table.partitions().iter().map(|_| Pending::default()).collect(),
            files: Vec::new(),
            one_by_one: one_by_one.then(Vec::new),
            creates: false,
            failed: None,
            ownership: Ownership::Load,
        }
    }

    /// Starts a load into a table that is created when the load finishes. `already_exists` if its
    /// name is taken now or when the load finishes.
    pub(crate) fn create_table(loader: &Arc<Loader>, schema: TableSchema) -> Result<BulkLoad> {
        let table = loader.catalog().new_table(schema)?;
        loader.catalog().read(|contents| contents.check_name(&table.schema().name))?;
        let mut load = BulkLoad::into_table(loader, &table, OnDuplicate::Error);
        load.creates = true;
        Ok(load)
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Adds rows in table order. May write a segment file; after an error, every further call
    /// returns that error.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        self.check_usable()?;
        let batch = batch.clone().compact();
        self.table.layout().check_batch(&batch)?;
        check_row_lengths(&batch)?;
        let added = self.add(batch);
        self.failed = added.as_ref().err().cloned();
        added
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.loader.commits().check_open(),
        }
    }

    fn add(&mut self, batch: Batch) -> Result<()> {
        if let Some(batches) = &mut self.one_by_one {
            batches.push(batch);
            return Ok(());
        }
        if self.pending.len() == 1 {
            return self.append_to(0, batch);
        }
        for Share { partition, batch } in self.table.split(batch)? {
            self.append_to(partition, batch)?;
        }
        // If many partitions fill at the same pace, they must not each hold a segment in memory.
        loop {
            let sum = |of: &dyn Fn(&Pending) -> usize| {
                self.pending.iter().map(of).sum::<usize>() / PENDING_SEGMENTS
            };
            if !self.loader.is_full(sum(&Pending::rows), sum(&Pending::bytes)) {
                return Ok(());
            }
            let fullest = (0u32..).zip(&self.pending).max_by_key(|(_, pending)| pending.bytes());
            let Some((fullest, _)) = fullest else { return Ok(()) };
            self.write_pending(fullest)?;
        }
    }

    fn append_to(&mut self, partition: u32, batch: Batch) -> Result<()> {
        debug_assert!(
            batch.columns.len() == self.table.schema().columns.len(),
            "rows of {} columns for partition {partition}",
            batch.columns.len()
        );
        self.pending[partition as usize].add(batch);
        loop {
            let pending = &self.pending[partition as usize];
            if !self.loader.is_full(pending.rows(), pending.bytes()) {
                return Ok(());
            }
            self.write_pending(partition)?;
        }
    }

    /// Writes the next segment from the pending rows of a partition.
    fn write_pending(&mut self, partition: u32) -> Result<()> {
        let options = self.loader.options();
        let pending = &mut self.pending[partition as usize];
        let before = pending.rows();
        let rows = pending.take(options.segment_rows, options.segment_bytes);
        debug_assert!(
            pending.rows() + rows.count == before,
            "{} of {before} pending rows are taken and {} left",
            rows.count,
            pending.rows()
        );
        if rows.count == 0 {
            return Ok(());
        }
        let (table, files) = (&self.table, &self.files);
        let loaded = write_sorted(&self.loader, table, partition, rows, self.on_duplicate, files)?;
        self.files.push(loaded);
        Ok(())
    }

    /// Publishes all rows, or none. Returns how many rows the table gained or replaced.
    pub fn finish(mut self) -> Result<u64> {
        self.check_usable()?;
        if let Some(batches) = self.one_by_one.take() {
            invariant!(self.files.is_empty(), "a load has rows in files and outside");
            return one_by_one::load(&self.loader, &self.table, self.on_duplicate, &batches);
        }
        for partition in 0..self.pending.len() {
            while self.pending[partition].rows() > 0 {
                self.write_pending(partition as u32)?;
            }
        }
        if self.files.is_empty() && !self.creates {
            return Ok(0);
        }
        resolve_inside(&self.table, self.on_duplicate, &mut self.files)?;
        unique::check_inside(&self.table, &publish::unlisted(&self.table, &self.files))?;
        let (table, ownership) = (&self.table, &mut self.ownership);
        if self.creates {
            publish::with_table(&self.loader, table, &self.files, ownership)?;
        } else {
            let files = &mut self.files;
            publish::into_table(&self.loader, table, self.on_duplicate, files, ownership)?;
        }
        Ok(self.files.iter().map(Loaded::live_rows).sum())
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        if self.ownership == Ownership::Load {
            let files = self.files.iter();
            files.for_each(|file| self.loader.files().remove_unnamed(file.segment.name()));
        }
    }
}

/// Rejects rows that are too long.
pub(crate) fn check_row_lengths(batch: &Batch) -> Result<()> {
    debug_assert!(batch.selection.is_none(), "a batch to be loaded is not compact");
    if check_row_length(batch.longest_row()).is_ok() {
        return Ok(());
    }
    let bytes_of = |row: usize| {
        batch.columns.iter().filter_map(|c| c.bytes(row)).map(<[u8]>::len).sum::<usize>()
    };
    (0..batch.rows).try_for_each(|row| check_row_length(bytes_of(row)))
}
