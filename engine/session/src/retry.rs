//! Decides which failed statements are retried: after a conflict, after running out of files, and
//! after a change of their tables since binding.

use crate::binding::Binding;
use crate::engine::Engine;
use nacre_sql::{NameResolution, Statement};
use nacre_types::{Error, ErrorKind, Reason};

/// Maximum retries of one autocommit statement after conflicts, and after catalog changes.
const CONFLICTS: u32 = 32;
/// Maximum retries of a statement after running out of files. The host provides more each time.
const SHORTAGES: u32 = 6;

/// Counts how often one statement ran out of files.
#[derive(Default)]
pub(crate) struct Shortages(u32);

impl Shortages {
    /// Whether to retry a statement that failed with `error` and changed nothing: it ran out of
    /// files, and the host can prepare more.
    pub fn should_retry(&mut self, error: &Error, engine: &Engine) -> bool {
        self.0 += 1;
        error.reason() == Some(Reason::NoFile)
            && self.0 <= SHORTAGES
            && engine.host().store.ran_short()
    }
}

/// Counts the conflicts of one autocommit statement.
#[derive(Default)]
pub(crate) struct Conflicts(u32);

impl Conflicts {
    /// Whether to retry an autocommit statement that failed with `error`.
    pub fn should_retry(&mut self, error: &Error) -> bool {
        let retry = error.kind() == ErrorKind::Conflict && self.0 < CONFLICTS;
        self.0 += u32::from(retry);
        retry
    }

    pub fn met(&self) -> bool {
        self.0 > 0
    }
}

/// Counts how often one statement was bound again.
pub(crate) struct Rebindings {
    left: u32,
    /// Whether the statement runs in an explicit transaction, whose snapshot does not change.
    in_open_transaction: bool,
}

impl Rebindings {
    pub fn new(in_open_transaction: bool) -> Rebindings {
        Rebindings { left: CONFLICTS, in_open_transaction }
    }

    /// Whether to bind a statement again that failed with `error`: a table was changed or dropped
    /// after binding, and another table may have its name.
    pub fn should_rebind(&mut self, error: &Error, binding: &Binding, engine: &Engine) -> bool {
        let stale = match error.kind() {
            ErrorKind::Conflict => !self.in_open_transaction,
            ErrorKind::NotFound => is_resolved_by_binding(binding.statement()),
            _ => false,
        };
        if !stale || self.left == 0 || engine.store().last_ddl() <= binding.bound_at() {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// Whether binding looks up the tables that a statement names.
fn is_resolved_by_binding(statement: &Statement) -> bool {
    match statement {
        Statement::Rows(_) => true,
        Statement::Catalog(statement) => statement.describe().names == NameResolution::WhenBound,
        // A COMMIT has ended the transaction even if it fails.
        Statement::Control(_) => false,
    }
}
