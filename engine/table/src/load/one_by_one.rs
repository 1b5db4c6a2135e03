//! Loads that insert row by row through a transaction: with several unique keys, each row may
//! conflict with any earlier one.

use crate::load::loaded::OnDuplicate;
use crate::load::loader::Loader;
use crate::load::unique::claimed_by_another;
use crate::table::version::Table;
use crate::transaction::handle::Transaction;
use nacre_column::Batch;
use nacre_types::{ErrorKind, Reason, Result, invariant};
use std::sync::Arc;

/// Loads rows in order through one transaction, each as if inserted alone. As durable as any load.
/// Returns how many rows were added or replaced.
pub(super) fn load(
    loader: &Loader,
    table: &Arc<Table>,
    on_duplicate: OnDuplicate,
    batches: &[Batch],
) -> Result<u64> {
    invariant!(on_duplicate != OnDuplicate::Error, "a load that may not skip goes row by row");
    let mut transaction = Transaction::begin(loader.transactions())?;
    // This version of the table cannot read rows written by a newer one.
    table.check_newest()?;
    let mut loaded = 0;
    for batch in batches {
        debug_assert!(batch.selection.is_none(), "a batch to be loaded is not compact");
        for row in 0..batch.rows {
            let values = batch.row(row);
            let savepoint = transaction.savepoint();
            let gone = match on_duplicate {
                OnDuplicate::Replace => transaction.delete_conflicting(table, &values).map(drop),
                _ => Ok(()),
            };
            match gone.and_then(|()| transaction.insert_row(table, &values)) {
                Ok(()) => loaded += 1,
                Err(error)
                    if on_duplicate == OnDuplicate::Skip
                        && error.reason() == Some(Reason::DuplicateKey) =>
                {
                    transaction.rollback_to(savepoint);
                }
                Err(error) if error.kind() == ErrorKind::LockTimeout => {
                    return Err(claimed_by_another(table));
                }
                Err(error) => return Err(error),
            }
        }
    }
    // Rows may have been skipped in favour of rows whose commit the log rejected.
    loader.commits().log().check_usable()?;
    if loaded == 0 {
        // Rows were skipped in favour of existing ones, which must be as durable as loaded rows.
        loader.commits().sync_log()?;
    } else {
        debug_assert!(transaction.has_writes(), "{loaded} rows are loaded and none is written");
        transaction.commit_strictly()?;
    }
    Ok(loaded)
}
