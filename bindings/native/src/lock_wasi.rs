//! WASI has no locks: whoever runs a module gives its folder to one at a time.

use nacre_host::Result;
use std::path::Path;

/// A folder that is only used by this process, as far as its host keeps to that.
pub(crate) struct FolderLock;

impl FolderLock {
    pub(crate) fn take(_folder: &Path) -> Result<FolderLock> {
        Ok(FolderLock)
    }
}
