//! Files in memory: the local store of `memory://`. Nothing survives the process.

use crate::{Error, LocalFile, LocalStore, ReadRange, Result, check_file_name};
use nacre_types::sorted::SortedMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A store whose files live as long as it does.
#[derive(Default)]
pub struct MemoryStore {
    files: Mutex<SortedMap<String, Arc<MemoryFile>>>,
}

#[derive(Default)]
struct MemoryFile(RwLock<Vec<u8>>);

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn files(&self) -> MutexGuard<'_, SortedMap<String, Arc<MemoryFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalStore for MemoryStore {
    fn is_in_memory(&self) -> bool {
        true
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        match self.files().get(name) {
            Some(file) => Ok(file.clone()),
            None => Err(Error::not_found(format!("file {name} does not exist"))),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(Error::already_exists(format!("file {name} already exists")));
        }
        let file = Arc::new(MemoryFile::default());
        files.insert(name.to_string(), file.clone());
        Ok(file)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_file_name(name)?;
        match self.files().remove(name) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(format!("file {name} does not exist"))),
        }
    }
}

impl LocalFile for MemoryFile {
    fn len(&self) -> Result<u64> {
        Ok(self.0.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for range in ranges {
            let start = usize::try_from(range.offset).ok();
            let end = start.and_then(|s| s.checked_add(range.buffer.len()));
            match start.zip(end).and_then(|(s, e)| bytes.get(s..e)) {
                Some(source) => range.buffer.copy_from_slice(source),
                None => {
                    return Err(Error::corrupt(format!(
                        "read past the end at byte {}",
                        range.offset
                    )));
                }
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut file = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).map_err(|_| too_large(offset))?;
        let end = start
            .checked_add(bytes.len())
            .ok_or_else(|| too_large(offset.saturating_add(bytes.len() as u64)))?;
        if file.len() < end {
            file.resize(end, 0);
        }
        file[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let len = usize::try_from(len).map_err(|_| too_large(len))?;
        self.0.write().unwrap_or_else(PoisonError::into_inner).resize(len, 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// The error for a file of this length.
fn too_large(len: u64) -> Error {
    Error::limit(format!(
        "a file of {len} bytes is longer than memory, which has {} at most",
        usize::MAX
    ))
}

#[cfg(test)]
mod tests {
    use super::MemoryStore;
    use crate::LocalStore;
    use nacre_types::ErrorKind;

    #[test]
    fn a_file_longer_than_memory_is_refused() {
        let file = MemoryStore::new().create("f").unwrap();
        let error = file.write(u64::MAX, b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().contains("18446744073709551615 bytes"), "{error}");
        assert_eq!(file.len().unwrap(), 0);
    }
}
