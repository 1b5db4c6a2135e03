//! A blob store that misbehaves as networks and servers do, to a seed.
//!
//! Fault model. A call may fail before the store has heard of it, or after it took effect, so that only
//! its answer is lost; a write or a removal may also take effect long after its caller was told that it
//! failed. Calls fail one by one or, while the store is away, all of them. Answers of reads may be too
//! short, which a store notices, or wrong, which it does not. Calls take time, before they take effect and
//! after. What is stored is never damaged, and a listing is never stale: it shows every write that took
//! effect, as that of S3 does.

use crate::memory_blobs::MemoryBlobs;
use crate::random::Random;
use nacre_host::{Answer, BlobInfo, BlobStore, Clock, Error, ErrorKind, Result, Tag, WriteIf};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What goes wrong in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobFault {
    /// It fails before it takes effect.
    Refused,
    /// It fails after it took effect.
    Lost,
    /// It fails, and a write or removal takes effect before some later call. Others are refused.
    Late,
    /// A read is answered with too few bytes. Other calls are refused.
    Short,
    /// A read is answered with a wrong byte. Other calls are refused.
    Wrong,
}

impl BlobFault {
    /// Every fault.
    pub const ALL: [BlobFault; 5] =
        [BlobFault::Refused, BlobFault::Lost, BlobFault::Late, BlobFault::Short, BlobFault::Wrong];
}

/// How often what goes wrong. Nothing does by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobChances {
    /// Of a hundred calls, those with a fault.
    pub faults: u64,
    /// Of a thousand calls, those with which the store goes away for a while.
    pub outages: u64,
    /// How many calls fail in an outage, at most.
    pub outage_calls: u64,
    /// Nanoseconds that a call takes at most, before its effect and again after it.
    pub delay_ns: u64,
    /// How many calls a late effect waits for, at most.
    pub late_calls: u64,
}

/// A blob store that misbehaves.
pub struct FaultBlobs {
    blobs: Arc<MemoryBlobs>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    random: Random,
    chances: BlobChances,
    calls: u64,
    /// Calls that will fail, by number.
    planned: Vec<(u64, BlobFault)>,
    /// The store is away until this call; for ever with `u64::MAX`.
    away_until: u64,
    /// Changes that take effect before a call.
    late: Vec<(u64, Change)>,
    faults: u64,
}

/// A write or a removal.
enum Change {
    Write(String, Arc<[u8]>, WriteIf),
    Remove(String),
}

/// What is decided of a call when it begins.
struct Fate {
    fault: Option<BlobFault>,
    until_effect_ns: u64,
    until_answer_ns: u64,
    /// A late effect waits for this call.
    late_at: u64,
    /// Which bit of an answer is wrong.
    bit: u64,
}

impl FaultBlobs {
    /// Wraps a store. Nothing goes wrong until [`FaultBlobs::set`].
    pub fn new(blobs: Arc<MemoryBlobs>, clock: Arc<dyn Clock>, seed: u64) -> Arc<FaultBlobs> {
        let state = State {
            random: Random::with_purpose(seed, "blobs"),
            chances: BlobChances::default(),
            calls: 0,
            planned: Vec::new(),
            away_until: 0,
            late: Vec::new(),
            faults: 0,
        };
        Arc::new(FaultBlobs { blobs, clock, state: Mutex::new(state) })
    }

    /// Sets how often what goes wrong from now on.
    pub fn set(&self, chances: BlobChances) {
        assert!(chances.faults <= 100 && chances.outages <= 1000, "{chances:?}");
        self.state().chances = chances;
    }

    /// Makes the store go away, or come back: while it is away, every call is refused.
    pub fn set_away(&self, is_away: bool) {
        self.state().away_until = if is_away { u64::MAX } else { 0 };
    }

    /// Plans a fault of the call with this number; the first call of the store has number 0.
    pub fn fail_call(&self, call: u64, fault: BlobFault) {
        self.state().planned.push((call, fault));
    }

    /// How many calls have begun.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many of them had a fault.
    pub fn faults(&self) -> u64 {
        self.state().faults
    }

    /// Lets every late change take effect now.
    pub fn settle(&self) {
        let late = std::mem::take(&mut self.state().late);
        late.into_iter().for_each(|(_, change)| self.apply(change));
    }

    /// Loses every late change: the machine that sent it has ended before it was sent.
    pub fn forget_late(&self) {
        self.state().late.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a change take effect whose caller no longer waits. It may be refused by now.
    fn apply(&self, change: Change) {
        match change {
            Change::Write(name, bytes, when) => drop(self.blobs.put(&name, bytes, &when)),
            Change::Remove(name) => drop(self.blobs.delete(&name)),
        }
    }

    /// Begins a call: changes whose time has come take effect, and its fate is decided.
    fn begin(&self) -> Fate {
        let (fate, due) = self.state().begin();
        due.into_iter().for_each(|change| self.apply(change));
        fate
    }

    /// Waits for a time. A sleep is polled and dropped each time, because answers move between threads
    /// and sleeps do not: the clock must keep a waker that it was given, as those of tests do.
    async fn wait(&self, ns: u64) {
        if ns == 0 {
            return;
        }
        let until = self.clock.monotonic_ns() + ns;
        poll_fn(|context| {
            if self.clock.monotonic_ns() >= until {
                return Poll::Ready(());
            }
            // A sleep of the fixed clock is over at once, and time goes on with each look.
            if self.clock.sleep_until(until).as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }

    /// A call of `call` that changes nothing.
    async fn reading<T>(
        &self,
        call: impl Future<Output = Result<T>>,
        damage: impl FnOnce(BlobFault, u64, T) -> Result<T>,
    ) -> Result<T> {
        let fate = self.begin();
        self.wait(fate.until_effect_ns).await;
        let outcome = match fate.fault {
            None => call.await,
            Some(fault @ (BlobFault::Short | BlobFault::Wrong)) => {
                call.await.and_then(|answer| damage(fault, fate.bit, answer))
            }
            Some(fault) => Err(unavailable(fault)),
        };
        self.wait(fate.until_answer_ns).await;
        outcome
    }

    /// A call that changes something.
    async fn changing<T>(
        &self,
        change: impl FnOnce() -> Change,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let fate = self.begin();
        self.wait(fate.until_effect_ns).await;
        let outcome = match fate.fault {
            None => call.await,
            Some(fault) => {
                match fault {
                    // What is refused is not changed, and so says, whether its answer comes or not.
                    BlobFault::Lost => drop(call.await),
                    BlobFault::Late => self.state().late.push((fate.late_at, change())),
                    BlobFault::Refused | BlobFault::Short | BlobFault::Wrong => {}
                }
                Err(unavailable(fault))
            }
        };
        self.wait(fate.until_answer_ns).await;
        outcome
    }
}

fn unavailable(fault: BlobFault) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the blob store did not answer ({fault:?})"))
}

/// Damages bytes that were read.
fn damaged(name: &str, fault: BlobFault, bit: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    if fault == BlobFault::Short {
        return Err(Error::corrupt(format!("the answer to a read of blob {name} is too short")));
    }
    let bits = bytes.len() as u64 * 8;
    if let Some(at) = bit.checked_rem(bits) {
        bytes[(at / 8) as usize] ^= 1 << (at % 8);
    }
    Ok(bytes)
}

impl State {
    fn begin(&mut self) -> (Fate, Vec<Change>) {
        let call = self.calls;
        self.calls += 1;
        let mut due = Vec::new();
        for (at, change) in std::mem::take(&mut self.late) {
            match at <= call {
                true => due.push(change),
                false => self.late.push((at, change)),
            }
        }
        let BlobChances { outages, outage_calls, delay_ns, late_calls, .. } = self.chances;
        if self.random.below(1000) < outages {
            self.away_until = self.away_until.max(call + self.random.below(outage_calls + 1));
        }
        let fault = self.fault(call);
        self.faults += u64::from(fault.is_some());
        let fate = Fate {
            fault,
            until_effect_ns: self.random.below(delay_ns + 1),
            until_answer_ns: self.random.below(delay_ns + 1),
            late_at: call + 1 + self.random.below(late_calls + 1),
            bit: self.random.bits(),
        };
        (fate, due)
    }

    fn fault(&mut self, call: u64) -> Option<BlobFault> {
        let drawn = match self.random.percent(self.chances.faults) {
            true => Some(*self.random.pick(&BlobFault::ALL)),
            false => None,
        };
        if call < self.away_until {
            return Some(BlobFault::Refused);
        }
        let planned = self.planned.iter().find(|(at, _)| *at == call);
        planned.map(|(_, fault)| *fault).or(drawn)
    }
}

impl BlobStore for FaultBlobs {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let damage = move |fault, bit, bytes| damaged(name, fault, bit, bytes);
        Box::pin(self.reading(self.blobs.read(name, range), damage))
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        Box::pin(self.reading(self.blobs.read_all(name), move |fault, bit, (bytes, tag)| {
            Ok((damaged(name, fault, bit, bytes)?, tag))
        }))
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let (kept, condition) = (bytes.clone(), when.clone());
        let change = move || Change::Write(name.to_string(), kept, condition);
        Box::pin(self.changing(change, self.blobs.write(name, bytes, when)))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        let refuse = |fault, _, _| Err(unavailable(fault));
        Box::pin(self.reading(self.blobs.list(prefix), refuse))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let change = move || Change::Remove(name.to_string());
        Box::pin(self.changing(change, self.blobs.remove(name)))
    }
}
