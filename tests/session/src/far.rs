//! Blobs that are far away, and databases whose files are only there.

use nacre_native::{NativeClock, block_on, memory_host};
use nacre_testing::MemoryBlobs;
use nacredb::host::{Answer, BlobInfo, BlobReads, BlobStore, Clock, Tag, WriteIf};
use nacredb::{Blobs, Database, Options, Result, TierOptions};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Blobs behind a network: each read takes a time, several at once as long as one.
pub struct Far {
    blobs: Arc<MemoryBlobs>,
    clock: Arc<NativeClock>,
    flying: AtomicU64,
    most: AtomicU64,
    at_reads: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

/// A read in progress, until it ends or is given up.
struct Flying<'a>(&'a Far);

impl Drop for Flying<'_> {
    fn drop(&mut self) {
        self.0.flying.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Far {
    /// Without blobs.
    pub fn new() -> Arc<Far> {
        let clock = Arc::new(NativeClock::new());
        let blobs = MemoryBlobs::new(clock.clone());
        let (flying, most) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Far { blobs, clock, flying, most, at_reads: Mutex::default() })
    }

    /// Sets a flag when a read begins.
    pub fn set_by_next_read(&self, flag: Arc<AtomicBool>) {
        let mut flag = Some(flag);
        self.at_each_read(move || {
            if let Some(flag) = flag.take() {
                flag.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Runs something when a read begins, in the place of what ran before.
    pub fn at_each_read(&self, run: impl FnMut() + Send + 'static) {
        *self.at_reads.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(run));
    }

    /// The most reads that were in progress at a time.
    pub fn most_at_once(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

impl BlobStore for Far {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            if let Some(run) = &mut *self.at_reads.lock().unwrap_or_else(PoisonError::into_inner) {
                run();
            }
            let flying = self.flying.fetch_add(1, Ordering::Relaxed) + 1;
            let _flying = Flying(self);
            self.most.fetch_max(flying, Ordering::Relaxed);
            self.clock.sleep_until(self.clock.monotonic_ns() + 3_000_000).await;
            self.blobs.read(name, range).await
        })
    }
    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        self.blobs.read_all(name)
    }
    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        self.blobs.write(name, bytes, when)
    }
    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        self.blobs.list(prefix)
    }
    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.blobs.remove(name)
    }
}

/// Options of a database over these blobs.
pub fn far_options(far: &Arc<Far>, segment_rows: usize) -> Options {
    let tiers = TierOptions { lag: Duration::ZERO, warms: false, ..TierOptions::default() };
    let blobs = Some(Blobs { options: tiers, ..Blobs::new(far.clone()) });
    Options { segment_rows, blobs, ..Options::default() }
}

/// Uploads a database that is filled by `fill`.
pub fn upload(
    segment_rows: usize,
    fill: impl FnOnce(&mut nacredb::Session) -> Result<()>,
) -> Result<Arc<Far>> {
    let far = Far::new();
    let host = nacre_testing::without_background(memory_host());
    let db = block_on(Database::open(host, far_options(&far, segment_rows)))?;
    fill(&mut db.session())?;
    block_on(db.close())?;
    Ok(far)
}

/// A database whose files are all blobs, to be read.
pub fn cold(far: &Arc<Far>, segment_rows: usize) -> Result<Database> {
    let options = Options { read_only: true, ..far_options(far, segment_rows) };
    block_on(Database::open(memory_host(), options))
}

/// What something reads of blobs.
pub fn blob_reads(db: &Database, work: impl FnOnce()) -> BlobReads {
    let before = db.blob_reads().unwrap_or_default();
    work();
    let after = db.blob_reads().unwrap_or_default();
    BlobReads {
        requests: after.requests - before.requests,
        bytes: after.bytes - before.bytes,
        bytes_ahead: after.bytes_ahead - before.bytes_ahead,
        bytes_warmed: after.bytes_warmed - before.bytes_warmed,
        waits: after.waits - before.waits,
        hits: after.hits - before.hits,
    }
}
