//! Repeats a part of a statement that met absent bytes.

use crate::boxed::Boxed;
use nacre_table::{Fetched, Transaction};
use nacre_types::{Error, Result};

/// Runs `work` until it misses nothing, each time from the same savepoint.
pub(super) async fn repeated<T>(
    transaction: &mut Transaction,
    mut work: impl FnMut(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut fetched = Fetched::default();
    let savepoint = transaction.savepoint();
    loop {
        match work(transaction) {
            Err(error) if error.missing().is_some() => {
                transaction.rollback_to(savepoint);
                fetch(transaction, &mut fetched, error).await?;
            }
            done => return done,
        }
    }
}

#[cold]
#[inline(never)]
fn fetch<'a>(
    transaction: &'a Transaction,
    fetched: &'a mut Fetched,
    error: Error,
) -> Boxed<'a, ()> {
    Box::pin(transaction.environment().fetch(fetched, error))
}
