//! The counter of a table's identity column. All versions of a table share it.
//!
//! It only grows, and it grows before a row with its value is written. The record of a commit that
//! wrote rows says how far it had come, and so does a snapshot: no value that was committed comes
//! again, whatever became of its row. Values of transactions that did not commit are gaps.

use nacre_types::{Error, Result};
use std::sync::atomic::{AtomicI64, Ordering};

/// The first value.
const FIRST: i64 = 1;

/// Gives out ascending integers.
pub(crate) struct Counter {
    next: AtomicI64,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { next: AtomicI64::new(FIRST) }
    }
}

impl Counter {
    /// The value that is given out next.
    pub fn next(&self) -> i64 {
        let next = self.next.load(Ordering::Acquire);
        debug_assert!(next >= FIRST, "a counter gives {next} next");
        next
    }

    /// Takes `count` values and returns the first; the others follow it.
    ///
    /// # Errors
    /// `limit` if fewer are left.
    pub fn take(&self, count: usize) -> Result<i64> {
        let after = |next: i64| i64::try_from(count).ok().and_then(|count| next.checked_add(count));
        debug_assert!(count > 0, "no value of a counter is taken");
        match self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, after) {
            Ok(first) => {
                debug_assert!(self.next() > first, "the counter stays at {first}");
                Ok(first)
            }
            Err(next) => Err(Error::limit(format!(
                "{count} values from {next} on exceed the counter of the table"
            ))
            .with_sqlstate("2200H")),
        }
    }

    /// Gives out no value below this one from now on.
    pub fn start_at(&self, least: i64) {
        self.next.fetch_max(least, Ordering::AcqRel);
        debug_assert!(self.next() >= least, "a counter that starts at {least} is below it");
    }

    /// Notes that a row has this value. Nothing follows the greatest one.
    pub fn saw(&self, value: i64) {
        self.start_at(value.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::ErrorKind;

    #[test]
    fn values_ascend_and_never_wrap() {
        let counter = Counter::default();
        assert_eq!(counter.take(1).unwrap(), 1);
        assert_eq!(counter.take(3).unwrap(), 2);
        counter.saw(4);
        assert_eq!(counter.take(1).unwrap(), 5);
        counter.saw(-10);
        counter.start_at(3);
        assert_eq!(counter.next(), 6);
        counter.saw(i64::MAX - 2);
        assert_eq!(counter.take(1).unwrap(), i64::MAX - 1);
        assert_eq!(counter.take(1).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(counter.next(), i64::MAX);
        counter.saw(i64::MAX);
        assert_eq!(counter.take(1).unwrap_err().kind(), ErrorKind::Limit);
    }
}
