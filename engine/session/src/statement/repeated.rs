//! Repeats a part of a statement that met absent bytes.

use nacre_table::{Fetched, Transaction};
use nacre_types::Result;

/// Runs `work` until it misses nothing, each time from the same savepoint. Fails with the miss where
/// the host's threads cannot wait: the statement is then undone, and runs again as a whole.
pub(super) fn repeated<T>(
    transaction: &mut Transaction,
    mut work: impl FnMut(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut fetched = Fetched::default();
    let savepoint = transaction.savepoint();
    loop {
        match work(transaction) {
            Err(error) if error.missing().is_some() => {
                transaction.rollback_to(savepoint);
                transaction.environment().fetch_now(&mut fetched, error)?;
            }
            done => return done,
        }
    }
}
