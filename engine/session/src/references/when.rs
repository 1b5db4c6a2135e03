//! At which moments foreign keys are checked.

/// When foreign keys are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At the end of a statement, those that are not deferred.
    Statement,
    /// At the end of a statement that is a transaction: all.
    Both,
    /// At the end of a transaction, those that are deferred.
    Commit,
}
