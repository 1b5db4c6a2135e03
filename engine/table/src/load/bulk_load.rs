//! Bulk load: rows go directly into sorted segments and become visible together at the end.
//!
//! A load writes its files as rows arrive ([`BulkLoad::write`]), finds the keys that it has twice, and is
//! then published ([`Publication`]). Each of these steps is bounded, so that a thread can do other work
//! in between.

use crate::layout::constraints::check_row_lengths;
use crate::load::bulk_update::BulkUpdate;
use crate::load::contested::Contested;
use crate::load::inside::{self, Among, Resolving};
use crate::load::loaded::{Load, Loaded, OnDuplicate, held_by_another};
use crate::load::loader::Loader;
use crate::load::pending::{self, Pending};
use crate::load::publish::{self, Ownership, Publication, Round};
use crate::load::write::{Manner, Target, Writing};
use crate::table::sharding::Share;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_host::fetched::Fetched;
use nacre_rowstore::{Blocker, Owner};
use nacre_types::walked::{self, Path};
use nacre_types::{DataType, Error, Result, TableSchema, invariant};
use std::ops::Range;
use std::sync::Arc;

/// A load under way. Dropping it leaves the table as it was.
pub struct BulkLoad {
    loader: Arc<Loader>,
    table: Arc<Table>,
    on_duplicate: OnDuplicate,
    /// Indexed by partition.
    pending: Vec<Pending>,
    files: Vec<Loaded>,
    /// Rows on their way to a file.
    writing: Option<Writing>,
    /// Files are numbered by the round they were written in.
    rounds: usize,
    /// Whether all pending rows are written as one round, because they are numbered.
    in_round: bool,
    /// The numbers of the rows of the last files, those of the round.
    numbers: Vec<Vec<i64>>,
    /// Finds the keys that the files have twice: those of a round, or all.
    resolving: Option<Resolving>,
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
    /// Whether all files are complete, and no two of their rows have one key.
    is_complete: bool,
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
            writing: None,
            rounds: 0,
            in_round: false,
            numbers: Vec::new(),
            resolving: None,
            next_number: inside::is_ordered(table, on_duplicate).then_some(0),
            creates: false,
            replaces: false,
            failed: None,
            ownership: Ownership::Load,
            fetched: Fetched::default(),
            publication: None,
            is_complete: false,
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

    /// Adds rows in table order. First writes what is due, unless [`BulkLoad::write`] has; after an error
    /// other than a read of absent bytes, which adds nothing, every further call returns that error.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        while self.write(false)? {}
        debug_assert!(self.publication.is_none(), "rows are added to a load that is ending");
        let batch = batch.clone().compact();
        self.table.check_batch(&batch)?;
        check_row_lengths(&batch)?;
        let added = self.add(batch);
        self.failed = added.as_ref().err().cloned();
        added
    }

    /// Does a part of the writing that is due: of segments that are full, or of `all` rows so far. Returns
    /// whether there was any. Can be called again after a read of absent bytes.
    pub fn write(&mut self, all: bool) -> Result<bool> {
        self.check_usable()?;
        let _within = walked::within(Path::Load);
        let written = self.write_some(all);
        self.failed = written.as_ref().err().filter(|e| e.missing().is_none()).cloned();
        written
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
        Ok(())
    }

    fn write_some(&mut self, all: bool) -> Result<bool> {
        debug_assert!(self.publication.is_none(), "rows are written of a load that is ending");
        if let Some(writing) = &mut self.writing {
            let target = Target { loader: &self.loader, table: &self.table };
            let Some(numbers) = writing.step(target, &mut self.files)? else { return Ok(true) };
            invariant!(!numbers.is_empty(), "pending rows are in no file");
            self.writing = None;
            match self.in_round {
                true => self.numbers.extend(numbers),
                false => self.rounds += 1,
            }
            return Ok(true);
        }
        let Some(partition) = self.next_partition(all) else {
            return self.end_round();
        };
        let (options, target) =
            (self.loader.options(), Target { loader: &self.loader, table: &self.table });
        let pending = &mut self.pending[partition as usize];
        let before = pending.rows();
        let rows = pending.take(options.segment_rows, options.segment_bytes);
        debug_assert!(
            pending.rows() + rows.count == before,
            "{} of {before} pending rows are taken and {} left",
            rows.count,
            pending.rows()
        );
        let (on_duplicate, round) = (self.on_duplicate, self.rounds);
        let manner = Manner { partition, on_duplicate, round, is_numbered: false };
        self.writing = Some(target.begin(manner, rows, &self.files)?);
        Ok(true)
    }

    /// The partition of which a segment is to be written next.
    fn next_partition(&mut self, all: bool) -> Option<u32> {
        debug_assert!(self.writing.is_none(), "two segments of a load are written at once");
        let due = pending::to_write(&self.pending, &self.loader);
        let filled = || (0u32..).zip(&self.pending).find(|(_, rows)| rows.rows() > 0);
        if self.next_number.is_none() && !all {
            return due;
        }
        let filled = filled().filter(|_| all || self.in_round || due.is_some())?;
        self.in_round = self.next_number.is_some();
        Some(filled.0)
    }

    /// Resolves keys that the rows of a round have twice, once all are written. Returns whether there
    /// was a round.
    fn end_round(&mut self) -> Result<bool> {
        if !self.in_round {
            return Ok(false);
        }
        let (round, numbers) =
            (self.files.len() - self.numbers.len(), std::mem::take(&mut self.numbers));
        let step = self.resolve(round..self.files.len(), Among::Round(&numbers));
        self.numbers = numbers;
        if !step? {
            self.resolving = None;
            (self.in_round, self.rounds) = (false, self.rounds + 1);
            self.numbers.clear();
        }
        Ok(true)
    }

    /// Resolves some of the keys that these files have twice. Returns whether there are more.
    fn resolve(&mut self, range: Range<usize>, among: Among<'_>) -> Result<bool> {
        let some = Target { loader: &self.loader, table: &self.table }.at_once();
        let BulkLoad { table, on_duplicate, files, resolving, .. } = self;
        let resolving = resolving.get_or_insert_with(|| Resolving::new(table, range));
        resolving.step((table, *on_duplicate), files, among, some)
    }

    /// Resolves some of the keys that files of different rounds have twice. Returns the rows that share
    /// keys once all are resolved.
    fn resolve_rounds(&mut self) -> Result<Option<Contested>> {
        if self.resolve(0..self.files.len(), Among::Rounds)? {
            return Ok(None);
        }
        let (table, files) = (&self.table, self.files.len());
        Ok(self.resolving.take().map(|one| one.finish(table, self.on_duplicate, files)))
    }

    /// Does a part of what [`BulkLoad::into_update`] needs. Returns whether there is more. `constraint` if two
    /// rows have the same key and none may be skipped or replaced.
    pub fn complete(&mut self) -> Result<bool> {
        self.check_usable()?;
        if self.is_complete {
            return Ok(false);
        }
        if self.write(true)? {
            return Ok(true);
        }
        let _within = walked::within(Path::Load);
        debug_assert!(self.publication.is_none(), "a load that is ending is completed");
        let Some(contested) = self.resolve_rounds()? else { return Ok(true) };
        for (at, file) in self.files.iter_mut().enumerate() {
            if let Some(rejected) = contested.rejected(at) {
                file.rejected |= rejected;
            }
        }
        self.is_complete = true;
        Ok(false)
    }

    /// Ends the load as a part of a transaction: the update adds its rows, without those that give way
    /// to others of the load. The caller has left out or deletes the rows that the table has in the way.
    /// Errors are those of [`BulkLoad::complete`].
    pub fn into_update(mut self) -> Result<BulkUpdate> {
        invariant!(!self.creates, "the rows of a new table belong to a transaction");
        invariant!(self.publication.is_none(), "a load that is ending belongs to a transaction");
        while self.complete()? {}
        let loader = self.loader.clone();
        Ok(BulkUpdate::of_files(&loader, &self.table, std::mem::take(&mut self.files)))
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
    /// the next call continues.
    pub fn step(&mut self) -> Result<LoadStep> {
        self.check_usable()?;
        if self.publication.is_none() && self.write(true)? {
            return Ok(LoadStep::More);
        }
        let step = match self.publication {
            None => self.prepare(),
            Some(_) => self.publish(),
        };
        let loader = self.loader.clone();
        let environment = loader.transactions().environment();
        match step {
            // The commit lock is free by now.
            Err(error) => {
                environment.fetch_now(&mut self.fetched, error, &|| false).map(|()| LoadStep::More)
            }
            step => step,
        }
    }

    /// Begins to publish the files, which are complete. Can be called again after a read of absent
    /// bytes: a row that was rejected is rejected again.
    fn prepare(&mut self) -> Result<LoadStep> {
        let _within = walked::within(Path::Load);
        debug_assert!(self.publication.is_none(), "a load is published twice");
        let Some(contested) = self.resolve_rounds()? else { return Ok(LoadStep::More) };
        if !self.begin(contested) {
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
        debug_assert!(self.writing.is_none(), "rows are written of a load that is being published");
        let BulkLoad { loader, table, files, on_duplicate, publication, ownership, .. } = self;
        let load = Load { loader, table, on_duplicate: *on_duplicate, files, leaving: None };
        let Some(publication) = publication else { return Ok(LoadStep::Done(0)) };
        Ok(match publication.step(load, ownership)? {
            Round::More => LoadStep::More,
            Round::Blocked(blocker) => LoadStep::Blocked(blocker),
            Round::Done(rows) => LoadStep::Done(rows),
        })
    }

    /// Begins to publish. Returns whether there is anything to publish.
    fn begin(&mut self, contested: Contested) -> bool {
        debug_assert!(
            self.writing.is_none() && self.pending.iter().all(|rows| rows.rows() == 0),
            "a load ends with rows that are in no file"
        );
        let BulkLoad { loader, table, files, on_duplicate, .. } = self;
        if files.is_empty() {
            return self.creates;
        }
        if !self.creates {
            let load = Load { loader, table, on_duplicate: *on_duplicate, files, leaving: None };
            self.publication = Some(Publication::begin(load, contested));
        }
        true
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
            if let Some(writing) = &mut self.writing {
                writing.abandon(&self.loader);
            }
            let files = self.files.iter();
            files.for_each(|file| self.loader.files().remove_unnamed(file.segment.name()));
        }
    }
}
