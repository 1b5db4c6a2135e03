//! Runs background work one step at a time, choosing what is due next. The tasks themselves are in
//! the neighbouring files.

use crate::maintenance::check::agenda::{self, Ongoing};
use crate::maintenance::collect::collect;
use crate::maintenance::context::{Progress, TaskContext};
use crate::maintenance::failed::Failed;
use crate::maintenance::flush::{Flush, flush_table};
use crate::maintenance::hash_build::{self, HashBuild};
use crate::maintenance::merge::Merge;
use crate::maintenance::merge_plan::Goals;
use crate::maintenance::part_build::{self, PartBuild};
use crate::maintenance::pressure::{self, Admission, Asking, Pressure};
use crate::maintenance::snapshot::{self, SnapshotWrite};
use crate::record::Place;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use crate::table::run::Run;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::Result;
use nacre_types::hash::Set;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Runs the background tasks of a store, one at a time.
pub(crate) struct Scheduler {
    context: TaskContext,
    tasks: Mutex<Tasks>,
    /// Held by the thread that is next in line for `tasks`.
    next: Mutex<()>,
    /// Whether a whole table is being merged.
    merging_all: Arc<AtomicBool>,
    /// Whether a task is in progress.
    is_busy: AtomicBool,
    pressure: Pressure,
}

/// Tasks that span several steps.
#[derive(Default)]
pub(crate) struct Tasks {
    snapshot: Option<SnapshotWrite>,
    flush: Option<Flush>,
    /// Partitions whose flush failed. They are retried once no other one is due.
    unflushed: Set<Place>,
    /// Whether a flush takes its step before a snapshot.
    is_flush_next: bool,
    /// A slice of a merge.
    merge: Option<Merge>,
    /// Merges that take several slices.
    goals: Goals,
    part: Option<PartBuild>,
    hash: Option<HashBuild>,
    failed: Failed,
    /// What the last step did, if it met absent bytes.
    missed: Option<Missed>,
}

/// What meets absent bytes. It keeps its place until they are fetched, or cannot be. Flushes and
/// snapshots read no file that may lack bytes.
#[derive(Clone, Copy)]
enum Missed {
    /// The merge or the build in progress.
    Task,
    /// The start of a hash table in a partition.
    HashTable(Place),
}

type Urgent = fn(&Scheduler, &mut Tasks) -> Result<bool>;

impl Scheduler {
    /// Creates a scheduler without tasks in progress.
    pub fn new(context: TaskContext) -> Scheduler {
        Scheduler {
            context,
            tasks: Mutex::default(),
            next: Mutex::default(),
            merging_all: Arc::default(),
            is_busy: AtomicBool::new(false),
            pressure: Pressure::default(),
        }
    }

    /// The context of its tasks.
    pub fn context(&self) -> &TaskContext {
        &self.context
    }

    /// Whether [`Scheduler::maintain`] has something to do.
    pub fn needs_maintenance(&self) -> bool {
        let commits = self.context.commits();
        if commits.is_read_only() {
            return false;
        }
        let (catalog, agenda) = (self.context.catalog(), self.context.catalog().agenda());
        let wants_flush = |place| {
            let found = catalog.at_place(place);
            found.is_some_and(|(table, number)| self.wants_flush(&table, table.partition(number)))
        };
        agenda.has_work()
            || self.is_busy.load(Ordering::Relaxed)
            || agenda.large().into_iter().any(wants_flush)
            || snapshot::is_due(&self.context)
            || commits.sync_is_due()
            || pressure::relief(&self.context).is_some()
    }

    /// Does one unit of work: a due sync, a piece of a snapshot, a step of a flush, a merge or a
    /// build, or removal of files. Returns whether there may be more; `false` if another call is at
    /// work.
    ///
    /// After a read of absent bytes the next call continues once they were fetched. If they cannot
    /// be, [`Scheduler::give_up`] must be called.
    pub fn maintain(&self) -> Result<bool> {
        match self.tasks.try_lock() {
            Ok(mut tasks) => self.maintain_with(&mut tasks),
            Err(TryLockError::Poisoned(panicked)) => self.maintain_with(&mut panicked.into_inner()),
            Err(TryLockError::WouldBlock) => Ok(false),
        }
    }

    /// Like [`Scheduler::maintain`], but waits for its turn.
    pub fn maintain_in_turn(&self) -> Result<bool> {
        self.maintain_with(&mut self.lock())
    }

    fn maintain_with(&self, tasks: &mut Tasks) -> Result<bool> {
        self.context.commits().check_open()?;
        tasks.missed = None;
        let done = self.do_next(tasks);
        self.note(tasks);
        if done.as_ref().is_err_and(|error| error.missing().is_none()) {
            // The failed work is retried first next time; if it failed for lack of space, removing
            // files frees some.
            collect(&self.context).ok();
        }
        done
    }

    fn do_next(&self, tasks: &mut Tasks) -> Result<bool> {
        // All other work is the writer's.
        if self.context.commits().is_read_only() {
            return collect(&self.context);
        }
        let urgent = self.do_urgent(tasks);
        match &urgent {
            Ok(true) => {
                tasks.failed.retry(self.context.catalog());
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

    /// Does a step of a snapshot or a flush if due, to bound the log and memory. Returns whether it
    /// did.
    fn do_urgent(&self, tasks: &mut Tasks) -> Result<bool> {
        let commits = self.context.commits();
        commits.log().check_usable()?;
        if commits.sync_is_due() {
            commits.sync_log()?;
        }
        // In turn: constant flushing must not starve snapshots, nor a long snapshot the flushes.
        tasks.is_flush_next = !tasks.is_flush_next;
        let (first, second): (Urgent, Urgent) = match tasks.is_flush_next {
            true => (Scheduler::do_snapshot, Scheduler::do_flush),
            false => (Scheduler::do_flush, Scheduler::do_snapshot),
        };
        match first(self, tasks) {
            Ok(true) => Ok(true),
            // A failure, perhaps for lack of space, must not prevent the other work.
            failed => {
                let done = second(self, tasks);
                failed.and(done)
            }
        }
    }

    /// Continues the snapshot in progress, or starts one that is due. Returns whether there was
    /// one.
    fn do_snapshot(&self, tasks: &mut Tasks) -> Result<bool> {
        let context = &self.context;
        let Some(mut snapshot) = tasks.snapshot.take() else {
            let is_due = snapshot::is_due(context);
            tasks.snapshot = if is_due { SnapshotWrite::begin(context)? } else { None };
            return Ok(tasks.snapshot.is_some());
        };
        if snapshot.is_written() {
            snapshot.publish(context)?;
            return Ok(true);
        }
        let step = snapshot.step(context);
        self.pressure.note_step(step.is_err());
        if let Err(error) = step {
            snapshot.abandon(context);
            return Err(error);
        }
        tasks.snapshot = Some(snapshot);
        Ok(true)
    }

    /// Continues the flush in progress, or starts the next one that is due. Returns whether there
    /// was one.
    fn do_flush(&self, tasks: &mut Tasks) -> Result<bool> {
        if tasks.flush.is_none() {
            tasks.flush = self.find_flush(tasks);
        }
        let Some(flush) = &mut tasks.flush else { return Ok(false) };
        let step = flush.step(&self.context);
        self.pressure.note_step(step.is_err());
        match step {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => tasks.flush = None,
            Err(error) => {
                tasks.unflushed.insert(flush.place());
                self.abandon_flush(tasks);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// A flush of a partition that is due for one.
    fn find_flush(&self, tasks: &mut Tasks) -> Option<Flush> {
        debug_assert!(tasks.flush.is_none(), "a flush is chosen before the last one has ended");
        let mut due = self.large();
        due.extend(pressure::relief(&self.context));
        let is_new = |(table, number): &&(Arc<Table>, u32)| {
            !tasks.unflushed.contains(&table.place(table.partition(*number)))
        };
        let (table, number) = due.iter().find(is_new).or_else(|| due.first())?;
        let partition = table.partition(*number);
        tasks.unflushed.remove(&table.place(partition));
        Some(Flush::new(table, partition))
    }

    /// Partitions that exceed their own limit, by table id. Forgets those that no longer do.
    fn large(&self) -> Vec<(Arc<Table>, u32)> {
        let catalog = self.context.catalog();
        let mut large = Vec::new();
        for place in catalog.agenda().large() {
            // Removed first: a commit that makes it large again from here on notes it again.
            catalog.agenda().remove_large(place);
            let Some((table, number)) = catalog.at_place(place) else { continue };
            table.recount(table.partition(number));
            if self.wants_flush(&table, table.partition(number)) {
                large.push((table, number));
            }
        }
        large
    }

    fn wants_flush(&self, table: &Table, partition: &Partition) -> bool {
        let oldest = || self.context.snapshots().oldest();
        table.wants_flush(partition, self.context.options().flush_bytes, oldest)
    }

    /// Whether a flush can make room in rowstores that exceed their soft limit.
    pub fn can_relieve(&self) -> bool {
        self.pressure.can_relieve(&self.context)
    }

    /// Answers a write that asks for room in the rowstores.
    pub fn admit_write(&self, asking: Asking) -> Result<Admission> {
        self.pressure.admit(asking, &self.context)
    }

    /// Starts the next task if none is in progress: a merge, else an index part, else a hash table.
    fn find_task(&self, tasks: &mut Tasks) -> Result<()> {
        if tasks.merge.is_none() {
            tasks.merge = self.find_merge(tasks);
        }
        if tasks.merge.is_none() && tasks.part.is_none() {
            let mut due = self.context.catalog().take_works(Work::IndexParts);
            tasks.part = due.find_map(|(table, number)| {
                let partition = table.partition(number);
                part_build::start(&self.context, &table, partition, tasks.failed.parts())
            });
        }
        if tasks.merge.is_none() && tasks.part.is_none() && tasks.hash.is_none() {
            for (table, number) in self.context.catalog().take_works(Work::HashTables) {
                let partition = table.partition(number);
                tasks.hash = match hash_build::start(&self.context, &table, partition) {
                    Err(error) if error.missing().is_some() => {
                        partition.consider(Work::HashTables);
                        tasks.missed = Some(Missed::HashTable(table.place(partition)));
                        return Err(error);
                    }
                    Err(error) => {
                        tasks.failed.add(Work::HashTables, table.place(partition));
                        return Err(error);
                    }
                    Ok(started) => started,
                };
                if tasks.hash.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn find_merge(&self, tasks: &mut Tasks) -> Option<Merge> {
        for (table, number) in self.context.catalog().take_works(Work::Merge) {
            let partition = table.partition(number);
            if let Some(merge) = self.next_slice(tasks, &table, partition) {
                return Some(merge);
            }
        }
        None
    }

    /// The runs of a partition that can be merged: not those with a segment that is not visible yet,
    /// because its commit may still fail, nor the one to which a flush adds segments, nor those with
    /// rows that a transaction is about to delete.
    fn mergeable(&self, tasks: &Tasks, place: Place, list: &SegmentList) -> Vec<Arc<Run>> {
        let visible = self.context.snapshots().visible();
        let flush = tasks.flush.as_ref().filter(|flush| flush.place() == place);
        let flushed = flush.and_then(Flush::run);
        let is_there = |state: &Arc<SegmentState>| state.exists_at(visible) && state.is_current();
        let is_mergeable = |run: &&Arc<Run>| {
            Some(run.place().number) != flushed
                && run.states().iter().all(is_there)
                && !run.has_claims()
        };
        list.runs().iter().filter(is_mergeable).cloned().collect()
    }

    /// Starts the next slice of a merge in a partition, if there is something to merge.
    fn next_slice(
        &self,
        tasks: &mut Tasks,
        table: &Arc<Table>,
        partition: &Partition,
    ) -> Option<Merge> {
        debug_assert!(tasks.merge.is_none(), "a slice is chosen before the last one has ended");
        let (place, list) = (table.place(partition), partition.segments());
        let runs = self.mergeable(tasks, place, &list);
        // Giving claims back makes the scheduler look again.
        if runs.len() < list.runs().iter().filter(|run| !run.has_claims()).count() {
            partition.consider(Work::Merge);
        }
        let slice = tasks.goals.next(place, &list, &runs, self.context.options())?;
        Merge::new(&self.context, table, partition, slice)
    }

    /// Continues the task in progress. Returns whether there was one.
    fn step(&self, tasks: &mut Tasks) -> Result<bool> {
        let step = match tasks {
            Tasks { merge: Some(merge), .. } => merge.step(&self.context),
            Tasks { part: Some(part), .. } => part.step(&self.context),
            Tasks { hash: Some(hash), .. } => hash.step(&self.context),
            _ => return Ok(false),
        };
        match step {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => {
                // Only the first of these was stepped.
                let merge = tasks.merge.take();
                if let Some(merge) = &merge {
                    tasks.goals.wrote(merge.place(), merge.slice());
                } else if tasks.part.take().is_none() {
                    tasks.hash = None;
                }
            }
            Err(error) if error.missing().is_some() => {
                tasks.missed = Some(Missed::Task);
                return Err(error);
            }
            Err(error) => {
                self.fail_task(tasks);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Abandons the merge or the build in progress, which is not retried at once.
    fn fail_task(&self, tasks: &mut Tasks) {
        let is_hash = tasks.merge.is_none() && tasks.part.is_none();
        let hash = tasks.hash.as_ref().filter(|_| is_hash).map(HashBuild::place);
        if let Some(mut merge) = tasks.merge.take() {
            tasks.failed.add(Work::Merge, merge.place());
            merge.abandon(&self.context);
        } else if let Some(part) = &tasks.part {
            tasks.failed.add_part(part.part(), part.place());
        }
        self.abandon_builds(tasks);
        if let Some(place) = hash {
            self.fail_hash_table(tasks, place);
        }
        debug_assert!(
            tasks.merge.is_none() && tasks.part.is_none() && tasks.hash.is_none(),
            "a task goes on after one has failed"
        );
    }

    fn fail_hash_table(&self, tasks: &mut Tasks, place: Place) {
        self.context.catalog().take_work(Work::HashTables, place);
        tasks.failed.add(Work::HashTables, place);
        debug_assert!(tasks.hash.is_none(), "a hash table is built after its build has failed");
    }

    /// Treats what the last step missed as a failed read: its bytes cannot be fetched.
    pub fn give_up(&self) {
        let mut tasks = self.lock();
        match tasks.missed.take() {
            Some(Missed::Task) => self.fail_task(&mut tasks),
            Some(Missed::HashTable(place)) => self.fail_hash_table(&mut tasks, place),
            None => {}
        }
        self.note(&tasks);
    }

    /// Whether a whole table is being merged.
    pub(super) fn merging_all(&self) -> &Arc<AtomicBool> {
        &self.merging_all
    }

    /// Plans to merge all runs of a partition into one, unless that `is_planned`; returns whether
    /// they are not merged yet. Abandons the merge of another partition that is in progress.
    pub(super) fn plan_all(
        &self,
        tasks: &mut Tasks,
        table: &Arc<Table>,
        partition: &Partition,
        is_planned: bool,
    ) -> Result<bool> {
        let (place, list) = (table.place(partition), partition.segments());
        if list.runs().iter().any(|run| run.has_claims()) {
            tasks.goals.forget(place);
            self.abandon_merge(tasks);
            return Err(table.being_deleted());
        }
        if !is_planned || tasks.merge.as_ref().is_some_and(|merge| merge.place() != place) {
            self.abandon_merge(tasks);
        }
        if !is_planned {
            let runs = self.mergeable(tasks, place, &list);
            tasks.goals.merge_all(place, &runs, self.context.options());
        }
        Ok(tasks.merge.is_some() || tasks.goals.is_merging_all(place, &list))
    }

    /// Does a step of the merge in progress, or of the next one in a partition. If it fails, the
    /// merge of the whole partition is given up.
    pub(super) fn merge_some(
        &self,
        tasks: &mut Tasks,
        table: &Arc<Table>,
        partition: &Partition,
    ) -> Result<()> {
        tasks.missed = None;
        if tasks.merge.is_none() {
            tasks.merge = self.next_slice(tasks, table, partition);
        }
        let stepped = if tasks.merge.is_some() { self.step(tasks) } else { Ok(true) };
        if stepped.as_ref().is_err_and(|error| error.missing().is_none()) {
            tasks.goals.forget(table.place(partition));
        }
        stepped.map(|_| ())
    }

    /// Does the flushes and snapshots that are due. Returns whether none failed: the next `maintain`
    /// retries what did, and reports it.
    pub(super) fn do_all_urgent(&self, tasks: &mut Tasks) -> bool {
        let mut is_done = self.do_urgent(tasks).is_ok();
        while is_done && (tasks.flush.is_some() || tasks.snapshot.is_some()) {
            is_done = self.do_urgent(tasks).is_ok();
        }
        is_done
    }

    /// Moves a table's committed rows from the rowstore into segments.
    pub fn flush(&self, table: &Arc<Table>) -> Result<()> {
        let mut tasks = self.lock();
        self.context.commits().check_writable()?;
        self.abandon_flush(&mut tasks);
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

    /// Verifies the agenda, unless other work is in progress, which changes it. Returns the
    /// violations, one sentence each.
    pub fn check_agenda(&self) -> Vec<String> {
        // Not waited for: a step, or a commit, may wait for the caller of this one.
        let Ok(tasks) = self.tasks.try_lock() else { return Vec::new() };
        let Some(_turn) = self.context.commits().try_lock() else { return Vec::new() };
        let Tasks { merge, part, hash, failed, .. } = &*tasks;
        let in_progress = [
            merge.as_ref().map(|merge| (Work::Merge, merge.place())),
            part.as_ref().map(|part| (Work::IndexParts, part.place())),
            hash.as_ref().map(|hash| (Work::HashTables, hash.place())),
        ];
        let has_merge = |place, table: &Arc<Table>, partition: &Partition| {
            let list = partition.segments();
            let runs = self.mergeable(&tasks, place, &list);
            table.is_newest() && tasks.goals.has_next(place, &list, &runs, self.context.options())
        };
        let tasks = in_progress.into_iter().flatten().collect();
        let ongoing = Ongoing { tasks, failed, has_merge: &has_merge };
        agenda::check(&self.context, &ongoing)
    }

    /// Abandons the tasks in progress. They are started again later.
    pub fn abandon(&self, tasks: &mut Tasks) {
        if let Some(snapshot) = tasks.snapshot.take() {
            snapshot.abandon(&self.context);
        }
        self.abandon_flush(tasks);
        self.abandon_merge(tasks);
        self.abandon_builds(tasks);
        self.note(tasks);
    }

    fn abandon_builds(&self, tasks: &mut Tasks) {
        if let Some(mut part) = tasks.part.take() {
            part.abandon(&self.context);
        }
        if let Some(mut hash) = tasks.hash.take() {
            hash.abandon(&self.context);
        }
    }

    /// Notes whether a task is in progress.
    pub(super) fn note(&self, tasks: &Tasks) {
        let Tasks { snapshot, flush, merge, part, hash, .. } = tasks;
        let is_urgent = snapshot.is_some() || flush.is_some();
        self.pressure.note_urgent(is_urgent);
        let is_busy = is_urgent || merge.is_some() || part.is_some() || hash.is_some();
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }

    fn abandon_flush(&self, tasks: &mut Tasks) {
        if let Some(mut flush) = tasks.flush.take() {
            flush.abandon(&self.context);
        }
    }

    fn abandon_merge(&self, tasks: &mut Tasks) {
        if let Some(mut merge) = tasks.merge.take() {
            merge.abandon(&self.context);
            merge.partition().consider(Work::Merge);
        }
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
