//! Shared state of all transactions.

use crate::catalog::registry::Catalog;
use crate::commit::commits::Commits;
use crate::environment::Environment;
use crate::transaction::moves::Moves;
use nacre_rowstore::Owner;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared state of all transactions of a store.
pub(crate) struct TransactionManager {
    catalog: Arc<Catalog>,
    commits: Arc<Commits>,
    environment: Arc<Environment>,
    moves: Moves,
    next_owner: AtomicU64,
}

impl TransactionManager {
    /// Creates the manager. `move_bytes` is the approximate size of a record of moves.
    pub fn new(
        catalog: Arc<Catalog>,
        environment: Arc<Environment>,
        move_bytes: usize,
    ) -> TransactionManager {
        let commits = catalog.commits().clone();
        let moves = Moves::new(commits.clone(), move_bytes);
        TransactionManager { catalog, commits, environment, moves, next_owner: AtomicU64::new(1) }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The commit pipeline.
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    /// Host services for statement execution.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The queue of moves.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Creates an owner of row locks, or a waiter for them.
    pub fn new_owner(&self) -> Arc<Owner> {
        Owner::new(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }
}
