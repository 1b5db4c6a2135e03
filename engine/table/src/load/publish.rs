//! Publishes a load: all its rows become visible in one commit, or none.
//!
//! Phase one finds, without the commit lock, the rows of the table whose keys the load has.
//! Phase two follows what is committed meanwhile, in rounds: each looks at the segments that were
//! added and at the rows that were locked since the last one. Once few are left, the last round and
//! the commit happen under the commit lock. If commits come faster than the rounds follow, one more
//! round is done while the table's gate is closed, so that only writers of this table wait; nothing is
//! ever done again. Source: Apache Doris, delete bitmaps of merge-on-write loads.
//!
//! If the load also creates its table, the same commit creates it: after a crash both exist or
//! neither, and a transaction that begins later sees both. A transaction that began earlier can
//! look the table up, as any new table, and sees it empty. During the load the table is in no
//! catalog, so nothing else reads it or keeps its files from being removed.

use crate::catalog::tables::drop_replaced;
use crate::commit::snapshots::SnapshotGuard;
use crate::load::added::{add_segments, check_room, list, runs_of, unlist};
use crate::load::contested::Contested;
use crate::load::loaded::{Load, Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::met::{Met, ReplacedRows};
use crate::load::staged::{LoadedRow, Staged};
use crate::load::watch::Watch;
use crate::load::write::Target;
use crate::record::{self, RunPlace};
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::journal::Journal;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_rowstore::{Blocker, Change, Node, Owner, Version};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::walked::{self, Path};
use nacre_types::{Result, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Rounds before one that commits of the table wait for.
const MAX_ROUNDS: usize = if cfg!(test) { 4 } else { 16 };
/// Keys that are compared at once at least, also where segments are small: fewer would let writers add segments
/// faster than they are compared.
const LEAST_KEYS: usize = 256;
/// Locks that a journal holds. Beyond, all rows in memory are looked at again.
const JOURNAL_LOCKS: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// Whether a log record may name the files of a load, so that they must not be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// They belong to the load.
    Load,
    /// They belong to the table, even if the sync fails.
    Table,
}

/// The outcome of a round.
pub(super) enum Round {
    /// There are more.
    More,
    /// The holder of a row lock is to be waited for.
    Blocked(Blocker),
    /// The load is published, with this many rows.
    Done(u64),
}

/// A load being published into its table.
pub(super) struct Publication {
    journal: Journal,
    staged: Staged,
    met: Met,
    watch: Watch,
    contested: Contested,
    /// Keeps the files of the segments that the last round has seen.
    guard: Arc<SnapshotGuard>,
    /// The segments that a round looks at while it lasts, and what keeps their files.
    current: Option<(Arc<SnapshotGuard>, Vec<Arc<SegmentList>>)>,
    rounds: usize,
}

/// How far a round is.
enum Looked {
    /// Some keys are left to compare.
    Partly,
    /// It is over, but for the lock of this holder.
    Whole(Option<Blocker>),
}

/// Whether rows of a table can have the same key as rows of a load.
fn has_keys(table: &Table) -> bool {
    table.key_columns().is_some() || table.has_unique_index()
}

/// What the commit of a load changes.
struct Outcome {
    /// By file: rows that must not appear.
    rejected: Vec<RoaringBitmap>,
    replaced: Vec<ReplacedRows>,
    /// Rows in memory that end, and whether a row of the load takes their place.
    ended: Vec<(u32, Arc<Node>, bool)>,
}

impl Publication {
    /// Starts to note the locks that transactions take.
    pub fn begin(load: Load<'_>, contested: Contested) -> Publication {
        let Load { loader, table, files, .. } = load;
        debug_assert!(!files.is_empty(), "a load of no rows is published");
        let owner = loader.transactions().new_owner();
        Publication {
            journal: table.journals().open(JOURNAL_LOCKS),
            staged: Staged::new(table, files, &runs_of(table, files, loader.options())),
            met: Met::new(table, files.len()),
            watch: Watch::new(table, owner, files.len()),
            contested,
            guard: loader.commits().snapshots().take(),
            current: None,
            rounds: 0,
        }
    }

    /// The owner of its locks.
    pub fn owner(&self) -> &Arc<Owner> {
        self.watch.owner()
    }

    /// Releases its locks, for others that wait for them.
    pub fn let_go(&mut self) {
        self.watch.let_go();
    }

    /// Does some of a round, or the last one and the commit. `ownership` is updated even on an error. Can
    /// be called again after a read of absent bytes.
    pub fn step(&mut self, load: Load<'_>, ownership: &mut Ownership) -> Result<Round> {
        load.table.check_newest()?;
        let begins = self.current.is_none();
        if begins && self.rounds > 0 && self.is_near(load) {
            return self.publish(load, ownership, false);
        }
        // Not before a round beside writers, which leaves little for this one.
        let closed = (begins && self.rounds >= MAX_ROUNDS).then(|| load.table.gate().close());
        let target = Target { loader: load.loader, table: load.table };
        let some = if closed.is_some() { usize::MAX } else { target.at_once().max(LEAST_KEYS) };
        // No lock is held, so reads may wait.
        let environment = load.loader.transactions().environment();
        let blocker = loop {
            match environment.waiting(|| self.round(load, some))? {
                Looked::Whole(blocker) => break blocker,
                Looked::Partly if closed.is_some() => {}
                Looked::Partly => return Ok(Round::More),
            }
        };
        self.rounds += 1;
        match (blocker, &closed) {
            // Its holder may have to pass the gate.
            (Some(blocker), _) => Ok(Round::Blocked(blocker)),
            (None, Some(_)) => self.publish(load, ownership, true),
            (None, None) => Ok(Round::More),
        }
    }

    /// Follows what has changed since the last round, comparing about `some` keys.
    fn round(&mut self, load: Load<'_>, some: usize) -> Result<Looked> {
        let _within = walked::within(Path::LoadRound);
        let (guard, lists) = match self.current.take() {
            Some(current) => current,
            None => {
                let _turn = load.loader.commits().lock();
                (load.loader.commits().snapshots().take(), lists(load.table))
            }
        };
        debug_assert!(
            lists.len() == load.table.partitions().len(),
            "a round looks at {} partitions of {}",
            lists.len(),
            load.table.partitions().len()
        );
        let is_more = self.met.catch_up(load, &self.staged, &lists, some);
        if !matches!(is_more, Ok(false)) {
            self.current = Some((guard, lists));
            return is_more.map(|_| Looked::Partly);
        }
        self.guard = guard;
        self.look_at_memory(load, true)?;
        let blocker = self.watch.lock(load, &self.staged)?;
        if blocker.is_some() {
            walked::walk(Path::LoadBlocked);
        }
        // Decided early, so that the last round seldom has to.
        self.rejected(load);
        Ok(Looked::Whole(blocker))
    }

    /// By file: the rows that must not appear, as far as the rounds have seen.
    fn rejected(&mut self, load: Load<'_>) -> Vec<RoaringBitmap> {
        let files = load.files;
        if load.on_duplicate != OnDuplicate::Skip {
            return files.iter().map(|file| file.rejected.clone()).collect();
        }
        let mut skipped: Vec<RoaringBitmap> =
            (0..files.len()).map(|at| self.met.skipped(at) | self.watch.skipped(at)).collect();
        self.contested.update(&skipped);
        for (at, skipped) in skipped.iter_mut().enumerate() {
            debug_assert!(
                self.contested.rejected(at).is_none() || files[at].rejected.is_empty(),
                "rows of file {at} were rejected before they were contested"
            );
            *skipped |= self.contested.rejected(at).unwrap_or(&files[at].rejected);
        }
        skipped
    }

    /// Whether little has changed since the last round, and little must be looked at again.
    fn is_near(&self, load: Load<'_>) -> bool {
        let (noted, rest) = (self.journal.len(), load.loader.options().load_rest);
        let is_little = noted.is_some_and(|locks| locks <= rest) && self.watch.carried() <= rest;
        // Rows of the load that gave way to them may appear after all.
        let deleted = || match load.on_duplicate {
            OnDuplicate::Skip => self.met.deleted_since(),
            _ => 0,
        };
        (is_little || !has_keys(load.table))
            && deleted() <= rest as u64
            && !self.met.is_behind(&self.staged, &lists(load.table))
    }

    /// Looks at rows in memory that were locked since the last look, and again at those that others
    /// held locked then if these `can_commit`.
    fn look_at_memory(&mut self, load: Load<'_>, can_commit: bool) -> Result<()> {
        let is_lost = self.rounds > 0 && plant::is(Bug::LoadPhaseTwo);
        match has_keys(load.table) && !is_lost {
            true => self.watch.follow(&self.staged, &self.journal, can_commit),
            false => Ok(()),
        }
    }

    /// Does the last round and the commit, unless much was committed meanwhile. `is_closed` if the
    /// table's gate is: then nothing was.
    fn publish(
        &mut self,
        load: Load<'_>,
        ownership: &mut Ownership,
        is_closed: bool,
    ) -> Result<Round> {
        let _within = walked::within(Path::LoadEnd);
        let Load { loader, table, files, .. } = load;
        let _passing = (!is_closed).then(|| table.gate().pass());
        let mut turn = loader.commits().lock();
        debug_assert!(
            !is_closed || !self.met.is_behind(&self.staged, &lists(table)),
            "a segment has passed a closed gate"
        );
        if !is_closed && !self.is_near(load) {
            return Ok(Round::More);
        }
        loader.commits().check_writable()?;
        table.check_newest()?;
        check_room(table, files)?;
        let (commit, lists) = (turn.next(), lists(table));
        // List the segments before the last look at memory: a concurrent insert then either has its
        // lock already or finds the new rows.
        let states: Vec<Arc<SegmentState>> =
            files.iter().map(|file| file.state(commit, loader.files())).collect();
        let runs = runs_of(table, files, loader.options());
        list(table, files, &states, &runs);
        let appended = self.last_round(load, &lists, is_closed).and_then(|outcome| match outcome {
            Ok(outcome) if outcome.is_nothing(files) => Ok(Ok(None)),
            Ok(outcome) => {
                let payload = outcome.record(commit, load, &runs)?;
                Ok(Ok(Some((turn.append(&payload)?, outcome))))
            }
            Err(blocker) => Ok(Err(blocker)),
        });
        let (committed, outcome) = match appended {
            Ok(Ok(Some(appended))) => appended,
            other => {
                unlist(table, files);
                drop(turn);
                return match other? {
                    Err(blocker) => Ok(Round::Blocked(blocker)),
                    // Rows were skipped in favour of existing ones, which must be as durable.
                    Ok(_) => loader.commits().sync_log().map(|()| Round::Done(0)),
                };
            }
        };
        debug_assert!(
            committed.commit == commit,
            "a load of commit {commit} is logged as {}",
            committed.commit
        );
        *ownership = Ownership::Table;
        loader.files().note_named(files.iter().map(|file| &file.segment));
        if table.has_unique_index() && !outcome.replaced.is_empty() {
            table.set_cleared(commit);
        }
        let oldest = loader.commits().snapshots().oldest();
        // Before the rows: a transaction that finds one gone looks whether the table has changed.
        table.set_changed(commit);
        outcome.apply(commit, oldest, &states);
        outcome.note_work(table);
        drop(turn);
        loader.commits().settle_strictly(committed)?;
        Ok(Round::Done(outcome.live_rows(files)))
    }

    /// Follows what was committed since the last round. Must be called under the commit lock, after
    /// the load's segments are listed. Returns the holder of a lock that has to be waited for.
    fn last_round(
        &mut self,
        load: Load<'_>,
        lists: &[Arc<SegmentList>],
        is_closed: bool,
    ) -> Result<std::result::Result<Outcome, Blocker>> {
        // Another transaction may assign keys of the load to many rows.
        if has_keys(load.table)
            && let Some(blocker) = load.table.reservations().blocker(self.owner())
        {
            return Ok(Err(blocker));
        }
        while self.met.catch_up(load, &self.staged, lists, usize::MAX)? {}
        self.look_at_memory(load, !is_closed)?;
        if let Some(blocker) = self.watch.lock(load, &self.staged)? {
            return Ok(Err(blocker));
        }
        let outcome = self.outcome(load);
        // Another transaction may be about to delete a row that is replaced.
        let claimed =
            |one: &ReplacedRows| one.state.claims().blocker_of_any(self.owner(), &one.rows);
        Ok(outcome.replaced.iter().find_map(claimed).map_or(Ok(outcome), Err))
    }

    fn outcome(&mut self, load: Load<'_>) -> Outcome {
        let (rejected, on_duplicate) = (self.rejected(load), load.on_duplicate);
        let is_live = |row: &LoadedRow| !rejected[row.file].contains(row.row);
        let mut ended = Vec::new();
        for (partition, node, same) in self.watch.met() {
            let lives_on = same.iter().any(is_live);
            let ends = match node.newest().map(|version| version.change) {
                Some(Change::Put(_)) => on_duplicate == OnDuplicate::Replace,
                // An older snapshot may still need the tombstone, but it must not hide the new row.
                Some(Change::Delete) => lives_on,
                Some(Change::Flushed) | None => false,
            };
            if ends {
                ended.push((partition, node.clone(), lives_on));
            }
        }
        ended.sort_unstable_by(|a, b| (a.0, a.1.key()).cmp(&(b.0, b.1.key())));
        debug_assert!(
            ended.is_sorted_by(|a, b| (a.0, a.1.key()) < (b.0, b.1.key())),
            "a row in memory ends twice in one load"
        );
        let replaced = match on_duplicate {
            OnDuplicate::Replace => self.met.replaced(),
            _ => Vec::new(),
        };
        Outcome { rejected, replaced, ended }
    }
}

impl Outcome {
    /// Number of rows that the table gains.
    fn live_rows(&self, files: &[Loaded]) -> u64 {
        let live = |(file, rejected): (&Loaded, &RoaringBitmap)| {
            let rows = file.segment.rows() as u64;
            invariant!(rejected.len() <= rows, "{} of {rows} rows are rejected", rejected.len());
            rows - rejected.len()
        };
        files.iter().zip(&self.rejected).map(live).sum()
    }

    /// Whether no row comes or goes.
    fn is_nothing(&self, files: &[Loaded]) -> bool {
        self.live_rows(files) == 0 && self.replaced.is_empty() && self.ended.is_empty()
    }

    fn record(&self, commit: Timestamp, load: Load<'_>, runs: &[RunPlace]) -> Result<Vec<u8>> {
        let Load { table, files, .. } = load;
        debug_assert!(
            self.replaced.iter().all(|one| !one.rows.is_empty()),
            "no row of a segment is replaced"
        );
        let place = |partition| table.place(table.partition(partition));
        let mut payload = record::begin(commit);
        for (partition, node, _) in &self.ended {
            record::delete(&mut payload, place(*partition), node.key());
        }
        for ReplacedRows { partition, state, rows } in &self.replaced {
            record::delete_rows(&mut payload, place(*partition), state.id(), rows)?;
        }
        add_segments(&mut payload, table, files, (&self.rejected, runs))?;
        if table.schema().identity_column().is_some() {
            record::advance(&mut payload, table.schema().id, table.next_identity());
        }
        Ok(payload)
    }

    /// Tells the scheduler about deltas of delete bitmaps, and counts new versions of rows.
    fn note_work(&self, table: &Table) {
        for ReplacedRows { partition, .. } in &self.replaced {
            table.partition(*partition).consider(Work::Deltas);
        }
        for number in self.ended.iter().map(|(partition, ..)| *partition).collect::<Set<u32>>() {
            table.recount(table.partition(number));
        }
    }

    /// Changes the rows of the table. Must be called under the commit lock.
    fn apply(&self, commit: Timestamp, oldest: Timestamp, states: &[Arc<SegmentState>]) {
        invariant!(
            states.len() == self.rejected.len(),
            "rows of {} of {} segments are rejected",
            self.rejected.len(),
            states.len()
        );
        for (state, rejected) in states.iter().zip(&self.rejected) {
            if state.deleted_rows() != rejected.len() {
                state.delete(commit, rejected.clone(), commit);
            }
        }
        for (_, node, lives_on) in &self.ended {
            // A row of the load with its key is the same row, changed and moved.
            let change = if *lives_on { Change::Flushed } else { Change::Delete };
            node.push_version(Version { commit, content: commit, change });
        }
        for ReplacedRows { state, rows, .. } in &self.replaced {
            state.delete(commit, rows.clone(), oldest);
        }
    }
}

/// Publishes a new table and the rows of a load, or neither. The table `replaced`, whose name the
/// new one has, is dropped in the same commit. `ownership` is updated even on an error.
pub(super) fn with_table(
    loader: &Loader,
    (table, replaced): (&Arc<Table>, Option<Arc<Table>>),
    files: &[Loaded],
    ownership: &mut Ownership,
) -> Result<u64> {
    debug_assert!(
        table.created() == 0 && files.iter().all(|file| file.rejected.is_empty()),
        "table {} is not new, or rows of it were rejected",
        table.schema().name
    );
    let rejected = vec![RoaringBitmap::new(); files.len()];
    let mut payload = record::begin(0);
    if let Some(old) = &replaced {
        record::drop_table(&mut payload, old.id());
    }
    record::create_table(&mut payload, table.schema())?;
    let runs = runs_of(table, files, loader.options());
    add_segments(&mut payload, table, files, (&rejected, &runs))?;
    loader.catalog().commit(payload, |contents, commit| {
        if let Some(old) = &replaced {
            drop_replaced(loader.catalog().garbage(), contents, old, table, commit)?;
        }
        contents.add(table, commit)?;
        let states: Vec<Arc<SegmentState>> =
            files.iter().map(|file| file.state(commit, loader.files())).collect();
        list(table, files, &states, &runs);
        table.set_changed(commit);
        *ownership = Ownership::Table;
        loader.files().note_named(files.iter().map(|file| &file.segment));
        Ok(())
    })?;
    Ok(files.iter().map(|file| file.segment.rows() as u64).sum())
}

/// The segments of each partition.
fn lists(table: &Table) -> Vec<Arc<SegmentList>> {
    table.partitions().iter().map(Partition::segments).collect()
}
