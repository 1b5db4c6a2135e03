//! Reads of bytes that are not there.
//!
//! A store may hold a part of its files only. A read of the rest ends with
//! [`Error::not_resident`], which names the ranges. Whatever drives the reader has them fetched
//! with [`LocalStore::fetch`], keeps the guard, and calls the reader again.

use crate::{LocalStore, Parallelism, Resident};
use nacre_types::hash::{Set, hash_bytes, hash_u64};
use nacre_types::{Error, Missing, Result};
use std::collections::VecDeque;

/// Number of fetches that a unit of work keeps at first.
const KEPT: usize = 64;

/// What a unit of work has fetched. The newest fetches stay resident; once something is missed that
/// was fetched and given up, everything does, so the number of misses is finite.
#[derive(Default)]
pub struct Fetched {
    /// In the order of their fetches, with a hash of what was missed.
    guards: VecDeque<(u64, Resident)>,
    given_up: Set<u64>,
    keeps_all: bool,
}

impl Fetched {
    /// Fetches what a failed call missed; then it can be called again. Returns any other error, and
    /// one of bytes that are resident: the failed call has kept it instead of reading again.
    pub async fn resolve(&mut self, error: Error, store: &dyn LocalStore) -> Result<()> {
        let Some((missing, key)) = self.missing(&error) else { return Err(error) };
        let resident = store.fetch(std::slice::from_ref(missing)).await?;
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
        let Some(resident) = threads.wait(store.fetch(std::slice::from_ref(missing))) else {
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
