//! What every background task works with.

use crate::catalog::registry::Catalog;
use crate::commit::commits::Commits;
use crate::commit::snapshots::Snapshots;
use crate::options::StoreOptions;
use crate::segments::files::SegmentFiles;
use crate::segments::garbage::Garbage;
use std::sync::Arc;

/// See the module.
#[derive(Clone)]
pub(crate) struct TaskContext {
    catalog: Arc<Catalog>,
    files: Arc<SegmentFiles>,
    options: Arc<StoreOptions>,
}

impl TaskContext {
    /// Tasks of one store.
    pub fn new(
        catalog: Arc<Catalog>,
        files: Arc<SegmentFiles>,
        options: Arc<StoreOptions>,
    ) -> TaskContext {
        TaskContext { catalog, files, options }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The order of commits.
    pub fn commits(&self) -> &Commits {
        self.catalog.commits()
    }

    /// The snapshots in use.
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        self.commits().snapshots()
    }

    /// Where segments are written.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// Where dropped segments and files go.
    pub fn garbage(&self) -> &Garbage {
        self.catalog.garbage()
    }

    /// Settings.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }
}

/// What a step of a task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more to do.
    More,
    /// The task is committed, or there was nothing to do any more.
    Done,
}
