//! Which failed statements are run again: those that met a conflict, those that ran out of files, and those whose
//! tables changed after they were bound.

use crate::binding::Binding;
use crate::engine::Engine;
use nacre_sql::{NameResolution, Statement};
use nacre_types::{Error, ErrorKind};

/// Conflicts of one autocommit statement, and changes of the catalog, after each of which it is run again.
const CONFLICTS: u32 = 32;
/// Shortages of files after each of which a statement is run again. The host provides more each time.
const SHORTAGES: u32 = 6;

/// Counts the shortages of files that one statement met.
#[derive(Default)]
pub(crate) struct Shortages(u32);

impl Shortages {
    /// Whether to run a statement again that failed with `error` and changed nothing: it ran out of files, and the
    /// host will provide more when asked to prepare them.
    pub fn should_retry(&mut self, error: &Error, engine: &Engine) -> bool {
        self.0 += 1;
        error.kind() == ErrorKind::Limit && self.0 <= SHORTAGES && engine.host().store.ran_short()
    }
}

/// Counts the conflicts that one autocommit statement met.
#[derive(Default)]
pub(crate) struct Conflicts(u32);

impl Conflicts {
    /// Whether to run a statement again, in a transaction of its own, that failed with `error`.
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
    /// Whether the statement belongs to a transaction that was open before. Its snapshot does not change.
    in_open_transaction: bool,
}

impl Rebindings {
    pub fn new(in_open_transaction: bool) -> Rebindings {
        Rebindings { left: CONFLICTS, in_open_transaction }
    }

    /// Whether to bind a statement again that failed with `error`: a table changed, or went, after it was bound, and
    /// another may have its name.
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

/// Whether binding looked up the tables that a statement mentions.
fn is_resolved_by_binding(statement: &Statement) -> bool {
    match statement {
        Statement::Rows(_) => true,
        Statement::Catalog(statement) => statement.describe().names == NameResolution::WhenBound,
        // A COMMIT has ended the transaction even when it fails.
        Statement::Control(_) => false,
    }
}
