//! Tasks on a single thread: those of a statement run one after another, background work as a
//! session of its own.

use crate::clock::SimClock;
use crate::turns::yield_now;
use nacredb::host::{
    Background, BackgroundTask, Clock, Fetch, Parallelism, Resident, Rest, Result,
};
use nacredb::{Budget, Database};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Runs tasks one after another. With a place for it, background work is a session of its own;
/// otherwise the sessions do it after their commits.
#[derive(Clone, Default)]
pub struct Inline {
    /// Whether only futures wait for absent bytes.
    never_blocks: bool,
    background: Option<Arc<Mutex<Place>>>,
}

/// The background work of the open database.
#[derive(Default)]
struct Place {
    /// `None` while it runs, and without an open database.
    task: Option<BackgroundTask>,
    /// Counts databases.
    number: u64,
    is_due: bool,
    waker: Option<Waker>,
}

impl Place {
    fn wake(&mut self) {
        self.is_due = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Inline {
    /// With background work as a session of its own.
    pub fn with_background() -> Inline {
        Inline { background: Some(Arc::default()), ..Inline::default() }
    }

    /// The same, where a thread must not block.
    pub fn never_blocking(self) -> Inline {
        Inline { never_blocks: true, ..self }
    }

    /// Whether background work is a session of its own.
    pub fn has_background(&self) -> bool {
        self.background.is_some()
    }

    /// The session of the background work of a database. It never ends. Where a thread must not block, it
    /// awaits absent bytes, as a browser's worker does in idle time.
    pub async fn serve(self, clock: Arc<SimClock>, db: Database) {
        let Some(place) = self.background else { return };
        let locked = || place.lock().unwrap_or_else(PoisonError::into_inner);
        let mut until = None;
        loop {
            std::future::poll_fn(|context| {
                let mut place = locked();
                if std::mem::take(&mut place.is_due) {
                    return Poll::Ready(());
                }
                place.waker = Some(context.waker().clone());
                drop(place);
                match until {
                    Some(until) => Pin::new(&mut clock.sleep_until(until)).poll(context),
                    None => Poll::Pending,
                }
            })
            .await;
            // Before the task is taken: this future may be dropped meanwhile.
            while self.never_blocks && matches!(db.maintain_async(Budget::Steps(1)).await, Ok(true))
            {
                yield_now().await;
            }
            let (number, task) = {
                let mut place = locked();
                (place.number, place.task.take())
            };
            let Some(mut task) = task else { continue };
            let rest = task();
            {
                let mut place = locked();
                if place.number == number {
                    place.task = Some(task);
                }
                place.is_due |= rest == Rest::No;
            }
            until = match rest {
                Rest::For(time) => Some(clock.monotonic_ns() + time.as_nanos() as u64),
                Rest::No | Rest::UntilWoken => None,
            };
            yield_now().await;
        }
    }
}

/// Dropped with the database.
struct Handle {
    place: Arc<Mutex<Place>>,
    number: u64,
}

impl Background for Handle {
    fn wake(&self) -> bool {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).wake();
        true
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.number == self.number {
            place.task = None;
        }
    }
}

impl Parallelism for Inline {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }

    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        (!self.never_blocks).then(|| nacre_testing::wait(fetch))
    }

    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        let place = self.background.clone()?;
        let mut open = place.lock().unwrap_or_else(PoisonError::into_inner);
        open.number += 1;
        open.task = Some(task);
        // Work may be left from before it was closed.
        open.is_due = true;
        let number = open.number;
        drop(open);
        Some(Box::new(Handle { place, number }))
    }
}
