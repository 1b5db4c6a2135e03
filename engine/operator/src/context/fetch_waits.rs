//! Waits for absent bytes in the middle of work that would otherwise have to begin again.

use nacre_table::{Environment, Fetched};
use nacre_types::Result;

/// Fetches what calls miss, where the host's threads can wait; elsewhere the calls fail.
pub struct FetchWaits<'a> {
    environment: &'a Environment,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    fetched: Fetched,
}

impl<'a> FetchWaits<'a> {
    /// Nothing fetched.
    pub fn new(
        environment: &'a Environment,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> FetchWaits<'a> {
        FetchWaits { environment, cancelled, fetched: Fetched::default() }
    }

    /// Repeats a call until it misses nothing. What it had fetched may be evicted afterwards.
    pub fn call<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match call() {
                Err(error) => {
                    self.environment.fetch_now(&mut self.fetched, error, self.cancelled)?;
                }
                Ok(done) => {
                    self.fetched.release();
                    return Ok(done);
                }
            }
        }
    }
}
