//! The files as another process on the same machine sees them: everything written, durable or not.
//! It may only read them. Its calls take no time, meet no faults and leave no trace, and it reads a
//! removed file as long as it has the file open.

use crate::disk::Disk;
use nacredb::host::{LocalFile, LocalStore, ReadRange};
use nacredb::{Error, Result};
use std::sync::Arc;

/// The files of a disk for a reader beside the process that writes them.
pub struct Beside(pub Disk);

struct OpenFile {
    disk: Disk,
    inode: usize,
}

impl LocalStore for Beside {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.0.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let inode = self.0.state().names.get(name).copied();
        let inode = inode.ok_or_else(|| Error::not_found(format!("file {name} does not exist")))?;
        Ok(Arc::new(OpenFile { disk: self.0.clone(), inode }))
    }

    fn create(&self, _: &str) -> Result<Arc<dyn LocalFile>> {
        Err(Error::read_only())
    }

    fn remove(&self, _: &str) -> Result<()> {
        Err(Error::read_only())
    }
}

impl LocalFile for OpenFile {
    fn len(&self) -> Result<u64> {
        Ok(self.disk.state().inodes[self.inode].current.len() as u64)
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let state = self.disk.state();
        let bytes = &state.inodes[self.inode].current;
        for range in ranges {
            let from = range.offset as usize;
            match bytes.get(from..from + range.buffer.len()) {
                Some(found) => range.buffer.copy_from_slice(found),
                None => return Err(Error::corrupt("the file ends early")),
            }
        }
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::read_only())
    }

    fn truncate(&self, _: u64) -> Result<()> {
        Err(Error::read_only())
    }

    fn sync(&self) -> Result<()> {
        Err(Error::read_only())
    }
}
