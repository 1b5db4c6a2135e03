//! Repeats a part of a statement that met absent bytes.

use crate::boxed::Boxed;
use crate::execution::Execution;
use nacre_table::{Fetched, Transaction};
use nacre_types::{Error, Result};

/// Runs `work` until it misses nothing, each time from the same savepoint.
pub(crate) async fn repeated<T>(
    transaction: &mut Transaction,
    execution: &Execution<'_>,
    mut work: impl FnMut(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut fetched = Fetched::default();
    let savepoint = transaction.savepoint();
    loop {
        match work(transaction) {
            Err(error) if error.missing().is_some() => {
                transaction.rollback_to(savepoint);
                fetch(execution, &mut fetched, error).await?;
            }
            done => return done,
        }
    }
}

#[cold]
#[inline(never)]
fn fetch<'a>(
    execution: &'a Execution<'_>,
    fetched: &'a mut Fetched,
    error: Error,
) -> Boxed<'a, ()> {
    Box::pin(execution.fetch(fetched, error))
}
