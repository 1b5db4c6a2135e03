//! Group commit under `loom`: every interleaving of a few committers, on a disk that distinguishes
//! synced from unsynced bytes. Run with `cargo test -p nacre-log --features loom`; see
//! `docs/TESTING.md`.

use super::*;
use crate::sync::Ordering;
use loom::thread;
use nacre_host::LocalStore;
use nacre_host::{LocalFile, ReadRange};
use nacre_types::{Error, Result};
use std::sync::Arc;
use std::sync::Mutex as RealMutex;
use std::sync::atomic::{AtomicBool, AtomicU64 as RealU64};

/// A disk with a list of files. Only `loom` switches threads, so the disk's own locks never block.
#[derive(Default)]
struct Disk {
    files: RealMutex<Vec<(String, Arc<DiskFile>)>>,
    /// The next sync fails and loses the bytes that it should have made durable, as a real disk
    /// may.
    fail: Arc<AtomicBool>,
    /// Syncs so far.
    syncs: Arc<RealU64>,
}

#[derive(Default)]
struct DiskFile {
    written: RealMutex<Vec<u8>>,
    synced: RealMutex<Vec<u8>>,
    fail: Arc<AtomicBool>,
    syncs: Arc<RealU64>,
}

impl Disk {
    fn is_synced(&self, payload: &[u8]) -> bool {
        let files = self.files.lock().unwrap();
        files.iter().any(|(_, file)| {
            file.synced.lock().unwrap().windows(payload.len()).any(|w| w == payload)
        })
    }
}

impl LocalStore for Disk {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.files.lock().unwrap().iter().map(|(name, _)| name.clone()).collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        match self.files.lock().unwrap().iter().find(|(other, _)| other == name) {
            Some((_, file)) => Ok(file.clone()),
            None => Err(Error::not_found(name.to_string())),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let file = Arc::new(DiskFile {
            fail: self.fail.clone(),
            syncs: self.syncs.clone(),
            ..DiskFile::default()
        });
        self.files.lock().unwrap().push((name.to_string(), file.clone()));
        Ok(file)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files.lock().unwrap().retain(|(other, _)| other != name);
        Ok(())
    }
}

impl LocalFile for DiskFile {
    fn len(&self) -> Result<u64> {
        Ok(self.written.lock().unwrap().len() as u64)
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let written = self.written.lock().unwrap();
        for range in ranges {
            let start = range.offset as usize;
            range.buffer.copy_from_slice(&written[start..start + range.buffer.len()]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut written = self.written.lock().unwrap();
        let end = offset as usize + bytes.len();
        if written.len() < end {
            written.resize(end, 0);
        }
        written[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.written.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let covered = self.written.lock().unwrap().clone();
        // The sync does not cover later writes.
        thread::yield_now();
        if self.fail.swap(false, Ordering::Relaxed) {
            let synced = self.synced.lock().unwrap().clone();
            *self.written.lock().unwrap() = synced;
            return Err(Error::io("the disk"));
        }
        *self.synced.lock().unwrap() = covered;
        Ok(())
    }
}

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(body);
}

fn open(disk: &Arc<Disk>) -> Arc<Log> {
    let options = LogOptions { database_id: 7, ..LogOptions::default() };
    Arc::new(Log::open(disk.clone(), options, &mut |_| Ok(()), &mut |_, _| Ok(())).unwrap())
}

/// Appends and syncs a payload that is unique on the disk.
fn commit(log: &Log, disk: &Disk, number: u8) -> bool {
    let payload = [0xc0, number, 0xde, number];
    let done = log.append(&payload).and_then(|lsn| log.sync(lsn)).is_ok();
    assert!(!done || disk.is_synced(&payload), "a commit that is not durable was acknowledged");
    done
}

/// Three threads commit concurrently: each returns only when its own record is synced, all return,
/// and there are no more syncs than commits.
///
/// Planted: `durable` set before the sync (`Writer::sync`); all waiters marked as served, none
/// marked, none elected to lead (`Lead::drop`).
#[test]
fn a_commit_returns_when_its_bytes_are_synced() {
    model(|| {
        let disk = Arc::new(Disk::default());
        let log = open(&disk);
        let before = disk.syncs.load(Ordering::Relaxed);
        let others = [1, 2].map(|number| {
            let (log, disk) = (log.clone(), disk.clone());
            thread::spawn(move || commit(&log, &disk, number))
        });
        assert!(commit(&log, &disk, 3));
        others.into_iter().for_each(|other| assert!(other.join().unwrap()));
        assert!(disk.syncs.load(Ordering::Relaxed) - before <= 3);
    });
}

/// One sync fails: every acknowledged commit is durable, and no later commit is acknowledged,
/// although the next sync would succeed.
///
/// Planted: the failure is not kept (`Log::write_out`); `durable` set before the sync.
#[test]
fn one_failed_sync_poisons_the_log() {
    model(|| {
        let disk = Arc::new(Disk::default());
        let log = open(&disk);
        disk.fail.store(true, Ordering::Relaxed);
        let other = {
            let (log, disk) = (log.clone(), disk.clone());
            thread::spawn(move || commit(&log, &disk, 1))
        };
        let mine = commit(&log, &disk, 2);
        let other = other.join().unwrap();
        assert!(!mine && !other, "the first sync fails, and there is no other");
        assert!(!commit(&log, &disk, 3), "poisoned for good");
        assert!(log.sync(log.position()).is_err() && log.close().is_err());
    });
}
