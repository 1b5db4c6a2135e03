//! Foreign keys: what the change of a key does to the rows that refer to it, and what a statement or a
//! transaction may not leave.
//!
//! A statement first writes what it says. Then, round by round, rows that refer to keys which are gone follow
//! them, as their foreign keys say; each round looks at what the one before has written. In the end every new
//! value of a foreign key must have a row that it refers to, and no row may refer to a key that is gone.
//!
//! Both are looked up while the keys are locked ([`Transaction::lock_references`]), in what the transaction sees
//! and, if others have changed the table since, in the newest commit. Where the two differ, the transaction meets
//! a `conflict`.

mod cascade;
mod catalog;
mod check;
mod key;
mod when;

pub(crate) use catalog::{altered, created, drop_tables, is_concerned, truncated, verify};
pub(crate) use check::check_deferred;
pub(crate) use when::When;

use crate::boxed::Boxed;
use crate::execution::Execution;
use nacre_table::{Savepoint, Transaction};
use nacre_types::TableId;

/// Lets rows follow the keys that a statement has changed since a savepoint, and checks what it leaves. Returns
/// the tables that were written besides, some of them several times.
///
/// Errors: `constraint`; `conflict`; `lock_timeout` with a blocker.
pub(crate) fn enforce<'a>(
    transaction: &'a mut Transaction,
    start: Savepoint,
    when: When,
    execution: &'a Execution<'_>,
) -> Boxed<'a, Vec<TableId>> {
    Box::pin(async move {
        let (mut from, mut followed) = (start, Vec::new());
        while transaction.touches_references(from) {
            let round = from;
            from = transaction.savepoint();
            let tables = cascade::follow(transaction, round, execution).await?;
            if tables.is_empty() {
                break;
            }
            followed.extend(tables);
            execution.end_step().await?;
        }
        check::check(transaction, start, when, execution).await?;
        Ok(followed)
    })
}
