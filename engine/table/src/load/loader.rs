//! Shared state of all bulk loads of a store.

use crate::catalog::registry::Catalog;
use crate::commit::commits::Commits;
use crate::options::StoreOptions;
use crate::segments::files::SegmentFiles;
use crate::transaction::manager::TransactionManager;
use std::sync::Arc;

/// Shared state of all bulk loads of a store.
pub(crate) struct Loader {
    catalog: Arc<Catalog>,
    files: Arc<SegmentFiles>,
    transactions: Arc<TransactionManager>,
    options: Arc<StoreOptions>,
}

impl Loader {
    /// Creates the loader of a store.
    pub fn new(
        catalog: Arc<Catalog>,
        files: Arc<SegmentFiles>,
        transactions: Arc<TransactionManager>,
        options: Arc<StoreOptions>,
    ) -> Loader {
        Loader { catalog, files, transactions, options }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The commit pipeline.
    pub fn commits(&self) -> &Commits {
        self.catalog.commits()
    }

    /// The segment files.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// State shared with transactions.
    pub fn transactions(&self) -> &Arc<TransactionManager> {
        &self.transactions
    }

    /// Settings.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Whether this many rows of this many bytes make a segment.
    pub fn is_full(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.options.segment_rows || rows > 0 && bytes >= self.options.segment_bytes
    }
}
