//! Reads of bytes that are not there.
//!
//! A store may hold a part of its files only. A read of the rest ends with
//! [`Error::not_resident`], which names the ranges. Whatever drives the reader has them fetched
//! with [`LocalStore::fetch`], keeps the guard, and calls the reader again.

use crate::{LocalStore, Parallelism, Resident};
use nacre_types::hash::{Set, hash_bytes, hash_u64};
use nacre_types::{Error, Missing, Result};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Number of fetches that a unit of work keeps at first.
const KEPT: usize = 64;

/// Number of misses after which a unit of work that begins again reads ahead: a point read has fewer.
const MISSES_BEFORE_AHEAD: usize = 8;

/// The most bytes that it reads ahead with one fetch.
const AHEAD_BYTES: u64 = 64 << 20;

/// What a unit of work has fetched. The newest fetches stay resident; once something is missed that
/// was fetched and given up, everything does, so the number of misses is finite.
#[derive(Default)]
pub struct Fetched {
    /// In the order of their fetches, with a hash of what was missed.
    guards: VecDeque<(u64, Resident)>,
    given_up: Set<u64>,
    keeps_all: bool,
    /// Bytes that the next fetch reads ahead: as many as were missed and read ahead until now. `None` if
    /// the unit of work goes on where it missed.
    ahead: Option<u64>,
}

impl Fetched {
    /// For a unit of work that begins again after each miss. It reads everything again, so it keeps all that was
    /// fetched; and after some misses each fetch takes as much ahead as all before, so that it begins again a few
    /// times for each file instead of once for each block.
    pub fn reading_ahead() -> Fetched {
        Fetched { keeps_all: true, ahead: Some(0), ..Fetched::default() }
    }

    /// Fetches what a failed call missed; then it can be called again. Returns any other error, and
    /// one of bytes that are resident: the failed call has kept it instead of reading again.
    pub async fn resolve(&mut self, error: Error, store: &dyn LocalStore) -> Result<()> {
        let Some((missing, key)) = self.missing(&error) else { return Err(error) };
        let wanted = self.with_ahead(missing);
        let resident = store.fetch(std::slice::from_ref(wanted.as_ref())).await?;
        self.keep(key, resident);
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
        let Some((missing, key)) = self.missing(&error) else { return Err(error) };
        let wanted = self.with_ahead(missing);
        let Some(resident) = threads.wait(store.fetch(std::slice::from_ref(wanted.as_ref())))
        else {
            return Err(error);
        };
        self.keep(key, resident?);
        Ok(())
    }

    /// What is to be fetched, with its hash.
    fn missing<'a>(&self, error: &'a Error) -> Option<(&'a Missing, u64)> {
        let missing = error.missing()?;
        let key = missing.ranges.iter().fold(hash_bytes(missing.file.as_bytes()), |hash, range| {
            hash_u64(hash ^ hash_u64(range.start).wrapping_add(range.end))
        });
        self.guards.iter().all(|(held, _)| *held != key).then_some((missing, key))
    }

    /// What is to be fetched, with what follows it in its file.
    fn with_ahead<'a>(&mut self, missing: &'a Missing) -> Cow<'a, Missing> {
        let Some(ahead) = &mut self.ahead else { return Cow::Borrowed(missing) };
        let mut wanted = missing.clone();
        if self.guards.len() >= MISSES_BEFORE_AHEAD
            && let Some(last) = wanted.ranges.last_mut()
        {
            last.end = last.end.saturating_add(*ahead);
        }
        let bytes = wanted.ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        *ahead = ahead.saturating_add(bytes).min(AHEAD_BYTES);
        Cow::Owned(wanted)
    }

    fn keep(&mut self, key: u64, resident: Resident) {
        self.keeps_all |= self.given_up.contains(&key);
        self.guards.push_back((key, resident));
        if !self.keeps_all
            && self.guards.len() > KEPT
            && let Some((key, _)) = self.guards.pop_front()
        {
            self.given_up.insert(key);
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
