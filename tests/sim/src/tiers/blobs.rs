//! A blob store that fails, to a seed.
//!
//! # Fault model
//! A call may be refused; it may take effect and its answer be lost; a change may take effect long after its
//! caller was told that the store is away. A call that is given up may have taken effect, may do so later, or
//! never. The store may be away for a number of calls. Each call takes a few polls, before its effect and after
//! it. What is stored is never damaged.

use nacre_testing::{MemoryBlobs, Random};
use nacredb::host::{Answer, BlobInfo, BlobStore, Clock, Tag, WriteIf};
use nacredb::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

/// A blob store that fails.
pub struct SimBlobs {
    /// What is stored.
    pub stored: Arc<MemoryBlobs>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Another store that this one reaches.
    other: Mutex<Option<(&'static str, Weak<SimBlobs>)>>,
}

struct State {
    random: Random,
    /// In a hundred calls, those that fail.
    faulty: u64,
    calls: u64,
    away_until: u64,
    late: Vec<(u64, Change)>,
    faults: u64,
    /// When the manifest was first written without an answer, unless a later write of it was answered.
    unanswered_us: Option<i64>,
    /// How often the manifest was written with an answer.
    answered: u64,
}

#[derive(Clone)]
enum Change {
    Write(String, Arc<[u8]>, WriteIf),
    Remove(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Refused,
    Lost,
    Late,
}

/// A change that was sent and not answered.
struct Sent<'a> {
    blobs: &'a SimBlobs,
    change: Option<Change>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let Some(change) = self.change.take() else { return };
        let choice = self.blobs.state().random.below(3);
        match choice {
            0 => drop(self.blobs.apply(change)),
            1 => self.blobs.put_off(change),
            _ => {}
        }
    }
}

impl SimBlobs {
    /// An empty store, in which this many of a hundred calls fail.
    pub fn new(seed: u64, clock: Arc<dyn Clock>, faulty: u64) -> Arc<SimBlobs> {
        let state = State {
            random: Random::with_purpose(seed, "blobs"),
            faulty,
            calls: 0,
            away_until: 0,
            late: Vec::new(),
            faults: 0,
            unanswered_us: None,
            answered: 0,
        };
        let (stored, state) = (MemoryBlobs::new(clock.clone()), Mutex::new(state));
        Arc::new(SimBlobs { stored, clock, state, other: Mutex::default() })
    }

    /// Lets another store be reached by a URL.
    pub fn reach(&self, url: &'static str, other: &Arc<SimBlobs>) {
        let mut reached = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        *reached = Some((url, Arc::downgrade(other)));
    }

    /// The store is away for this many calls.
    pub fn go_away(&self, calls: u64) {
        let mut state = self.state();
        state.away_until = state.calls + calls;
    }

    /// Nothing fails from now on, and everything that was put off takes effect.
    pub fn settle(&self) {
        let late = {
            let mut state = self.state();
            (state.faulty, state.away_until) = (0, 0);
            std::mem::take(&mut state.late)
        };
        late.into_iter().for_each(|(_, change)| drop(self.apply(change)));
    }

    /// How many calls failed.
    pub fn faults(&self) -> u64 {
        self.state().faults
    }

    /// Since when there may be a newer manifest than its writer knows, in microseconds; `None` if there is none.
    pub fn unanswered_us(&self) -> Option<i64> {
        self.state().unanswered_us
    }

    /// How often the manifest was written with an answer.
    pub fn answered(&self) -> u64 {
        self.state().answered
    }

    /// Writes the manifest, and notes whether there is an answer.
    async fn replace_manifest(&self, change: Change) -> Result<Tag> {
        let before_us = {
            let now_us = self.clock.wall_us();
            let mut state = self.state();
            let before_us = state.unanswered_us;
            state.unanswered_us = before_us.or(Some(now_us));
            before_us
        };
        let answer = self.changing(change).await;
        match &answer {
            Ok(_) => {
                let mut state = self.state();
                (state.unanswered_us, state.answered) = (None, state.answered + 1);
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.state().unanswered_us = before_us;
            }
            Err(_) => {}
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, change: Change) -> Result<Tag> {
        match change {
            Change::Write(name, bytes, when) => self.stored.put(&name, bytes, &when),
            Change::Remove(name) => self.stored.delete(&name).map(|()| Tag("".into())),
        }
    }

    fn put_off(&self, change: Change) {
        let mut state = self.state();
        let at = state.calls + 1 + state.random.below(20);
        state.late.push((at, change));
    }

    /// Begins a call: its fault, and the polls before and after its effect.
    fn begin(&self) -> (Option<Fault>, u64, u64) {
        let (fate, due) = {
            let mut state = self.state();
            state.calls += 1;
            let calls = state.calls;
            let due: Vec<_> = state.late.extract_if(.., |(at, _)| *at <= calls).collect();
            let faulty = state.faulty;
            let fault = match state.random.percent(faulty) {
                true => Some(*state.random.pick(&[Fault::Refused, Fault::Lost, Fault::Late])),
                false => None,
            };
            let fault = if calls < state.away_until { Some(Fault::Refused) } else { fault };
            state.faults += u64::from(fault.is_some());
            ((fault, state.random.below(3), state.random.below(3)), due)
        };
        due.into_iter().for_each(|(_, change)| drop(self.apply(change)));
        fate
    }

    async fn reading<T>(&self, read: impl Future<Output = Result<T>>) -> Result<T> {
        let (fault, before, after) = self.begin();
        yields(before).await;
        let answer = if fault.is_some() { Err(away()) } else { read.await };
        yields(after).await;
        answer
    }

    async fn changing(&self, change: Change) -> Result<Tag> {
        let (fault, before, after) = self.begin();
        let mut sent = Sent { blobs: self, change: Some(change) };
        yields(before).await;
        let Some(change) = sent.change.take() else { return Err(away()) };
        let answer = match fault {
            None => self.apply(change),
            Some(fault) => {
                match fault {
                    Fault::Refused => {}
                    Fault::Lost => drop(self.apply(change)),
                    Fault::Late => self.put_off(change),
                }
                Err(away())
            }
        };
        yields(after).await;
        answer
    }
}

fn away() -> Error {
    Error::new(ErrorKind::Unavailable, "simulated: the blob store is away")
}

async fn yields(mut polls: u64) {
    std::future::poll_fn(|context| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl BlobStore for SimBlobs {
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        let other = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        let other = other.as_ref().filter(|(known, _)| *known == url);
        match other.and_then(|(_, other)| other.upgrade()) {
            Some(other) => Ok(other),
            None => Err(Error::unsupported(format!("a blob store at {url}"))),
        }
    }

    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        Box::pin(self.reading(self.stored.read(name, range)))
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        Box::pin(self.reading(self.stored.read_all(name)))
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let change = Change::Write(name.to_string(), bytes, when);
        match name {
            "manifest" => Box::pin(self.replace_manifest(change)),
            _ => Box::pin(self.changing(change)),
        }
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        Box::pin(self.reading(self.stored.list(prefix)))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.changing(Change::Remove(name.to_string())).await.map(drop) })
    }
}
