//! The memory of one statement, and its temporary file.

use crate::spill::SpillFile;
use nacre_sql::plan::Plan;
use nacre_table::{Environment, StatementMemory};
use nacre_types::{Result, invariant};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The minimum share of an operator in bytes, or the whole limit where that is less.
const LEAST_BYTES: usize = 64 << 10;

/// The memory of one statement. Cheap to clone; shared between threads.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    limit: AtomicUsize,
    /// Number of operators that divide the first half of the limit.
    holders: AtomicUsize,
    /// Bytes taken from the second half.
    taken: AtomicUsize,
    /// The memory that all statements share; `None` for a statement alone.
    shared: Option<Arc<StatementMemory>>,
    /// Bytes that this statement holds of it.
    counted: AtomicUsize,
    /// The statement's temporary file, once an operator has spilled.
    file: Mutex<Option<Arc<SpillFile>>>,
}

impl Memory {
    /// A memory of `limit` bytes.
    pub fn new(limit: usize) -> Memory {
        Memory::with(limit, None)
    }

    /// A memory of at most `limit` bytes, taken from what all statements share.
    pub fn sharing(limit: usize, shared: Arc<StatementMemory>) -> Memory {
        Memory::with(limit.min(shared.limit_bytes()), Some(shared))
    }

    fn with(limit: usize, shared: Option<Arc<StatementMemory>>) -> Memory {
        Memory(Arc::new(Pool {
            limit: AtomicUsize::new(limit),
            holders: AtomicUsize::new(1),
            taken: AtomicUsize::new(0),
            shared,
            counted: AtomicUsize::new(0),
            file: Mutex::default(),
        }))
    }

    /// The limit for all operators together, in bytes.
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit for later reservations; existing ones are kept.
    pub fn set_limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Divides the first half of the limit among the operators of a plan and `others` more.
    pub fn share_among(&self, plan: &Plan, others: usize) {
        self.0.holders.fetch_max(others + holders(plan), Ordering::Relaxed);
    }

    /// The share of one operator in bytes.
    pub(super) fn share(&self) -> usize {
        let limit = self.limit();
        (limit / 2 / self.0.holders.load(Ordering::Relaxed)).max(LEAST_BYTES.min(limit))
    }

    /// Takes `more` bytes from the pool. Returns false if fewer are left.
    #[must_use]
    pub(super) fn take(&self, more: usize) -> bool {
        let room = self.limit() / 2;
        let take = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= room);
        self.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns bytes to the pool.
    pub(super) fn give_back(&self, bytes: usize) {
        let taken = self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        invariant!(bytes <= taken, "{bytes} bytes returned to a pool that lent {taken}");
    }

    /// Counts an operator's bytes in the memory of all statements, `before` of which are counted
    /// already. Returns false if that has no room; the minimum of an operator always has.
    #[must_use]
    pub(super) fn recount(&self, before: usize, bytes: usize) -> bool {
        let Some(shared) = &self.0.shared else { return true };
        if bytes > before && bytes > LEAST_BYTES {
            let taken = shared.take(bytes - before);
            self.0.counted.fetch_add(if taken { bytes - before } else { 0 }, Ordering::Relaxed);
            return taken;
        }
        self.count_back(before, bytes);
        true
    }

    /// Like [`Memory::recount`], for bytes that were counted before, or fewer.
    pub(super) fn count_back(&self, before: usize, bytes: usize) {
        let Some(shared) = &self.0.shared else { return };
        match bytes.checked_sub(before) {
            Some(more) => {
                shared.take_always(more);
                self.0.counted.fetch_add(more, Ordering::Relaxed);
            }
            None => {
                shared.give_back(before - bytes);
                self.0.counted.fetch_sub(before - bytes, Ordering::Relaxed);
            }
        }
    }

    /// Whether other statements hold most of the memory that all share.
    pub fn is_crowded(&self) -> bool {
        let own = self.0.counted.load(Ordering::Relaxed);
        let others = |shared: &Arc<StatementMemory>| {
            shared.memory_bytes().saturating_sub(own) > shared.limit_bytes() / 2
        };
        self.0.shared.as_ref().is_some_and(others)
    }

    /// Bytes of rows to buffer per partition while spilling to several at once.
    pub fn chunk_bytes(&self) -> usize {
        let left = self.0.shared.as_ref().map_or(usize::MAX, |shared| shared.left_bytes());
        (self.share().min(left.max(LEAST_BYTES)) / 64).clamp(2 << 10, 256 << 10)
    }

    /// The statement's file for spilling; `None` where temporary files would themselves be in
    /// memory.
    pub fn spill_file(&self, environment: &Environment) -> Result<Option<Arc<SpillFile>>> {
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = environment.temporary_file()?.map(|file| Arc::new(SpillFile::new(file)));
        }
        Ok(file.clone())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        debug_assert_eq!(taken, 0, "a statement ends with all of its memory given back");
    }
}

/// How many operators of a plan hold rows. A shared input is built once and counts once.
fn holders(plan: &Plan) -> usize {
    use Plan::{Filter, Limit, Project, Scan, Union, Values};
    let mut holders = 0;
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
        holders += usize::from(!passes);
        false
    });
    holders
}
