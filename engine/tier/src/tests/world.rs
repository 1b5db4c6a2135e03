//! A small database over the tiers: records that name files, and a snapshot of all records. And a blob store
//! of which single calls fail.

use crate::{Tier, TierOptions};
use core::time::Duration;
use nacre_host::fetched::Fetched;
use nacre_host::memory::MemoryStore;
use nacre_host::{
    Answer, BlobInfo, BlobStore, Clock, Entropy, Error, ErrorKind, Host, LocalFile, LocalStore,
    ReadRange, Rest, Result, Tag, Uploads, WriteIf,
};
use nacre_log::{Log, LogOptions, LogReader};
use nacre_testing::{Fixed, MemoryBlobs, host};
use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Randomness that differs between all hosts of a test.
struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        nacre_types::hash::hash_u64(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A host on these files.
pub fn host_of(local: Arc<MemoryStore>) -> Host {
    Host { entropy: Arc::new(Counting), ..host(local) }
}

/// A clock that a test sets, in microseconds; a sleep ends at once, and takes its time.
#[derive(Default)]
pub struct Hands {
    us: AtomicU64,
    /// While the machine slept, which only the wall clock counts.
    slept_us: AtomicU64,
}

impl Hands {
    pub fn pass(&self, time: Duration) {
        self.us.fetch_add(time.as_micros() as u64 + 1, Ordering::Relaxed);
    }

    /// Lets the machine sleep.
    pub fn sleep(&self, time: Duration) {
        self.slept_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn monotonic_ns(&self) -> u64 {
        self.us.load(Ordering::Relaxed) * 1_000
    }
    fn wall_us(&self) -> i64 {
        let us = self.us.load(Ordering::Relaxed) + self.slept_us.load(Ordering::Relaxed);
        1_700_000_000_000_000 + us as i64
    }
    fn sleep_until(&self, ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.us.fetch_max(ns / 1_000 + 1, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

/// A host with an empty disk and this clock.
pub fn host_at(clock: &Arc<Hands>) -> Host {
    Host { clock: clock.clone(), ..host_of(Arc::new(MemoryStore::new())) }
}

/// Reads a file of a store whole, with what it must fetch.
pub fn read_whole(tier: &Tier, number: u64) -> Result<Vec<u8>> {
    let file = tier.open(&name_of(number))?;
    let mut bytes = vec![0; file.len()? as usize];
    let mut fetched = Fetched::default();
    loop {
        match file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]) {
            Err(error) => wait(fetched.resolve(error, tier))?,
            Ok(()) => return Ok(bytes),
        }
    }
}

/// Runs a future by asking again and again.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not made.
    Refused,
    /// It takes effect, and its answer is lost.
    Lost,
    /// It waits for ever.
    Stuck,
}

/// The name and the bytes of a write that takes effect later.
type LateWrite = (String, Arc<[u8]>);

/// The start of a name, and what happens before it is written.
type Before = (&'static str, Box<dyn FnOnce() + Send>);

/// Blobs in memory; the calls from a number on fail, for some time.
pub struct Faulty {
    pub blobs: Arc<MemoryBlobs>,
    calls: AtomicU64,
    fault: Mutex<Option<(Range<u64>, Fault)>>,
    /// Other stores, by their URLs.
    others: Mutex<Vec<(&'static str, Arc<Faulty>)>>,
    /// What begins so cannot be written.
    refused: Mutex<Option<&'static str>>,
    /// Writes that take effect later, if they are delayed.
    late: Mutex<Option<Vec<LateWrite>>>,
    /// What happens before the next write of a name that begins so.
    before: Mutex<Option<Before>>,
}

impl Faulty {
    pub fn new() -> Arc<Faulty> {
        Arc::new(Faulty {
            blobs: MemoryBlobs::new(Arc::new(Fixed::default())),
            calls: AtomicU64::new(0),
            fault: Mutex::default(),
            others: Mutex::default(),
            refused: Mutex::default(),
            late: Mutex::default(),
            before: Mutex::default(),
        })
    }

    /// Lets the next calls pass, and then some fail.
    pub fn fail(&self, after: u64, count: u64, fault: Fault) {
        let from = self.calls.load(Ordering::Relaxed) + after;
        *self.fault.lock().unwrap() = Some((from..from.saturating_add(count), fault));
    }

    /// Lets another store be reached by a URL.
    pub fn reach(&self, url: &'static str, other: &Arc<Faulty>) {
        self.others.lock().unwrap().push((url, other.clone()));
    }

    /// Lets nothing be written whose name begins so.
    pub fn refuse(&self, start: &'static str) {
        *self.refused.lock().unwrap() = Some(start);
    }

    /// Lets everything be written again.
    pub fn allow(&self) {
        *self.refused.lock().unwrap() = None;
    }

    /// Lets writes fail as if the blob store was away, and take effect when [`Faulty::take_effect`] is called.
    pub fn delay(&self) {
        *self.late.lock().unwrap() = Some(Vec::new());
    }

    /// Ends the delay.
    pub fn take_effect(&self) {
        for (name, bytes) in self.late.lock().unwrap().take().unwrap() {
            wait(self.blobs.write(&name, bytes, WriteIf::Any)).unwrap();
        }
    }

    /// Does something before the next write of a name that begins so.
    pub fn before_write(&self, start: &'static str, act: impl FnOnce() + Send + 'static) {
        *self.before.lock().unwrap() = Some((start, Box::new(act)));
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn call<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let fault = self.fault.lock().unwrap().clone();
        let fault = fault.filter(|(calls, _)| calls.contains(&number)).map(|(_, fault)| fault);
        Box::pin(async move {
            let away = || Error::new(ErrorKind::Unavailable, "the blob store is away");
            match fault {
                None => call.await,
                Some(Fault::Refused) => Err(away()),
                Some(Fault::Lost) => call.await.and_then(|_| Err(away())),
                Some(Fault::Stuck) => std::future::pending().await,
            }
        })
    }
}

impl BlobStore for Faulty {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        self.call(self.blobs.read(name, range))
    }
    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        self.call(self.blobs.read_all(name))
    }
    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let before = self.before.lock().unwrap().take_if(|(start, _)| name.starts_with(*start));
        if let Some((_, act)) = before {
            act();
        }
        let refused = *self.refused.lock().unwrap();
        if refused.is_some_and(|start| name.starts_with(start)) {
            return self.call(Box::pin(async { Err(Error::io("no right to write")) }));
        }
        if let Some(late) = &mut *self.late.lock().unwrap() {
            late.push((name.to_string(), bytes));
            let away = Error::new(ErrorKind::Unavailable, "the blob store is away");
            return self.call(Box::pin(std::future::ready(Err(away))));
        }
        self.call(self.blobs.write(name, bytes, when))
    }
    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        self.call(self.blobs.list(prefix))
    }
    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.call(self.blobs.remove(name))
    }
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        let others = self.others.lock().unwrap();
        let other = others.iter().find(|(known, _)| *known == url);
        let other = other.ok_or_else(|| Error::unsupported(url))?;
        Ok(other.1.clone())
    }
}

/// Settings of the tests: no lag, small blocks, an hour of retention.
pub fn options() -> TierOptions {
    TierOptions {
        lag: Duration::ZERO,
        block_bytes: 512,
        patience: Duration::from_secs(30),
        retention: Duration::from_secs(3600),
        history: Duration::from_secs(3600),
        ..TierOptions::default()
    }
}

/// A database over the tiers.
pub struct Small {
    pub tier: Arc<Tier>,
    pub log: Log,
    /// Records that it has, each naming a file, or the removal of one.
    pub records: Vec<String>,
}

/// The bytes of the file with a number.
pub fn bytes_of(number: u64) -> Vec<u8> {
    (0..3_000 + number * 100).map(|at| (at * 7 + number * 31 + at / 256) as u8).collect()
}

pub fn name_of(number: u64) -> String {
    nacre_host::numbered_file_name("seg-", number)
}

impl Small {
    /// Opens it over local files and blobs.
    pub fn open(
        local: &Arc<MemoryStore>,
        blobs: &Arc<Faulty>,
        options: TierOptions,
    ) -> Result<Small> {
        Small::open_at(host_of(local.clone()), blobs, options)
    }

    /// Opens it on a host.
    pub fn open_at(host: Host, blobs: &Arc<Faulty>, options: TierOptions) -> Result<Small> {
        Small::over(wait(Tier::open(&host, blobs.clone(), options))?, &host)
    }

    /// Opens one that is only read, with the records of its log.
    pub fn records_of(tier: &Arc<Tier>) -> Result<Vec<String>> {
        let records = RefCell::new(Vec::new());
        let lines = |payload: &[u8]| {
            let text = String::from_utf8(payload.to_vec()).unwrap();
            records.borrow_mut().extend(text.lines().map(String::from));
            Ok(())
        };
        let mut reader = LogReader::beside(tier.clone(), &mut |payload| lines(payload))?;
        while let Some((_, payload)) = reader.next()? {
            lines(payload)?;
        }
        Ok(records.into_inner())
    }

    fn over(tier: Arc<Tier>, host: &Host) -> Result<Small> {
        let records = RefCell::new(Vec::new());
        let options = LogOptions {
            chunk_bytes: 400,
            database_id: host.entropy.next_u64(),
            ..LogOptions::default()
        };
        let log = Log::open(
            tier.clone(),
            options,
            &mut |payload| {
                let text = String::from_utf8(payload.to_vec()).unwrap();
                records.borrow_mut().extend(text.lines().map(String::from));
                Ok(())
            },
            &mut |_, payload| {
                records.borrow_mut().push(String::from_utf8(payload.to_vec()).unwrap());
                Ok(())
            },
        )?;
        let small = Small { tier, log, records: records.into_inner() };
        let named = small.named();
        for name in small.tier.list()?.iter().filter(|name| name.starts_with("seg-")) {
            if !named.contains(name) {
                small.tier.remove(name)?;
            }
        }
        Ok(small)
    }

    /// The files that its records name.
    pub fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = Vec::new();
        for record in &self.records {
            match record.strip_prefix("-") {
                Some(gone) => named.retain(|name| name != gone),
                None => named.push(record.clone()),
            }
        }
        named
    }

    fn commit(&mut self, record: String) -> Result<()> {
        let end = self.log.append(record.as_bytes())?;
        self.records.push(record);
        self.log.sync(end)
    }

    /// Commits a new file.
    pub fn add(&mut self, number: u64) -> Result<()> {
        let name = name_of(number);
        let file = self.tier.create(&name)?;
        let bytes = bytes_of(number);
        file.write(0, &bytes[..1_000])?;
        file.write(1_000, &bytes[1_000..])?;
        file.sync()?;
        self.tier.note_named(&name);
        self.commit(name)
    }

    /// Commits the removal of a file.
    pub fn drop(&mut self, number: u64) -> Result<()> {
        self.commit(format!("-{}", name_of(number)))?;
        self.tier.remove(&name_of(number))
    }

    /// Replaces the log by a snapshot.
    pub fn snapshot(&mut self) -> Result<()> {
        self.log.write_snapshot(self.log.position(), self.records.join("\n").as_bytes())
    }

    /// Takes steps until there is nothing to do for now. Returns how many did something.
    pub fn upload(&self) -> usize {
        let mut steps = 0;
        while wait(self.tier.step()).unwrap() == Rest::No {
            steps += 1;
            assert!(steps < 1_000, "uploads do not end");
        }
        steps
    }

    /// Reads a file whole, with what it must fetch.
    pub fn read(&self, number: u64) -> Result<Vec<u8>> {
        read_whole(&self.tier, number)
    }

    /// Compares it with the records that it must have.
    pub fn check(&self, records: &[String]) {
        assert_eq!(self.records, records);
        for name in self.named() {
            let number = nacre_host::number_of_file("seg-", &name).unwrap();
            assert_eq!(self.read(number).unwrap(), bytes_of(number), "{name}");
        }
    }
}

/// The names of local files of a kind.
pub fn local_names(local: &MemoryStore, kind: &str) -> Vec<String> {
    let mut names = local.list().unwrap();
    names.retain(|name| name.starts_with(kind));
    names
}

/// A future that is dropped after some polls.
pub fn poll_some<T>(future: Pin<Box<dyn Future<Output = T> + '_>>, polls: usize) -> Option<T> {
    let mut future = future;
    for _ in 0..polls {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(done);
        }
    }
    None
}

/// A local file's bytes.
pub fn local_bytes(file: &dyn LocalFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    bytes
}
