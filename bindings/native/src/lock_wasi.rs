//! WASI has no locks: a host must give a folder to one module at a time.

use nacre_host::Result;
use std::path::Path;

/// A folder that is only used by this process, as far as its host keeps to that.
pub(crate) struct FolderLock;

impl FolderLock {
    pub(crate) fn take(_folder: &Path) -> Result<FolderLock> {
        Ok(FolderLock)
    }
}
