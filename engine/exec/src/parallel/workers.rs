//! Threads that take one morsel after the other.

use crate::scan::Morsel;
use nacre_operator::context::Context;
use nacre_types::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether an error of a build side ends the call, rather than making one thread run the plan, which
/// may not even need that side.
pub(super) fn reaches_the_caller(error: &Error) -> bool {
    error.kind() == ErrorKind::Cancelled || error.missing().is_some()
}

/// The results of all threads.
pub(super) struct Ended<W, E> {
    /// The state of each thread.
    pub states: Vec<W>,
    /// The error of the first morsel that failed, with the morsel's number. All morsels before it
    /// are done.
    pub error: Option<(usize, E)>,
}

impl<W, E> Ended<W, E> {
    /// The states; the error if there is one.
    pub fn whole(self) -> Result<Vec<W>, E> {
        self.error.map_or(Ok(self.states), |(_, error)| Err(error))
    }
}

/// What a thread does with a morsel: its state, the morsel's number, the morsel, and a context.
type Work<'a, W, E> = dyn Fn(&mut W, usize, &Morsel, &Context<'_>) -> Result<(), E> + Sync + 'a;

/// Runs `work` for each of these morsels on several threads, each with a state of its own. `work`
/// receives the morsel's number, the morsel, and a context of one thread.
pub(super) fn for_each_morsel<W: Send, E: Send>(
    morsels: &[Morsel],
    context: &Context<'_>,
    state: &(dyn Fn() -> W + Sync),
    work: &Work<'_, W, E>,
) -> Ended<W, E> {
    let workers = context.threads.count.min(morsels.len());
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let ended = Mutex::new(Ended { states: Vec::new(), error: None });
    let fail = |at: usize, error: E| {
        failed.store(true, Ordering::Relaxed);
        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.error.as_ref().is_none_or(|(first, _)| at < *first) {
            ended.error = Some((at, error));
        }
    };
    let task = |_: usize| {
        let mut own = state();
        let context = context.on_one_thread();
        // Morsels are taken in order, so the threads that took those before a failed one finish
        // them.
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(morsel) = morsels.get(at) else { break };
            if let Err(error) = work(&mut own, at, morsel, &context) {
                fail(at, error);
                break;
            }
        }
        ended.lock().unwrap_or_else(PoisonError::into_inner).states.push(own);
    };
    context.transaction.environment().run(workers, &task);
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    debug_assert!(
        ended.error.is_some() || next.into_inner() >= morsels.len(),
        "without an error every morsel is taken"
    );
    ended
}
