//! A store that holds a part of its files only: pages are absent until they are fetched, and may be
//! absent again once no guard holds them. A file that was written here is there completely until the log
//! may name it and it has been "uploaded", which happens between statements.

use crate::random::Random;
use nacre_host::{Error, Fetch, LocalFile, LocalStore, Missing, ReadRange, Resident, Result};
use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Bytes that are fetched and evicted together. Small, so that one block has several.
const PAGE_BYTES: u64 = 512;

/// How likely pages are absent.
#[derive(Clone, Copy)]
struct Chances {
    /// In a hundred pages that are read first, those that are absent.
    absent: u64,
    /// In a hundred reads, those before which everything is evicted that no guard holds.
    evicts: u64,
}

/// A store over another. Everything is there until [`Absent::deny`].
pub struct Absent {
    files: Arc<dyn LocalStore>,
    shared: Arc<Shared>,
}

struct Shared {
    may_lack: fn(&str) -> bool,
    state: Mutex<State>,
}

struct State {
    random: Random,
    chances: Option<Chances>,
    /// The resident pages, by file and number, with their guards.
    pages: HashMap<(Arc<str>, u64), usize>,
    misses: u64,
    /// Files that were created here and are there completely, and whether the log may name them.
    local: HashMap<Arc<str>, bool>,
    /// Bytes of the files of which a read missed some.
    lens: HashMap<Arc<str>, u64>,
}

struct AbsentFile {
    name: Arc<str>,
    file: Arc<dyn LocalFile>,
    shared: Arc<Shared>,
}

/// Keeps pages resident.
struct Held {
    pages: Vec<(Arc<str>, u64)>,
    shared: Arc<Shared>,
}

impl Absent {
    /// Lacks parts of the files whose names pass `may_lack`, chosen by `seed`.
    pub fn new(files: Arc<dyn LocalStore>, seed: u64, may_lack: fn(&str) -> bool) -> Arc<Absent> {
        let state = State {
            random: Random::with_purpose(seed, "absent"),
            chances: None,
            pages: HashMap::new(),
            misses: 0,
            local: HashMap::new(),
            lens: HashMap::new(),
        };
        let shared = Arc::new(Shared { may_lack, state: Mutex::new(state) });
        Arc::new(Absent { files, shared })
    }

    /// Evicts everything. From now on, `absent` of a hundred pages are absent when they are read
    /// first, and before `evicts` of a hundred reads everything is evicted that no guard holds.
    pub fn deny(&self, absent: u64, evicts: u64) {
        debug_assert!(absent <= 100 && evicts <= 100, "{absent} and {evicts} of a hundred");
        let mut state = self.shared.state();
        state.pages.retain(|_, guards| *guards > 0);
        state.chances = Some(Chances { absent, evicts });
    }

    /// Lacks nothing from now on.
    pub fn allow(&self) {
        self.shared.state().chances = None;
    }

    /// Makes all files that were created here lack bytes, too. [`LocalStore::prepare`] does it with those that
    /// the log may name.
    pub fn upload(&self) {
        self.shared.state().local.clear();
    }

    /// How many files that may lack bytes were created here, and may not be named by the log yet.
    pub fn unnamed(&self) -> usize {
        let state = self.shared.state();
        let unnamed = state.local.iter().filter(|(_, is_named)| !**is_named);
        unnamed.filter(|(name, _)| (self.shared.may_lack)(name)).count()
    }

    /// How many reads met absent bytes.
    pub fn misses(&self) -> u64 {
        self.shared.state().misses
    }

    /// How many pages guards hold.
    pub fn held(&self) -> usize {
        self.shared.state().pages.values().filter(|guards| **guards > 0).count()
    }

    fn wrap(&self, name: &str, file: Arc<dyn LocalFile>) -> Arc<dyn LocalFile> {
        match (self.shared.may_lack)(name) {
            true => Arc::new(AbsentFile { name: name.into(), file, shared: self.shared.clone() }),
            false => file,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a page is there.
    fn is_resident(&mut self, page: &(Arc<str>, u64), absent: u64) -> bool {
        if self.pages.contains_key(page) {
            return true;
        }
        let lucky = !self.random.percent(absent);
        if lucky {
            self.pages.insert(page.clone(), 0);
        }
        lucky
    }

    /// The absent pages of some ranges, as ranges of bytes.
    fn absent(&mut self, name: &Arc<str>, ranges: &[ReadRange<'_>]) -> Vec<Range<u64>> {
        let Some(chances) = self.chances else { return Vec::new() };
        if self.local.contains_key(name) {
            return Vec::new();
        }
        if self.random.percent(chances.evicts) {
            self.pages.retain(|_, guards| *guards > 0);
        }
        let mut pages: Vec<u64> = Vec::new();
        for range in ranges.iter().filter(|range| !range.buffer.is_empty()) {
            pages.extend(pages_of(&(range.offset..range.offset + range.buffer.len() as u64)));
        }
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|page| !self.is_resident(&(name.clone(), *page), chances.absent));
        let mut absent: Vec<Range<u64>> = Vec::new();
        for page in pages {
            let (start, end) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
            match absent.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => absent.push(start..end),
            }
        }
        self.misses += u64::from(!absent.is_empty());
        absent
    }
}

fn pages_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for page in &self.pages {
            if let Some(guards) = state.pages.get_mut(page) {
                *guards -= 1;
            }
        }
    }
}

impl LocalStore for Absent {
    fn list(&self) -> Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        Ok(self.wrap(name, self.files.open(name)?))
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let file = self.files.create(name)?;
        self.shared.state().local.insert(name.into(), false);
        Ok(self.wrap(name, file))
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.shared.state().local.remove(name);
        self.files.remove(name)
    }
    fn is_in_memory(&self) -> bool {
        self.files.is_in_memory()
    }
    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        self.shared.state().local.retain(|_, is_named| !*is_named);
        self.files.prepare()
    }
    fn ran_short(&self) -> bool {
        self.files.ran_short()
    }
    fn note_named(&self, name: &str) {
        if let Some(is_named) = self.shared.state().local.get_mut(name) {
            *is_named = true;
        }
    }
    fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
        let mut pages = Vec::new();
        for Missing { file, ranges } in missing {
            let len = self.shared.state().lens.get(file).copied().unwrap_or(u64::MAX);
            let within = |range: &Range<u64>| pages_of(&(range.start..range.end.min(len)));
            pages.extend(ranges.iter().flat_map(within).map(|page| (file.clone(), page)));
        }
        Box::pin(OnSecondPoll { pages, shared: self.shared.clone(), waited: false })
    }
}

impl Held {
    /// Makes pages resident.
    fn new(pages: Vec<(Arc<str>, u64)>, shared: Arc<Shared>) -> Held {
        let mut state = shared.state();
        for page in &pages {
            *state.pages.entry(page.clone()).or_default() += 1;
        }
        drop(state);
        Held { pages, shared }
    }
}

/// Is ready when it is polled again, as if it had waited for a network. Before, it has fetched nothing.
struct OnSecondPoll {
    pages: Vec<(Arc<str>, u64)>,
    shared: Arc<Shared>,
    waited: bool,
}

impl Future for OnSecondPoll {
    type Output = Result<Resident>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !std::mem::replace(&mut self.waited, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let held = Held::new(std::mem::take(&mut self.pages), self.shared.clone());
        Poll::Ready(Ok(Resident::new(held)))
    }
}

impl LocalFile for AbsentFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let absent = self.shared.state().absent(&self.name, ranges);
        if absent.is_empty() {
            return self.file.read(ranges);
        }
        let len = self.file.len()?;
        self.shared.state().lens.insert(self.name.clone(), len);
        Err(Error::not_resident(Missing { file: self.name.clone(), ranges: absent }))
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }
    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fixed;
    use nacre_host::fetched::{Fetched, Misses};
    use nacre_host::memory::MemoryStore;
    use nacre_host::{ErrorKind, Parallelism, Reason, waits};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Waker;

    const PAGES: u64 = 200;

    /// A file of pages, each filled with its number.
    fn files() -> (Arc<Absent>, Arc<dyn LocalFile>) {
        let files = Absent::new(Arc::new(MemoryStore::new()), 7, |name| name != "here");
        for name in ["here", "there"] {
            let bytes: Vec<u8> =
                (0..PAGES * PAGE_BYTES).map(|at| (at / PAGE_BYTES) as u8).collect();
            files.create(name).unwrap().write(0, &bytes).unwrap();
        }
        files.upload();
        let file = files.open("there").unwrap();
        (files, file)
    }

    fn read(file: &dyn LocalFile, pages: &[u64]) -> Result<Vec<u8>> {
        let mut bytes = vec![[0u8; 2]; pages.len()];
        let mut ranges: Vec<ReadRange<'_>> = (pages.iter().zip(&mut bytes))
            .map(|(page, buffer)| ReadRange { offset: page * PAGE_BYTES + 9, buffer })
            .collect();
        file.read(&mut ranges)?;
        Ok(bytes.iter().map(|read| read[1]).collect())
    }

    #[test]
    fn absent_bytes_are_there_from_a_fetch_to_the_end_of_its_guard() {
        let (files, file) = files();
        assert_eq!(read(&*file, &[4]).unwrap(), [4]);
        files.deny(100, 0);
        let error = read(&*file, &[3, 9, 4, 8, 4]).unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Io, Some(Reason::NotResident)));
        let pages = |range: Range<u64>| range.start * PAGE_BYTES..range.end * PAGE_BYTES;
        let missing = &error.missing().unwrap()[0];
        assert_eq!(
            (&*missing.file, &missing.ranges[..]),
            ("there", &[pages(3..5), pages(8..10)][..])
        );
        let mut fetched = Fetched::default();
        fetched.resolve_now(error, &*files, &Fixed::default()).unwrap();
        // One of two pages is still absent, and the only one that is named.
        let error = read(&*file, &[9, 20]).unwrap_err();
        assert_eq!(error.missing().unwrap()[0].ranges, [pages(20..21)]);
        files.deny(100, 100);
        assert_eq!(read(&*file, &[3, 4, 8, 9]).unwrap(), [3, 4, 8, 9]);
        assert_eq!(files.held(), 4);
        fetched.release();
        assert_eq!(files.held(), 0);
        assert!(read(&*file, &[9]).is_err());
        assert_eq!(files.misses(), 3);
        let here = files.open("here").unwrap();
        assert_eq!(read(&*here, &[9]).unwrap(), [9]);
    }

    #[test]
    fn a_fetch_that_is_not_awaited_fetches_nothing() {
        let (files, file) = files();
        files.deny(100, 0);
        let error = read(&*file, &[7]).unwrap_err();
        drop(files.fetch(error.missing().unwrap()));
        assert!(read(&*file, &[7]).is_err());
        crate::wait(files.fetch(error.missing().unwrap())).unwrap();
        assert_eq!(read(&*file, &[7]).unwrap(), [7]);
    }

    #[test]
    fn files_are_there_until_they_are_uploaded() {
        let (files, _) = files();
        files.deny(100, 100);
        let file = files.create("new").unwrap();
        file.write(0, &[5; 2 * PAGE_BYTES as usize]).unwrap();
        assert_eq!(read(&*file, &[1]).unwrap(), [5]);
        files.upload();
        assert!(read(&*file, &[1]).is_err());
    }

    #[test]
    fn files_that_no_record_names_stay_there() {
        let (files, _) = files();
        files.deny(100, 100);
        let file = files.create("new").unwrap();
        file.write(0, &[5; 2 * PAGE_BYTES as usize]).unwrap();
        let prepare = || {
            let mut context = Context::from_waker(Waker::noop());
            assert!(files.prepare().as_mut().poll(&mut context).is_ready());
        };
        prepare();
        assert_eq!(read(&*file, &[1]).unwrap(), [5]);
        files.note_named("new");
        assert_eq!(read(&*file, &[1]).unwrap(), [5]);
        prepare();
        assert!(read(&*file, &[1]).is_err());
    }

    #[test]
    fn an_error_that_was_kept_is_not_fetched_again() {
        let (files, file) = files();
        files.deny(100, 100);
        let error = read(&*file, &[1]).unwrap_err();
        let mut fetched = Fetched::default();
        fetched.resolve_now(error.clone(), &*files, &Fixed::default()).unwrap();
        assert_eq!(
            fetched.resolve_now(error, &*files, &Fixed::default()).unwrap_err().reason(),
            Some(Reason::NotResident)
        );
        assert!(fetched.resolve_now(Error::corrupt("other"), &*files, &Fixed::default()).is_err());
    }

    #[test]
    fn a_long_unit_gives_up_what_it_fetched_first_until_it_is_asked_for_again() {
        let (files, file) = files();
        files.deny(100, 100);
        let mut fetched = Fetched::default();
        let mut pass = |pages: std::ops::Range<u64>| {
            for page in pages {
                while let Err(error) = read(&*file, &[page]) {
                    fetched.resolve_now(error, &*files, &Fixed::default()).unwrap();
                }
            }
            files.held() as u64
        };
        assert!(pass(0..PAGES) < PAGES / 2);
        // From here on it keeps everything, so that it ends.
        assert!(pass(0..PAGES) == PAGES);
        assert!(pass(0..PAGES) == PAGES && files.misses() < 2 * PAGES);
    }

    #[test]
    fn reads_in_a_waiting_scope_fetch_what_they_miss() {
        let (files, file) = files();
        files.deny(100, 100);
        let store: Arc<dyn LocalStore> = files.clone();
        let threads: Arc<dyn Parallelism> = Arc::new(Fixed::default());
        let waiting = || {
            let mut bytes = Vec::new();
            waits::read(|| read(&*file, &[2, 30]).map(|read| bytes = read))?;
            Ok::<_, Error>(bytes)
        };
        assert_eq!(waiting().unwrap_err().reason(), Some(Reason::NotResident));
        assert_eq!(waits::waiting(&store, &threads, waiting).unwrap(), [2, 30]);
        assert!(!waits::is_waiting() && files.held() == 0);
        // Where threads cannot block, the read fails.
        struct Unblocked;
        impl Parallelism for Unblocked {
            fn width(&self) -> usize {
                1
            }
            fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
                (0..count).for_each(task);
            }
        }
        let threads: Arc<dyn Parallelism> = Arc::new(Unblocked);
        let error = waits::waiting(&store, &threads, waiting).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NotResident));
    }

    #[test]
    fn reads_that_miss_together_are_fetched_at_once() {
        let (files, file) = files();
        files.deny(100, 100);
        let pages = |range: Range<u64>| range.start * PAGE_BYTES..range.end * PAGE_BYTES;
        let reads = || Misses::each([9, 5, 90], |page| read(&*file, &[page]).map(drop));
        let error = reads().unwrap_err();
        let missing = &error.missing().unwrap()[0];
        assert_eq!(missing.ranges, [pages(5..6), pages(9..10), pages(90..91)]);
        let mut fetched = Fetched::default();
        fetched.resolve_now(error, &*files, &Fixed::default()).unwrap();
        reads().unwrap();
        assert_eq!((files.misses(), files.held()), (3, 3));
        // What is only to be warmed is not held.
        let error = Error::to_warm(Missing { file: "there".into(), ranges: vec![pages(7..9)] });
        fetched.resolve_now(error, &*files, &Fixed::default()).unwrap();
        assert_eq!(files.held(), 3);
        fetched.release();
        // A call that waits does so once.
        let (store, misses): (Arc<dyn LocalStore>, _) = (files.clone(), files.misses());
        let threads: Arc<dyn Parallelism> = Arc::new(Fixed::default());
        let calls = std::cell::Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            Misses::each([19, 15, 190], |page| waits::read(|| read(&*file, &[page]).map(drop)))
        };
        waits::waiting(&store, &threads, || waits::read_together(call)).unwrap();
        assert_eq!((calls.get(), files.misses() - misses), (2, 3));
        // A read that fails otherwise ends all.
        let failing = Misses::each([1, 2], |_| Err(Error::corrupt("damaged")));
        assert_eq!(failing.unwrap_err().kind(), ErrorKind::Corrupt);
    }

    /// A store whose disk is full for some fetches.
    struct Full(Arc<Absent>, AtomicU64);

    impl LocalStore for Full {
        fn list(&self) -> Result<Vec<String>> {
            self.0.list()
        }
        fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
            self.0.open(name)
        }
        fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
            self.0.create(name)
        }
        fn remove(&self, name: &str) -> Result<()> {
            self.0.remove(name)
        }
        fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
            let left = self.1.load(Ordering::Relaxed);
            self.1.store(left.saturating_sub(1), Ordering::Relaxed);
            match left {
                0 => self.0.fetch(missing),
                _ => Box::pin(std::future::ready(Err(
                    Error::limit("full").with_reason(Reason::NoSpace)
                ))),
            }
        }
    }

    #[test]
    fn a_statement_waits_for_space_on_a_full_disk_and_background_work_does_not() {
        let (files, file) = files();
        files.deny(100, 100);
        let never = || false;
        for (refusals, is_background, is_found) in
            [(3, false, true), (1_000, false, false), (1, true, false), (0, true, true)]
        {
            let full = Arc::new(Full(files.clone(), AtomicU64::new(refusals)));
            let host = crate::host(full);
            let mut fetched = match is_background {
                true => Fetched::of_background(),
                false => Fetched::default(),
            };
            let missed = read(&*file, &[7]).unwrap_err();
            let done = fetched.resolve_now_unless(missed, &host, &never);
            let reason = done.as_ref().err().and_then(Error::reason);
            assert_eq!(done.is_ok(), is_found, "{refusals} refusals, background: {is_background}");
            assert_eq!(reason, (!is_found).then_some(Reason::NoSpace));
            assert_eq!(read(&*file, &[7]).is_ok(), is_found);
            fetched.release();
        }
    }

    #[test]
    fn a_store_without_absent_bytes_cannot_fetch() {
        let store = MemoryStore::new();
        let missing = Missing { file: "a".into(), ranges: vec![0..1, 2..3] };
        let error = Error::not_resident(missing);
        assert_eq!(
            Fetched::default().resolve_now(error, &store, &Fixed::default()).unwrap_err().reason(),
            None
        );
    }
}
