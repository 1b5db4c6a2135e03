//! Runs background work one step at a time, choosing what is due next. The tasks themselves are in
//! the neighbouring files.

use crate::maintenance::collect::collect;
use crate::maintenance::context::{Progress, TaskContext};
use crate::maintenance::flush::{flush_partition, flush_table};
use crate::maintenance::hash_build::{self, HashBuild};
use crate::maintenance::merge::Merge;
use crate::maintenance::merge_plan::{all_to_merge, worth_merging};
use crate::maintenance::part_build::{self, PartBuild, PartId};
use crate::maintenance::snapshot;
use crate::segments::state::SegmentState;
use crate::table::partition::{Partition, Work};
use crate::table::version::Table;
use nacre_types::Result;
use nacre_types::hash::Set;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Limit for the rowstores of all tables together, in multiples of the limit for one.
const FULL_ROWSTORES: usize = 4;

/// Runs the background tasks of a store, one at a time.
pub(crate) struct Scheduler {
    context: TaskContext,
    tasks: Mutex<Tasks>,
    /// Held by the thread that is next in line for `tasks`.
    next: Mutex<()>,
    /// Held while a whole table is merged.
    merging_all: Mutex<()>,
    /// Whether a task is in progress.
    is_busy: AtomicBool,
}

/// Tasks that span several steps.
#[derive(Default)]
pub(crate) struct Tasks {
    merge: Option<Merge>,
    part: Option<PartBuild>,
    hash: Option<HashBuild>,
    /// Parts whose build failed. They are retried after other work has been done.
    failed: Set<PartId>,
}

impl Scheduler {
    /// Creates a scheduler without tasks in progress.
    pub fn new(context: TaskContext) -> Scheduler {
        Scheduler {
            context,
            tasks: Mutex::default(),
            next: Mutex::default(),
            merging_all: Mutex::default(),
            is_busy: AtomicBool::new(false),
        }
    }

    /// The context of its tasks.
    pub fn context(&self) -> &TaskContext {
        &self.context
    }

    /// Whether [`Scheduler::maintain`] has something to do.
    pub fn needs_maintenance(&self) -> bool {
        let (commits, options) = (self.context.commits(), self.context.options());
        let wants = |table: &Arc<Table>| {
            self.wanting_flush(table).is_some()
                || table.may_need(Work::Merge)
                || (!table.indexes().is_empty() && table.may_need(Work::IndexParts))
                || table.may_need(Work::HashTables)
        };
        let tables = self.context.catalog().tables();
        tables.iter().any(wants)
            || self.fullest(&tables).is_some()
            || self.is_busy.load(Ordering::Relaxed)
            || commits.log().bytes_since_snapshot() > options.snapshot_bytes
            || commits.sync_is_due()
    }

    /// Does one unit of work: a due sync, a snapshot, a flush, a step of a merge or build, or
    /// removal of files. Returns whether there may be more.
    pub fn maintain(&self) -> Result<bool> {
        let mut tasks = match self.tasks.try_lock() {
            Ok(tasks) => tasks,
            Err(TryLockError::Poisoned(panicked)) => panicked.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        self.context.commits().check_open()?;
        let done = self.do_next(&mut tasks);
        if done.is_err() {
            // The failed work is retried first next time; if it failed for lack of space, removing
            // files frees some.
            collect(&self.context).ok();
        }
        done
    }

    fn do_next(&self, tasks: &mut Tasks) -> Result<bool> {
        let urgent = self.do_urgent();
        match &urgent {
            Ok(true) => {
                tasks.failed.clear();
                return Ok(true);
            }
            Err(_) if self.context.commits().log().check_usable().is_err() => return urgent,
            _ => {}
        }
        self.find_task(tasks)?;
        let more = match self.step(tasks)? {
            true => true,
            false => collect(&self.context)?,
        };
        // Reports the failure without blocking other work.
        urgent.map(|_| more)
    }

    /// Writes a snapshot or flushes a partition if due, to bound the log and memory. Returns
    /// whether it did.
    fn do_urgent(&self) -> Result<bool> {
        let context = &self.context;
        if context.commits().sync_is_due() {
            context.commits().sync_log()?;
        }
        // Snapshots come first: they are rare, and constant flushing must not starve them.
        let mut failed = Ok(());
        if context.commits().log().bytes_since_snapshot() > context.options().snapshot_bytes {
            failed = snapshot::write(context);
            if failed.is_ok() {
                return Ok(true);
            }
        }
        // A failure, perhaps for lack of space, must not prevent the other work.
        let tables = context.catalog().tables();
        for table in &tables {
            if let Some(partition) = self.wanting_flush(table) {
                match flush_partition(context, table, partition) {
                    Ok(_) => return failed.map(|()| true),
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
        }
        failed?;
        match self.fullest(&tables) {
            Some((table, partition)) => flush_partition(context, table, partition).map(|_| true),
            None => Ok(false),
        }
    }

    fn wanting_flush<'t>(&self, table: &'t Table) -> Option<&'t Partition> {
        let oldest = || self.context.snapshots().oldest();
        table.wanting_flush(self.context.options().flush_bytes, oldest)
    }

    /// The partition with the most unflushed bytes, if all tables together exceed the limit.
    fn fullest<'t>(&self, tables: &'t [Arc<Table>]) -> Option<(&'t Arc<Table>, &'t Partition)> {
        let (mut sum, mut most) = (0usize, 0);
        let mut fullest = None;
        for table in tables {
            for partition in table.partitions() {
                let bytes = partition.unflushed(table.entry_bytes(partition));
                sum = sum.saturating_add(bytes);
                if bytes > most {
                    most = bytes;
                    fullest = Some((table, partition));
                }
            }
        }
        debug_assert!(fullest.is_some() || sum == 0, "{sum} bytes to flush are in no partition");
        let limit = self.context.options().flush_bytes.saturating_mul(FULL_ROWSTORES);
        fullest.filter(|_| sum > limit)
    }

    /// Starts the next task if none is in progress: a merge, else an index part, else a hash table.
    fn find_task(&self, tasks: &mut Tasks) -> Result<()> {
        if tasks.merge.is_none() {
            tasks.merge = self.find_merge()?;
        }
        if tasks.merge.is_none() && tasks.part.is_none() {
            let tables = self.context.catalog().tables();
            tasks.part = tables
                .iter()
                .find_map(|table| part_build::start(&self.context, table, &tasks.failed));
        }
        if tasks.merge.is_none() && tasks.part.is_none() && tasks.hash.is_none() {
            for table in self.context.catalog().tables() {
                tasks.hash = hash_build::start(&self.context, &table)?;
                if tasks.hash.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn find_merge(&self) -> Result<Option<Merge>> {
        for table in self.context.catalog().tables() {
            for partition in table.partitions() {
                if !partition.take_need(Work::Merge) {
                    continue;
                }
                let sources = worth_merging(partition, self.context.options());
                if let Some(merge) = Merge::new(&self.context, &table, partition, &sources)? {
                    return Ok(Some(merge));
                }
            }
        }
        Ok(None)
    }

    /// Continues the task in progress. Returns whether there was one.
    fn step(&self, tasks: &mut Tasks) -> Result<bool> {
        let step = match tasks {
            Tasks { merge: Some(merge), .. } => merge.step(&self.context),
            Tasks { part: Some(part), .. } => part.step(&self.context),
            Tasks { hash: Some(hash), .. } => hash.step(&self.context),
            _ => {
                debug_assert!(
                    !self.is_busy.load(Ordering::Relaxed),
                    "the scheduler is busy without a task"
                );
                return Ok(false);
            }
        };
        match step {
            Ok(Progress::More) => self.is_busy.store(true, Ordering::Relaxed),
            Ok(Progress::Done) => {
                // Only the first of these was stepped.
                if tasks.merge.take().is_none() && tasks.part.take().is_none() {
                    tasks.hash = None;
                }
                let goes_on = tasks.part.is_some() || tasks.hash.is_some();
                self.is_busy.store(goes_on, Ordering::Relaxed);
            }
            Err(error) => {
                // A failed merge is not retried until its partition changes.
                if let Some(mut merge) = tasks.merge.take() {
                    merge.abandon(&self.context);
                } else if let Some(part) = &tasks.part {
                    tasks.failed.insert(part.part());
                }
                self.abandon(tasks);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Merges the segments of each partition of a table into one sorted run, in steps between which
    /// flushes, snapshots and other threads' steps can run.
    pub fn merge_all(&self, table: &Arc<Table>) -> Result<()> {
        let _one_at_a_time = locked(&self.merging_all);
        self.flush(table)?;
        (0..table.partitions().len())
            .try_for_each(|number| self.merge_partition(table, number as u32))?;
        let _tasks = self.lock();
        self.context.commits().check_open()?;
        collect(&self.context)?;
        Ok(())
    }

    fn merge_partition(&self, table: &Arc<Table>, number: u32) -> Result<()> {
        let mut sources: Vec<Arc<SegmentState>> = Vec::new();
        let mut urgent = true;
        loop {
            let mut tasks = self.lock();
            self.context.commits().check_open()?;
            if !tasks.merge.as_ref().is_some_and(|merge| merge.is_of(&sources)) {
                if !sources.is_empty() && !sources.iter().any(|state| state.is_current()) {
                    return Ok(());
                }
                self.abandon_merge(&mut tasks);
                // The table may have been altered meanwhile.
                let table = self.context.catalog().newest(table)?;
                let partition = table.partition(number);
                let all = all_to_merge(partition);
                tasks.merge = match all.is_empty() {
                    true => None,
                    false => Merge::new(&self.context, &table, partition, &all)?,
                };
                match &tasks.merge {
                    Some(merge) => sources = merge.states().cloned().collect(),
                    None if table.is_newest() => return Ok(()),
                    None => continue,
                }
            }
            self.step(&mut tasks)?;
            // The next `maintain` retries what failed here, and reports it.
            urgent = urgent && self.do_urgent().is_ok();
        }
    }

    /// Moves a table's committed rows from the rowstore into segments.
    pub fn flush(&self, table: &Arc<Table>) -> Result<()> {
        let _tasks = self.lock();
        self.context.commits().check_open()?;
        flush_table(&self.context, table)?;
        collect(&self.context)?;
        Ok(())
    }

    /// Stops all tasks when the database is closed.
    pub fn stop(&self) {
        debug_assert!(
            self.context.commits().check_open().is_err(),
            "tasks that are stopped while the database is open start again"
        );
        let mut tasks = self.lock();
        self.abandon(&mut tasks);
    }

    /// Abandons the tasks in progress. They are started again later.
    pub fn abandon(&self, tasks: &mut Tasks) {
        self.abandon_merge(tasks);
        if let Some(mut part) = tasks.part.take() {
            part.abandon(&self.context);
        }
        if let Some(mut hash) = tasks.hash.take() {
            hash.abandon(&self.context);
        }
        self.is_busy.store(false, Ordering::Relaxed);
    }

    fn abandon_merge(&self, tasks: &mut Tasks) {
        if let Some(mut merge) = tasks.merge.take() {
            merge.abandon(&self.context);
            merge.partition().consider(Work::Merge);
        }
        let goes_on = tasks.part.is_some() || tasks.hash.is_some();
        self.is_busy.store(goes_on, Ordering::Relaxed);
    }

    /// Waits for another thread's task to end. A waiting thread takes precedence over one that
    /// tries to take the lock again.
    pub fn lock(&self) -> MutexGuard<'_, Tasks> {
        let _next = locked(&self.next);
        locked(&self.tasks)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
