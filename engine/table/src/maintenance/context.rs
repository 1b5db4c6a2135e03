//! Shared state of all background tasks.

use crate::catalog::registry::Catalog;
use crate::commit::commits::Commits;
use crate::commit::snapshots::Snapshots;
use crate::options::StoreOptions;
use crate::segments::files::SegmentFiles;
use crate::segments::garbage::Garbage;
use std::sync::Arc;

/// Shared state of the background tasks of one store.
#[derive(Clone)]
pub(crate) struct TaskContext {
    catalog: Arc<Catalog>,
    files: Arc<SegmentFiles>,
    options: Arc<StoreOptions>,
}

impl TaskContext {
    /// Creates the context of a store's tasks.
    pub fn new(
        catalog: Arc<Catalog>,
        files: Arc<SegmentFiles>,
        options: Arc<StoreOptions>,
    ) -> TaskContext {
        debug_assert!(options.segment_rows > 0, "segments that take no rows");
        TaskContext { catalog, files, options }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The commit pipeline.
    pub fn commits(&self) -> &Commits {
        self.catalog.commits()
    }

    /// The snapshots in use.
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        self.commits().snapshots()
    }

    /// The segment files.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// Collects dropped segments and files for removal.
    pub fn garbage(&self) -> &Garbage {
        self.catalog.garbage()
    }

    /// Settings.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more to do.
    More,
    /// The task is committed, or is no longer needed.
    Done,
}
