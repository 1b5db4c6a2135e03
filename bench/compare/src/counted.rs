//! A blob store that counts what it is asked.

use nacredb::host::{Answer, BlobInfo, BlobStore, Tag, WriteIf};
use nacredb::{Blobs, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the requests that a blob store is asked, and the bytes that are read.
pub(crate) struct Counted {
    inner: Arc<dyn BlobStore>,
    pub requests: AtomicU64,
    pub bytes: AtomicU64,
}

impl Counted {
    /// Counts what is asked of a database's blobs from here on.
    pub fn over(blobs: &mut Blobs) -> Arc<Counted> {
        let (requests, bytes) = Default::default();
        let counted = Arc::new(Counted { inner: blobs.store.clone(), requests, bytes });
        blobs.store = counted.clone();
        counted
    }

    fn count(&self) -> &dyn BlobStore {
        self.requests.fetch_add(1, Ordering::Relaxed);
        &*self.inner
    }

    fn received(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl BlobStore for Counted {
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        self.inner.elsewhere(url)
    }

    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        Box::pin(async {
            let bytes = self.count().read(name, range).await?;
            self.received(bytes.len());
            Ok(bytes)
        })
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        Box::pin(async {
            let (bytes, tag) = self.count().read_all(name).await?;
            self.received(bytes.len());
            Ok((bytes, tag))
        })
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        self.count().write(name, bytes, when)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        self.count().list(prefix)
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.count().remove(name)
    }
}
