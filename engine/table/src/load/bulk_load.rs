//! Bulk load: rows go directly into sorted segments and become visible together at the end.
//!
//! A load writes its files as rows arrive, finds the keys that it has twice, and is then published
//! ([`Publication`]). Each of these steps is bounded, so that a thread can do other work in
//! between.

use crate::layout::constraints::check_row_length;
use crate::load::inside;
use crate::load::loaded::{Load, Loaded, OnDuplicate, held_by_another};
use crate::load::loader::Loader;
use crate::load::pending::{self, Pending};
use crate::load::publish::{self, Ownership, Publication, Round};
use crate::load::write::Target;
use crate::table::sharding::Share;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_host::fetched::Fetched;
use nacre_rowstore::{Blocker, Owner};
use nacre_types::walked::{self, Path};
use nacre_types::{DataType, Error, Result, TableSchema, invariant};
use std::sync::Arc;

/// A load under way. Dropping it leaves the table as it was.
pub struct BulkLoad {
    loader: Arc<Loader>,
    table: Arc<Table>,
    on_duplicate: OnDuplicate,
    /// Indexed by partition.
    pending: Vec<Pending>,
    files: Vec<Loaded>,
    /// Files are numbered by the round they were written in.
    rounds: usize,
    /// The number of the next row, if the order of rows matters beyond their primary keys.
    next_number: Option<i64>,
    /// Whether the load also creates the table.
    creates: bool,
    /// Whether the created table replaces one with its name.
    replaces: bool,
    /// The error that lost rows, after which the load cannot finish.
    failed: Option<Error>,
    ownership: Ownership,
    /// What resolving and publishing have fetched.
    fetched: Fetched,
    /// Set once all files are complete.
    publication: Option<Publication>,
}

/// What a step of a load's end has come to.
pub enum LoadStep {
    /// There are more steps.
    More,
    /// The holder of a row lock must be waited for, as [`BulkLoad::owner`], before the next step.
    Blocked(Blocker),
    /// All rows are published. How many the table gained or replaced.
    Done(u64),
}

impl BulkLoad {
    /// Starts a load into a table.
    pub(crate) fn into_table(
        loader: &Arc<Loader>,
        table: &Arc<Table>,
        on_duplicate: OnDuplicate,
    ) -> BulkLoad {
        BulkLoad {
            loader: loader.clone(),
            table: table.clone(),
            on_duplicate,
            pending: table.partitions().iter().map(|_| Pending::default()).collect(),
            files: Vec::new(),
            rounds: 0,
            next_number: inside::is_ordered(table, on_duplicate).then_some(0),
            creates: false,
            replaces: false,
            failed: None,
            ownership: Ownership::Load,
            fetched: Fetched::default(),
            publication: None,
        }
    }

    /// Starts a load into a table that is created when the load finishes. `already_exists` if its
    /// name is taken now or when the load finishes, unless the table `replaces` the one that has it.
    pub(crate) fn create_table(
        loader: &Arc<Loader>,
        schema: TableSchema,
        replaces: bool,
    ) -> Result<BulkLoad> {
        let table = loader.catalog().new_table(schema)?;
        if !replaces {
            loader.catalog().read(|contents| contents.check_name(&table.schema().name))?;
        }
        let mut load = BulkLoad::into_table(loader, &table, OnDuplicate::Error);
        debug_assert!(table.created() == 0, "table {} exists before its load", table.schema().name);
        (load.creates, load.replaces) = (true, replaces);
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
        debug_assert!(self.publication.is_none(), "rows are added to a load that is ending");
        let batch = batch.clone().compact();
        self.table.check_batch(&batch)?;
        check_row_lengths(&batch)?;
        let _within = walked::within(Path::Load);
        let added = self.add(batch);
        self.failed = added.as_ref().err().cloned();
        added
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.loader.commits().check_writable(),
        }
    }

    fn add(&mut self, mut batch: Batch) -> Result<()> {
        if let Some(next) = &mut self.next_number {
            let numbers: Vec<i64> = (*next..).take(batch.rows).collect();
            *next += batch.rows as i64;
            let vector = Vector::new(DataType::Int64, Values::I64(numbers), None);
            batch.columns.push(Arc::new(vector));
        }
        let shares = match self.pending.len() {
            1 => vec![Share { partition: 0, batch }],
            _ => self.table.split(batch)?,
        };
        for Share { partition, batch } in shares {
            self.pending[partition as usize].add(batch);
        }
        if self.next_number.is_some() {
            let is_due = pending::is_full(&self.pending, &self.loader)
                || (0..self.pending.len() as u32).any(|at| self.is_full(at));
            return if is_due { self.write_round() } else { Ok(()) };
        }
        while let Some(partition) = pending::to_write(&self.pending, &self.loader) {
            self.write_pending(partition)?;
        }
        Ok(())
    }

    fn is_full(&self, partition: u32) -> bool {
        let pending = &self.pending[partition as usize];
        self.loader.is_full(pending.rows(), pending.bytes())
    }

    /// Writes all pending rows, and resolves the keys that they have twice.
    fn write_round(&mut self) -> Result<()> {
        debug_assert!(self.next_number.is_some(), "rows of a round are not numbered");
        let (first, mut numbers) = (self.files.len(), Vec::new());
        for partition in 0..self.pending.len() {
            while self.pending[partition].rows() > 0 {
                numbers.extend(self.write_some(partition as u32)?);
            }
        }
        self.rounds += 1;
        let round = first..self.files.len();
        inside::resolve_round(&self.table, self.on_duplicate, &mut self.files, round, &numbers)
    }

    /// Writes the next segment from the pending rows of a partition, as a round of its own.
    fn write_pending(&mut self, partition: u32) -> Result<()> {
        debug_assert!(self.next_number.is_none(), "numbered rows are written without their round");
        self.write_some(partition)?;
        self.rounds += 1;
        Ok(())
    }

    /// Writes pending rows of a partition. Returns the numbers of the rows of each file.
    fn write_some(&mut self, partition: u32) -> Result<Vec<Vec<i64>>> {
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
            return Ok(Vec::new());
        }
        let target = Target {
            loader: &self.loader,
            table: &self.table,
            partition,
            on_duplicate: self.on_duplicate,
            round: self.rounds,
            is_numbered: false,
        };
        let first = self.files.len();
        let numbers = target.write(rows, &mut self.files)?;
        let written = self.files.len() - first;
        invariant!(written > 0, "pending rows of partition {partition} are in no file");
        debug_assert!(
            self.next_number.is_none() || numbers.len() == written,
            "rows of {} files are numbered, {written} are written",
            numbers.len()
        );
        Ok(numbers)
    }

    /// Publishes all rows, or none. Returns how many rows the table gained or replaced. `conflict`
    /// if another transaction holds the lock of a row that has a key of the load.
    pub fn finish(mut self) -> Result<u64> {
        loop {
            match self.step()? {
                LoadStep::More => {}
                LoadStep::Blocked(_) => return Err(held_by_another(&self.table)),
                LoadStep::Done(rows) => return Ok(rows),
            }
        }
    }

    /// Does a part of [`BulkLoad::finish`]. After an error, nothing is published. No rows may be
    /// added after the first step.
    ///
    /// A read of absent bytes is waited for. Where threads cannot block, it is the error, after which
    /// the next call continues if [`BulkLoad::can_continue`].
    pub fn step(&mut self) -> Result<LoadStep> {
        self.check_usable()?;
        if self.has_pending() {
            let _within = walked::within(Path::Load);
            let written = self.write_next();
            self.failed = written.as_ref().err().cloned();
            return written.map(|()| LoadStep::More);
        }
        let step = match self.publication {
            None => self.prepare(),
            Some(_) => self.publish(),
        };
        let loader = self.loader.clone();
        let environment = loader.transactions().environment();
        match step {
            // The commit lock is free by now.
            Err(error) => environment.fetch_now(&mut self.fetched, error).map(|()| LoadStep::More),
            step => step,
        }
    }

    /// Whether [`BulkLoad::step`] can be called again after a read of absent bytes: not if rows were
    /// taken to be written, and their files cannot be resolved.
    pub fn can_continue(&self) -> bool {
        self.failed.is_none() && !self.has_pending()
    }

    /// Whether rows are in no file yet.
    fn has_pending(&self) -> bool {
        self.pending.iter().any(|rows| rows.rows() > 0)
    }

    /// Writes pending rows.
    fn write_next(&mut self) -> Result<()> {
        debug_assert!(self.publication.is_none(), "rows are written of a load that is ending");
        match (0u32..).zip(&self.pending).find(|(_, rows)| rows.rows() > 0) {
            Some(_) if self.next_number.is_some() => self.write_round(),
            Some((partition, _)) => self.write_pending(partition),
            None => Ok(()),
        }
    }

    /// Begins to publish the files, which are complete. Can be called again after a read of absent
    /// bytes: a row that was rejected is rejected again.
    fn prepare(&mut self) -> Result<LoadStep> {
        let _within = walked::within(Path::Load);
        debug_assert!(self.publication.is_none(), "a load is published twice");
        if !self.begin()? {
            return Ok(LoadStep::Done(0));
        }
        let BulkLoad { loader, table, files, ownership, creates, replaces, .. } = self;
        if !*creates {
            return Ok(LoadStep::More);
        }
        let replaced = match *replaces {
            true => loader.catalog().table(&table.schema().name),
            false => None,
        };
        publish::with_table(loader, (table, replaced), files, ownership).map(LoadStep::Done)
    }

    fn publish(&mut self) -> Result<LoadStep> {
        debug_assert!(!self.has_pending(), "rows are pending in a load that is being published");
        let BulkLoad { loader, table, files, on_duplicate, publication, ownership, .. } = self;
        let load = Load { loader, table, on_duplicate: *on_duplicate, files, leaving: None };
        let Some(publication) = publication else { return Ok(LoadStep::Done(0)) };
        Ok(match publication.step(load, ownership)? {
            Round::More => LoadStep::More,
            Round::Blocked(blocker) => LoadStep::Blocked(blocker),
            Round::Done(rows) => LoadStep::Done(rows),
        })
    }

    /// Resolves the keys that the load has twice. Returns whether there is anything to publish.
    fn begin(&mut self) -> Result<bool> {
        debug_assert!(!self.has_pending(), "a load ends with rows that are in no file");
        let BulkLoad { loader, table, files, on_duplicate, .. } = self;
        let contested = inside::resolve(table, *on_duplicate, files)?;
        if files.is_empty() {
            return Ok(self.creates);
        }
        if !self.creates {
            let load = Load { loader, table, on_duplicate: *on_duplicate, files, leaving: None };
            self.publication = Some(Publication::begin(load, contested));
        }
        Ok(true)
    }

    /// The owner of the locks that the load holds on rows with its keys, from the first step that
    /// was blocked to its end.
    pub fn owner(&self) -> Option<&Arc<Owner>> {
        self.publication.as_ref().map(Publication::owner)
    }

    /// Releases all locks: a deadlock with another transaction ends. The next step takes them again.
    pub fn let_go(&mut self) {
        if let Some(publication) = &mut self.publication {
            publication.let_go();
        }
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
