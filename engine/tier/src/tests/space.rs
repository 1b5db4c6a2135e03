//! A disk that is full before its limit is reached.

use super::world::{Fault, Faulty, Small, bytes_of, host_of, local_names, name_of, options};
use nacre_host::memory::MemoryStore;
use nacre_host::{Error, Host, LocalFile, LocalStore, ReadRange, Reason, Result, number_of_file};
use std::sync::Arc;

/// Bytes of the disk: a fraction of those of all files.
const DISK_BYTES: u64 = 64 << 10;

/// A disk in memory.
#[derive(Clone)]
struct Disk(Arc<MemoryStore>);

struct DiskFile {
    disk: Disk,
    file: Arc<dyn LocalFile>,
}

impl Disk {
    fn host(files: &Arc<MemoryStore>) -> Host {
        Host { store: Arc::new(Disk(files.clone())), ..host_of(files.clone()) }
    }

    fn file(&self, file: Arc<dyn LocalFile>) -> Arc<dyn LocalFile> {
        Arc::new(DiskFile { disk: self.clone(), file })
    }

    fn used(&self) -> u64 {
        let names = self.0.list().unwrap();
        names.iter().map(|name| self.0.open(name).unwrap().len().unwrap()).sum()
    }
}

impl LocalStore for Disk {
    fn list(&self) -> Result<Vec<String>> {
        self.0.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        Ok(self.file(self.0.open(name)?))
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        Ok(self.file(self.0.create(name)?))
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }
}

impl LocalFile for DiskFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.file.read(ranges)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let grows = (offset + bytes.len() as u64).saturating_sub(self.file.len()?);
        if grows > 0 && self.disk.used() + grows > DISK_BYTES {
            return Err(Error::io("no space left").with_reason(Reason::NoSpace));
        }
        self.file.write(offset, bytes)
    }
    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

#[test]
fn what_is_uploaded_makes_space_for_writes_and_reads() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open_at(Disk::host(&files), &blobs, options()).unwrap();
    for number in 1..=60 {
        small.add(number).unwrap();
        small.upload();
    }
    for round in 0..2 {
        for number in (1..=60).rev() {
            assert_eq!(small.read(number).unwrap(), bytes_of(number), "round {round}");
        }
    }
    assert!(small.tier.0.blocks().filled() > 0, "what was read is kept");
    small.add(61).unwrap();
    small.upload();
    let records = small.records.clone();
    small.check(&records);
}

#[test]
fn what_is_not_uploaded_stays_when_the_disk_is_full() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open_at(Disk::host(&files), &blobs, options()).unwrap();
    small.add(1).unwrap();
    small.upload();
    blobs.fail(0, u64::MAX, Fault::Refused);
    let error = (2..).find_map(|number| small.add(number).err()).unwrap();
    assert_eq!(error.reason(), Some(Reason::NoSpace));
    assert!(!local_names(&files, "seg-").contains(&name_of(1)), "it has left for the others");
    for name in &small.named()[1..] {
        let number = number_of_file("seg-", name).unwrap();
        assert_eq!(small.read(number).unwrap(), bytes_of(number), "{name}");
    }
}

#[test]
fn blocks_that_were_read_ahead_leave_for_those_that_are_read() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open_at(Disk::host(&files), &blobs, options()).unwrap();
    for number in 1..=60 {
        small.add(number).unwrap();
        small.upload();
    }
    drop(small);
    // On another machine, whose disk has room for a fraction of what is read ahead.
    let disk = Disk::host(&Arc::new(MemoryStore::new()));
    let small = Small::open_at(disk, &blobs, options()).unwrap();
    let opened = (1..=60).map(|number| small.tier.open(&name_of(number)).unwrap());
    let opened: Vec<_> = opened.collect();
    let bytes = |file: &Arc<dyn LocalFile>| 0..file.len().unwrap();
    let guards: Vec<_> = opened.iter().map(|file| file.read_ahead(&[bytes(file)])).collect();
    for number in (1..=60).rev() {
        assert_eq!(small.read(number).unwrap(), bytes_of(number), "file {number}");
    }
    drop(guards);
    assert_eq!(small.read(1).unwrap(), bytes_of(1));
}
