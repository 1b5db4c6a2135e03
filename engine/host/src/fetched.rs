//! Reads of bytes that are not there.
//!
//! A store may hold a part of its files only. A read of the rest ends with
//! [`Error::not_resident`], which names the ranges. Whatever drives the reader has them fetched
//! with [`LocalStore::fetch`], keeps the guard, and calls the reader again.

use crate::{Host, LocalStore, Parallelism, Resident, cancelling};
use nacre_types::hash::{Set, hash_bytes, hash_u64};
use nacre_types::{Error, Missing, Reason, Result};
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

/// Number of fetches that a unit of work keeps at first.
const KEPT: usize = 64;

/// How often a unit of work gives up what it has fetched because the disk is full: one that needs more at a time
/// than there is room for fails in the end.
const MOST_RELEASES: u32 = 10_000;

/// How often, and for how many nanoseconds, a statement waits because the disk is full: background work gives up the
/// space that it holds when it ends or fails, and what it has written leaves once it is uploaded.
const MOST_WAITS: u32 = 50;
const WAIT_NS: u64 = 100_000_000;

/// Most reads whose misses are fetched at once.
const TOGETHER: usize = 64;

/// What several reads miss, that do not depend on each other: it is fetched at once.
#[derive(Default)]
pub struct Misses {
    error: Option<Error>,
    reads: usize,
}

impl Misses {
    /// Reads several things that do not depend on each other.
    ///
    /// # Errors
    /// All that the reads miss, up to a number; any other error at once.
    pub fn each<T>(
        of: impl IntoIterator<Item = T>,
        mut read: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut misses = Misses::default();
        for one in of {
            if let Err(error) = read(one) {
                misses.add(error)?;
                if misses.is_full() {
                    break;
                }
            }
        }
        misses.end()
    }

    /// Adds what a read missed, out of line: there are many kinds of reads.
    ///
    /// # Errors
    /// The error, if it is another one.
    #[cold]
    #[inline(never)]
    fn add(&mut self, error: Error) -> Result<()> {
        if error.missing().is_none() {
            return Err(error);
        }
        self.reads += 1;
        self.error = Some(match self.error.take() {
            Some(all) => all.and_missing(&error),
            None => error,
        });
        Ok(())
    }

    /// What a read returned; `None` if it missed bytes.
    ///
    /// # Errors
    /// Any other error.
    pub fn note<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(error) => self.add(error).map(|()| None),
            Ok(found) => Ok(Some(found)),
        }
    }

    /// Whether no read has missed bytes.
    pub fn is_empty(&self) -> bool {
        self.error.is_none()
    }

    /// Whether so much is missed that it is fetched before anything else is read.
    pub fn is_full(&self) -> bool {
        self.reads >= TOGETHER
    }

    /// Ends the reads.
    ///
    /// # Errors
    /// Everything that they missed.
    pub fn end(self) -> Result<()> {
        debug_assert!(self.error.is_some() == (self.reads > 0), "{} misses are lost", self.reads);
        self.error.map_or(Ok(()), Err)
    }
}

/// What a unit of work has fetched. The newest fetches stay resident; once something is missed that
/// was fetched and given up, everything does, so the number of misses is finite.
#[derive(Default)]
pub struct Fetched {
    /// In the order of their fetches, with hashes of the ranges that were missed.
    guards: VecDeque<(Vec<u64>, Resident)>,
    given_up: Set<u64>,
    /// How often all of them were given up for lack of space.
    releases: u32,
    /// How often it has waited for space.
    waits: u32,
    /// Whether it is background work, which does not wait for space: it may hold what others wait for.
    is_background: bool,
    keeps_all: bool,
}

impl Fetched {
    /// For a unit of background work.
    pub fn of_background() -> Fetched {
        Fetched { is_background: true, ..Fetched::default() }
    }

    /// Fetches what a failed call missed; then it can be called again. Returns any other error, and
    /// one of bytes that are resident: the failed call has kept it instead of reading again.
    pub async fn resolve(&mut self, error: Error, store: &dyn LocalStore) -> Result<()> {
        let Some((missing, keys)) = self.missing(&error) else { return Err(error) };
        let resident = store.fetch(missing).await?;
        self.keep(&error, keys, resident);
        Ok(())
    }

    /// Like [`Fetched::resolve`], and ends with `cancelled` when a flag says so.
    pub async fn resolve_unless(
        &mut self,
        error: Error,
        host: &Host,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let Some((missing, keys)) = self.missing(&error) else { return Err(error) };
        let fetched = loop {
            match cancelling(&*host.clock, host.store.fetch(missing), is_cancelled).await {
                Err(full) if self.gives_up(&full) => {}
                Err(full) if self.may_wait(&full) => {
                    cancelling(&*host.clock, space(host), is_cancelled).await?;
                }
                fetched => break fetched,
            }
        };
        self.keep(&error, keys, fetched?);
        Ok(())
    }

    /// Like [`Fetched::resolve_unless`], for callers that are not asynchronous: blocks the thread where the
    /// environment allows it. Returns the error itself where it does not.
    pub fn resolve_now_unless(
        &mut self,
        error: Error,
        host: &Host,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let Some((missing, keys)) = self.missing(&error) else { return Err(error) };
        let mut waits = false;
        let fetched = loop {
            let fetch = async {
                if waits {
                    cancelling(&*host.clock, space(host), is_cancelled).await?;
                }
                cancelling(&*host.clock, host.store.fetch(missing), is_cancelled).await
            };
            match host.parallelism.wait(Box::pin(fetch)) {
                Some(Err(full)) if self.gives_up(&full) => waits = false,
                Some(Err(full)) if self.may_wait(&full) => waits = true,
                fetched => break fetched,
            }
        };
        let Some(fetched) = fetched else { return Err(error) };
        self.keep(&error, keys, fetched?);
        Ok(())
    }

    /// Like [`Fetched::resolve`], for callers that are not asynchronous: blocks the thread where the
    /// environment allows it. Returns the error itself where it does not.
    pub fn resolve_now(
        &mut self,
        error: Error,
        store: &dyn LocalStore,
        threads: &dyn Parallelism,
    ) -> Result<()> {
        let Some((missing, keys)) = self.missing(&error) else { return Err(error) };
        let Some(resident) = threads.wait(store.fetch(missing)) else {
            return Err(error);
        };
        self.keep(&error, keys, resident?);
        Ok(())
    }

    /// What is to be fetched, with a hash of each range.
    fn missing<'a>(&self, error: &'a Error) -> Option<(&'a [Missing], Vec<u64>)> {
        let missing = error.missing()?;
        let mut keys = Vec::new();
        for Missing { file, ranges } in missing {
            let file = hash_bytes(file.as_bytes());
            let key =
                |range: &Range<u64>| hash_u64(file ^ hash_u64(range.start).wrapping_add(range.end));
            keys.extend(ranges.iter().map(key));
        }
        let is_held = |key: &u64| self.guards.iter().any(|(held, _)| held.contains(key));
        (!keys.iter().all(is_held)).then_some((missing, keys))
    }

    /// Gives up what was fetched before, if the disk is too full for more. Returns whether that was anything.
    fn gives_up(&mut self, error: &Error) -> bool {
        let is_full = error.reason() == Some(Reason::NoSpace) && !self.guards.is_empty();
        if !is_full || self.releases == MOST_RELEASES {
            return false;
        }
        self.releases += 1;
        self.given_up.extend(self.guards.drain(..).flat_map(|(keys, _)| keys));
        true
    }

    /// Whether to wait for space on a full disk.
    fn may_wait(&mut self, error: &Error) -> bool {
        let is_full = error.reason() == Some(Reason::NoSpace) && !self.is_background;
        if !is_full || self.waits == MOST_WAITS {
            return false;
        }
        self.waits += 1;
        true
    }

    fn keep(&mut self, error: &Error, keys: Vec<u64>, resident: Resident) {
        if error.reason() == Some(Reason::ToWarm) {
            return;
        }
        self.keeps_all |= keys.iter().any(|key| self.given_up.contains(key));
        self.guards.push_back((keys, resident));
        if !self.keeps_all
            && self.guards.len() > KEPT
            && let Some((keys, _)) = self.guards.pop_front()
        {
            self.given_up.extend(keys);
        }
        debug_assert!(
            self.keeps_all || self.guards.len() <= KEPT,
            "a unit of work keeps {} fetches",
            self.guards.len()
        );
    }

    /// Ends the unit of work.
    pub fn release(&mut self) {
        *self = Fetched::default();
    }
}

/// Waits a moment for space on a full disk.
fn space(host: &Host) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> {
    let until_ns = host.clock.monotonic_ns().saturating_add(WAIT_NS);
    Box::pin(async move {
        host.clock.sleep_until(until_ns).await;
        Ok(())
    })
}
