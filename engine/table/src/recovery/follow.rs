//! Follows the log of a database that another instance writes: applies the records that it has
//! written since, while readers go on.
//!
//! Readers see all records of one call together, at the last of their commits. Until then, rows are
//! there as versions that no reader sees, and all else is as it was.
//!
//! If the writer has removed what is to be read next, its newest snapshot takes the place of what readers
//! see, as if one commit had emptied every table and filled it again.

use crate::catalog::registry::Catalog;
use crate::maintenance::collect::collect;
use crate::maintenance::context::TaskContext;
use crate::record::NextIds;
use crate::recovery::install::{Moment, contents_after, enter_rows, install};
use crate::recovery::opened::open_files;
use crate::recovery::partition::Touched;
use crate::recovery::replay::Replay;
use nacre_log::LogReader;
use nacre_types::{Error, Reason, Result, TableId, Timestamp, invariant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Follows a log.
pub(crate) struct Follow(Mutex<State>);

struct State {
    reader: LogReader,
    /// Records that were applied and are not visible yet, because the log or a file could not be
    /// read.
    unfinished: Option<Replay>,
    /// Rows with versions to be freed, oldest first.
    written: VecDeque<Written>,
    /// A record could not be applied: nothing can be read beyond it.
    failure: Option<Error>,
}

/// Rows that became visible together.
struct Written {
    commit: Timestamp,
    table: TableId,
    rows: Touched,
}

/// Applies all records up to the end of the log. Returns whether there were any.
pub(super) fn read_on(reader: &mut LogReader, replay: &mut Replay) -> Result<bool> {
    let before = reader.position();
    while let Some((_, payload)) = reader.next()? {
        replay.apply(payload)?;
    }
    Ok(reader.position() > before)
}

impl Follow {
    /// Follows a log from where a reader of it stands.
    pub fn new(reader: LogReader) -> Follow {
        Follow(Mutex::new(State {
            reader,
            unfinished: None,
            written: VecDeque::new(),
            failure: None,
        }))
    }

    /// Makes everything visible that the log has now. Returns the newest commit that readers see.
    ///
    /// # Errors
    /// `not_found` with [`Reason::LogGone`](nacre_types::Reason::LogGone) if the writer has removed
    /// what is to be read next, again and again: the next call may succeed. `corrupt` for damage. What was
    /// visible stays so.
    pub fn refresh(&self, context: &TaskContext, catalog: &Arc<Catalog>) -> Result<Timestamp> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        context.commits().check_open()?;
        let refreshed = state.refresh(context, catalog);
        state.free(context);
        refreshed?;
        collect(context)?;
        Ok(context.snapshots().visible())
    }
}

impl State {
    fn refresh(&mut self, context: &TaskContext, catalog: &Arc<Catalog>) -> Result<()> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let mut replay = match self.unfinished.take() {
            Some(replay) => replay,
            None => Replay::after(catalog, next_ids(context, catalog)),
        };
        let mut outcome = self.apply(&mut replay, context, catalog);
        if outcome.as_ref().is_err_and(is_gone) {
            // No reader sees what was applied of the records before the gap, and the snapshot has it.
            replay = self.start_again(context, catalog)?;
            outcome = self.apply(&mut replay, context, catalog);
        }
        if outcome.is_err() {
            self.unfinished = Some(replay);
        }
        outcome
    }

    /// Reads from the newest snapshot on.
    ///
    /// # Errors
    /// Those of [`LogReader::again`] and [`Replay::load_again`], after which everything is as it was.
    fn start_again(&mut self, context: &TaskContext, catalog: &Arc<Catalog>) -> Result<Replay> {
        let seen = next_ids(context, catalog);
        let mut replay = Replay::after(catalog, seen);
        let reader = self.reader.again(&mut |payload| replay.load_again(payload))?;
        debug_assert!(
            reader.position() >= self.reader.position(),
            "the log begins again at {}, before {}",
            reader.position(),
            self.reader.position()
        );
        self.reader = reader;
        Ok(replay)
    }

    fn apply(
        &mut self,
        replay: &mut Replay,
        context: &TaskContext,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let visible = context.snapshots().visible();
        self.read_on(replay)?;
        let opened = loop {
            let at = replay.next().commit;
            debug_assert!(at >= visible, "the log ends at commit {at}, before {visible}");
            if at == visible {
                // There may be marks, which are no commits.
                context.commits().log().follow_to(self.reader.position());
                return Ok(());
            }
            match open_files(replay, context.files(), None, context.options(), at) {
                // A later record may have dropped a file that is gone.
                Err(error) if !self.read_on(replay)? => return Err(error),
                Err(_) => {}
                Ok(opened) => break opened,
            }
        };
        replay.check();
        enter_rows(replay, catalog.compiler())?;
        let next = replay.next();
        let mut turn = context.commits().lock();
        let contents = match replay.changes_catalog() {
            true => Some(catalog.read(|before| contents_after(before, replay, next.commit))?),
            false => None,
        };
        invariant!(next.commit > turn.last(), "commit {} is followed twice", next.commit);
        let moment = Moment { at: next.commit, oldest: context.snapshots().oldest() };
        // The catalog notes that it changes before any table does.
        let change = contents.map(|contents| catalog.begin_change(contents, next.commit));
        install(replay, opened, context.garbage(), moment);
        if let Some(contents) = change {
            catalog.end_change(contents);
            replay.altered().for_each(|table| catalog.agenda().add_altered(table));
        }
        catalog.saw_tables(next.table);
        context.files().saw_number(next.segment);
        turn.followed(next.commit, self.reader.position());
        drop(turn);
        debug_assert!(
            self.written.back().is_none_or(|newest| newest.commit <= next.commit),
            "rows of commit {} become visible after those of a later one",
            next.commit
        );
        for replayed in replay.take_touched() {
            let (table, rows) = replayed;
            self.written.push_back(Written { commit: next.commit, table, rows });
        }
        context.snapshots().make_visible(next.commit);
        debug_assert!(
            context.snapshots().visible() >= next.commit,
            "commit {} is followed and not visible",
            next.commit
        );
        Ok(())
    }

    fn read_on(&mut self, replay: &mut Replay) -> Result<bool> {
        let before = self.reader.position();
        while let Some((_, payload)) = self.reader.next()? {
            if let Err(error) = replay.apply(payload) {
                self.failure = Some(error.clone());
                return Err(error);
            }
        }
        Ok(self.reader.position() > before)
    }

    /// Frees versions of rows that no snapshot sees any more.
    fn free(&mut self, context: &TaskContext) {
        let oldest = context.snapshots().oldest();
        while let Some(written) = self.written.pop_front_if(|first| first.commit <= oldest) {
            let Ok(table) = context.catalog().table_by_id(written.table) else { continue };
            for (partition, node) in &written.rows {
                let partition = table.partition(*partition);
                let is_there = partition.rowstore().get(node.key());
                if is_there.is_some_and(|there| Arc::ptr_eq(&there, node)) {
                    table.collect_row(partition, node, oldest);
                }
            }
        }
    }
}

fn is_gone(error: &Error) -> bool {
    error.reason() == Some(Reason::LogGone)
}

/// The next free ids after what readers see.
fn next_ids(context: &TaskContext, catalog: &Catalog) -> NextIds {
    NextIds {
        commit: context.commits().lock().last(),
        segment: context.files().next_number(),
        table: catalog.next_table_id(),
    }
}
