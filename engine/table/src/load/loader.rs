//! What all bulk loads of a store share.

use crate::catalog::registry::Catalog;
use crate::commit::commits::Commits;
use crate::options::StoreOptions;
use crate::segments::files::SegmentFiles;
use crate::transaction::manager::TransactionManager;
use std::sync::Arc;

/// See the module.
pub(crate) struct Loader {
    catalog: Arc<Catalog>,
    files: Arc<SegmentFiles>,
    transactions: Arc<TransactionManager>,
    options: Arc<StoreOptions>,
}

impl Loader {
    /// Loads of one store.
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

    /// The order of commits.
    pub fn commits(&self) -> &Commits {
        self.catalog.commits()
    }

    /// Where segments are written.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// What transactions share.
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
