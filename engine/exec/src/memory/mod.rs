//! What the operators of one statement may hold, together.
//!
//! Half of the limit is shared out: every operator that holds rows has its part, which nobody can take from it, so
//! that each can work, however little there is. The other half is for whoever asks first. An operator that gets no
//! more spills (`spill/`) or ends the statement with `limit`. So all of them together never hold more than the limit,
//! but for the batches on their way, and for [`LEAST_BYTES`] each where the limit is hardly more than that.

use crate::context::{Context, count};
use crate::spill::SpillFile;
use crate::store::MOST_TEXT_BYTES;
use nacre_sql::plan::Plan;
use nacre_types::{Error, Result, limits};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An operator's part is at least this, or the whole limit where that is less.
const LEAST_BYTES: usize = 64 << 10;

/// The memory of one statement. Cheap to clone; shared between threads.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: AtomicUsize,
    /// How many operators share the first half.
    holders: AtomicUsize,
    /// Bytes of the second half that are taken.
    taken: AtomicUsize,
    /// Where the statement's operators put what they cannot hold, once one of them had to.
    file: Mutex<Option<Arc<SpillFile>>>,
}

impl Memory {
    /// So many bytes.
    pub fn new(limit: usize) -> Memory {
        Memory(Arc::new(Inner {
            limit: AtomicUsize::new(limit),
            holders: AtomicUsize::new(1),
            taken: AtomicUsize::new(0),
            file: Mutex::default(),
        }))
    }

    /// Bytes that all operators may hold together.
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit, for what is asked for from now on.
    pub fn set_limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Makes sure that the operators of a plan have their parts, and so many `others`.
    pub fn share_among(&self, plan: &Plan, others: usize) {
        let mut holders = others;
        count_holders(plan, &mut holders);
        self.0.holders.fetch_max(holders, Ordering::Relaxed);
    }

    /// The part of one operator.
    fn part(&self) -> usize {
        let limit = self.limit();
        (limit / 2 / self.0.holders.load(Ordering::Relaxed)).max(LEAST_BYTES.min(limit))
    }

    /// Bytes of rows that are written together while spilling to several places at once.
    pub(crate) fn chunk_bytes(&self) -> usize {
        (self.part() / 64).clamp(2 << 10, 256 << 10)
    }

    /// The statement's file for spilling; `None` where files would be in memory.
    pub(crate) fn spill_file(&self, context: &Context<'_>) -> Result<Option<Arc<SpillFile>>> {
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = context
                .transaction
                .store()
                .temporary_file()?
                .map(|file| Arc::new(SpillFile::new(file)));
        }
        Ok(file.clone())
    }
}

/// Operators that hold rows. What is shared is built once.
fn count_holders(plan: &Plan, holders: &mut usize) {
    use Plan::{Filter, Limit, Project, Scan, Union, Values};
    plan.any_node(&mut |node| {
        let passes = matches!(
            node,
            Scan { .. }
                | Filter { .. }
                | Project { .. }
                | Values { .. }
                | Union { .. }
                | Limit { .. }
        );
        *holders += usize::from(!passes);
        false
    });
}

/// What one operator holds, given back when it goes.
#[derive(Default)]
pub struct Reservation {
    memory: Option<Memory>,
    taken: usize,
    /// Among so many it shares its part; 0 and 1 for itself alone.
    shared_by: usize,
}

impl Reservation {
    /// Of an operator that several threads work for, what one of them holds.
    pub(crate) fn by_one_of(threads: usize) -> Reservation {
        Reservation { memory: None, taken: 0, shared_by: threads }
    }

    /// Holds so many bytes from now on, or as many as before and answers false.
    #[must_use]
    pub fn hold(&mut self, bytes: usize, context: &Context<'_>) -> bool {
        let memory = self.memory.get_or_insert_with(|| context.memory.clone());
        let wanted = bytes.saturating_sub(memory.part() / self.shared_by.max(1));
        self.take(wanted)
    }

    /// The same for somebody without a part, who gets no more than others have as theirs.
    #[must_use]
    pub(crate) fn hold_little(&mut self, bytes: usize, context: &Context<'_>) -> bool {
        let memory = self.memory.get_or_insert_with(|| context.memory.clone());
        bytes <= memory.part() / self.shared_by.max(1) && self.take(bytes)
    }

    /// Has so many bytes of what is for whoever asks first.
    fn take(&mut self, wanted: usize) -> bool {
        let Some(memory) = &self.memory else { return false };
        if wanted <= self.taken {
            memory.0.taken.fetch_sub(self.taken - wanted, Ordering::Relaxed);
        } else {
            let (more, room) = (wanted - self.taken, memory.limit() / 2);
            let take = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= room);
            if memory.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return false;
            }
        }
        self.taken = wanted;
        true
    }

    /// Gives everything back.
    pub fn release(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory.0.taken.fetch_sub(std::mem::take(&mut self.taken), Ordering::Relaxed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

impl Context<'_> {
    /// Holds so many bytes for an operator that cannot do with less.
    pub fn hold(&self, held: &mut Reservation, operator: &str, bytes: usize) -> Result<()> {
        if held.hold(bytes, self) { Ok(()) } else { Err(self.over_limit(operator)) }
    }

    /// Bytes of text that one expression may have for one batch. These are held by nobody, but they must not be many
    /// times what may be; one value always has room.
    pub(crate) fn most_text_bytes(&self) -> usize {
        self.memory.limit().clamp(limits::MAX_VALUE_BYTES, MOST_TEXT_BYTES)
    }

    /// That an operator needs more than it can have.
    #[cold]
    pub(crate) fn over_limit(&self, operator: &str) -> Error {
        Error::limit(format!(
            "{operator} needs more than the memory limit of {} bytes",
            self.memory.limit()
        ))
        .with_sqlstate("53200")
        .with_hint("raise the memory limit or read fewer rows")
    }

    /// The file for an operator to spill to; `limit` where there is none.
    pub(crate) fn spill_file(&self, operator: &str) -> Result<Arc<SpillFile>> {
        let file = self
            .memory
            .spill_file(self)
            .map_err(|error| error.context(format!("spilling for {operator}")))?;
        file.ok_or_else(|| self.over_limit(operator))
    }

    /// Counts what was spilled.
    pub(crate) fn count_spilled(&self, bytes: usize) {
        count(&self.statistics.bytes_spilled, bytes);
    }
}
