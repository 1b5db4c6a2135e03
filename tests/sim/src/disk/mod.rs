//! The simulated disk: what a medium and an operating system may do to files.
//!
//! # Fault model
//!
//! *Unsynced writes.* Between two syncs of a file, each sector of each write may or may not reach
//! the medium, in any order; so may each change of length. After a power cut a file holds its last
//! synced content with any such subset applied. A length may be durable without the bytes that
//! extended the file, which then read as zeros. The sector size is chosen per seed (16, 64 or 512
//! bytes), so that short records tear too. A sector is either old or new, never a mixture. (Long
//! runs of zeros, with which logs are filled ahead of their records, tear only every 4 KiB.)
//!
//! *Names.* A file that was created and never synced may be missing after a power cut, or exist
//! without its bytes. A removed file may reappear with its durable content, even if another file
//! has taken its name, but not durably. File data and directory entries fail independently.
//!
//! *Killed processes.* The process dies, the machine does not: the next process sees the effects of
//! all completed calls, but nothing more is durable than before.
//!
//! *Failed syncs.* A failed sync makes any subset of the unsynced sectors durable, and the
//! operating system may forget that the rest was dirty: a later successful sync does not write it.
//! The bytes can still be read until the machine stops. Changes of length are not forgotten.
//!
//! *Failed writes* complete any prefix of their work. A *full disk* refuses to extend files, from
//! some call on and for some time. A *crowded host* refuses to create files: it fails with `limit`,
//! from some call on, for some time or until it prepares more. *Reads, opens and listings* may
//! fail; a *short read* fills part of the buffer and fails.
//!
//! *Slow I/O.* Each call takes time, occasionally a lot.
//!
//! *The end.* At a chosen call of any kind, the power fails or the process is killed: that call
//! does part of its work or none, and every later one fails without effect.
//!
//! *A reader.* Another process may read the files beside the one that writes them ([`Beside`]).
//!
//! Not simulated: a medium that loses or changes synced data; two writers on one folder.

mod beside;
mod inode;

use crate::clock::SimClock;
pub use crate::fault::{Call, Class, Counts, Fault, FaultKind};
use crate::turns::yield_now;
pub use beside::Beside;
use inode::{Change, Inode};
use nacre_testing::Random;
use nacredb::host::{LocalFile, LocalStore, ReadRange, check_file_name};
use nacredb::walked::{self, Path};
use nacredb::{Error, Result};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a phase ended for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A power cut.
    PowerCut,
    /// A kill.
    Kill,
}

/// The calls that a fault counts.
type Seen = (Option<Call>, Option<Class>, Option<Path>);

/// A fault that struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Struck {
    /// A call failed.
    Fail,
    /// The disk was full.
    Full,
    /// The machine or the process stopped.
    Crash,
}

struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    /// Files that had a durable name and were removed or replaced since the last power cut, by
    /// name.
    ghosts: BTreeMap<String, usize>,
    faults: Vec<Fault>,
    seen: BTreeMap<Seen, u64>,
    /// Faults that struck in the middle of a path.
    struck: BTreeMap<(Struck, Path), u64>,
    counts: Counts,
    full_until: u64,
    crowded_until: u64,
    /// Whether a file could not be created since the host last prepared some.
    ran_short: bool,
    ended: Option<Ended>,
    random: Random,
    sector: usize,
    /// Whether reading a removed file fails.
    strict_removal: bool,
    trace: u64,
}

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    clock: Arc<SimClock>,
}

impl Disk {
    /// An empty disk.
    pub fn new(seed: u64, clock: Arc<SimClock>) -> Disk {
        let mut random = Random::with_purpose(seed, "disk");
        let sector = *random.pick(&[16, 64, 512]);
        let strict_removal = random.percent(50);
        let state = State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            ghosts: BTreeMap::new(),
            faults: Vec::new(),
            seen: BTreeMap::new(),
            struck: BTreeMap::new(),
            counts: Counts::default(),
            full_until: 0,
            crowded_until: 0,
            ran_short: false,
            ended: None,
            random,
            sector,
            strict_removal,
            trace: 0,
        };
        Disk { state: Arc::new(Mutex::new(state)), clock }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the pending faults, and restarts the counts for them.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        let mut state = self.state();
        state.faults = faults;
        state.seen.clear();
        state.full_until = 0;
        state.crowded_until = 0;
    }

    /// Counts of all events.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// How often faults struck in the middle of a path.
    pub fn struck(&self) -> Vec<((Struck, Path), u64)> {
        self.state().struck.iter().map(|(what, count)| (*what, *count)).collect()
    }

    /// Whether the machine or the process has stopped.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended
    }

    /// A hash of all calls and their outcomes.
    pub fn trace(&self) -> u64 {
        self.state().trace
    }

    /// Names and lengths of all files.
    pub fn listing(&self) -> Vec<(String, usize)> {
        let state = self.state();
        state
            .names
            .iter()
            .map(|(name, inode)| (name.clone(), state.inodes[*inode].current.len()))
            .collect()
    }

    /// Restarts the machine or the process.
    pub fn restart(&self, how: Ended) {
        let mut state = self.state();
        let state = &mut *state;
        state.ended = None;
        state.faults.clear();
        if how == Ended::Kill {
            return;
        }
        let sector = state.sector;
        let mut names = BTreeMap::new();
        for (name, inode) in std::mem::take(&mut state.names) {
            let ghost = state.ghosts.remove(&name);
            let kept = if state.inodes[inode].named {
                // The file last synced under this name exists.
                Some(inode)
            } else {
                match (state.random.below(3), ghost) {
                    (0, _) => Some(inode),
                    (1, Some(old)) => Some(old),
                    _ => None,
                }
            };
            if let Some(kept) = kept {
                names.insert(name, kept);
            }
        }
        for (name, inode) in std::mem::take(&mut state.ghosts) {
            if state.random.percent(30) {
                names.insert(name, inode);
            }
        }
        let mut inodes = Vec::new();
        for (name, inode) in names {
            let mut inode = state.inodes[inode].clone();
            inode.settle(&mut state.random, sector);
            let bytes = inode.durable;
            inodes.push(Inode {
                current: bytes.clone(),
                durable: bytes,
                named: true,
                ..Inode::default()
            });
            state.names.insert(name, inodes.len() - 1);
        }
        state.inodes = inodes;
    }

    /// Called before each call: advances time and injects faults.
    fn step(&self, call: Call, name: &str) -> std::result::Result<(), Failure> {
        let mut state = self.state();
        let outcome = state.step(call, Class::of(name), &self.clock);
        state.note(
            call as u64
                ^ (outcome.is_err() as u64) << 8
                ^ name.bytes().fold(7u64, |h, b| h.wrapping_mul(31) + u64::from(b)),
        );
        outcome
    }
}

/// How a call fails.
enum Failure {
    /// Part of its work is done.
    Partly(Error),
    /// Nothing is done.
    Dead,
}

fn gone() -> Error {
    Error::io("simulated: the machine has stopped")
}

impl State {
    fn note(&mut self, what: u64) {
        self.trace = (self.trace ^ what).wrapping_mul(0x100_0000_01b3).rotate_left(17);
    }

    fn step(
        &mut self,
        call: Call,
        class: Class,
        clock: &SimClock,
    ) -> std::result::Result<(), Failure> {
        if self.ended.is_some() {
            return Err(Failure::Dead);
        }
        self.counts.calls += 1;
        let mut taken_us = match call {
            Call::Sync => 200 + self.random.below(400),
            Call::Read | Call::Open | Call::List => 1,
            _ => 2 + self.random.below(10),
        };
        let mut failed = false;
        let keys: [Seen; 4] = [
            (None, None, None),
            (Some(call), None, None),
            (None, Some(class), None),
            (Some(call), Some(class), None),
        ];
        let within = walked::current();
        let inside = [(None, None, within), (Some(call), None, within)];
        for key in keys.into_iter().chain(inside.into_iter().filter(|_| within.is_some())) {
            let count = self.seen.entry(key).or_insert(0);
            let nth = *count;
            *count += 1;
            for at in 0..self.faults.len() {
                let fault = &self.faults[at];
                if (fault.call, fault.class, fault.within) != key || fault.nth != nth {
                    continue;
                }
                match fault.kind {
                    FaultKind::Fail => failed = true,
                    FaultKind::Full { calls } => self.full_until = self.counts.calls + calls,
                    FaultKind::Crowded { calls } => self.crowded_until = self.counts.calls + calls,
                    FaultKind::Slow { ms } => taken_us += ms * 1_000,
                    FaultKind::Jump { ms } => {
                        taken_us += ms * 1_000;
                        clock.jump_wall(if ms % 2 == 1 {
                            -2_000 * ms as i64
                        } else {
                            1_000 * ms as i64
                        });
                    }
                    FaultKind::PowerCut => self.ended = Some(Ended::PowerCut),
                    FaultKind::Kill => self.ended = Some(Ended::Kill),
                }
            }
        }
        clock.advance_us(taken_us);
        if self.ended.is_some() || failed {
            self.strike(if self.ended.is_some() { Struck::Crash } else { Struck::Fail });
            self.counts.faults += 1;
            self.counts.log_failures += u64::from(class == Class::Log && call != Call::Read);
            self.counts.failed_removals += u64::from(call == Call::Remove);
            let error = if self.ended.is_some() {
                gone()
            } else {
                Error::io(format!("simulated: {call:?} failed"))
            };
            return Err(Failure::Partly(error));
        }
        Ok(())
    }

    /// Counts a fault in the middle of a path.
    fn strike(&mut self, what: Struck) {
        if let Some(path) = walked::current() {
            *self.struck.entry((what, path)).or_insert(0) += 1;
        }
    }

    /// Fails if the disk is full.
    fn room(&mut self, class: Class) -> Result<()> {
        if self.counts.calls < self.full_until {
            self.strike(Struck::Full);
            self.counts.faults += 1;
            self.counts.log_failures += u64::from(class == Class::Log);
            return Err(Error::io("simulated: the disk is full"));
        }
        Ok(())
    }

    /// Fails if no further file can be created.
    fn spare(&mut self) -> Result<()> {
        if self.counts.calls < self.crowded_until {
            self.counts.faults += 1;
            self.ran_short = true;
            return Err(Error::no_file("simulated: no further file"));
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        let inode = self
            .names
            .remove(name)
            .ok_or_else(|| Error::not_found(format!("file {name} does not exist")))?;
        self.inodes[inode].removed = true;
        if self.inodes[inode].named {
            self.ghosts.insert(name.to_string(), inode);
        }
        Ok(())
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        change.apply(&mut inode.current);
        inode.changes.push(change);
    }
}

/// For an atomic call: a partial failure has no effect.
fn whole(outcome: std::result::Result<(), Failure>) -> Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Partly(error)) => Err(error),
        Err(Failure::Dead) => Err(gone()),
    }
}

impl LocalStore for Disk {
    fn list(&self) -> Result<Vec<String>> {
        whole(self.step(Call::List, ""))?;
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        whole(self.step(Call::Open, name))?;
        match self.state().names.get(name) {
            Some(inode) => {
                Ok(Arc::new(DiskFile { disk: self.clone(), name: name.to_string(), inode: *inode }))
            }
            None => Err(Error::not_found(format!("file {name} does not exist"))),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        crate::hook::before(Call::Create, Class::of(name));
        let outcome = self.step(Call::Create, name);
        let mut state = self.state();
        match outcome {
            Ok(()) => {
                state.spare()?;
                state.room(Class::of(name))?;
            }
            // An interrupted create may have taken effect.
            Err(Failure::Partly(error)) => {
                if state.ended.is_none()
                    || state.random.percent(50)
                    || state.names.contains_key(name)
                {
                    return Err(error);
                }
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.names.insert(name.to_string(), inode);
                return Err(error);
            }
            Err(Failure::Dead) => return Err(gone()),
        }
        if state.names.contains_key(name) {
            return Err(Error::already_exists(format!("file {name} already exists")));
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.names.insert(name.to_string(), inode);
        Ok(Arc::new(DiskFile { disk: self.clone(), name: name.to_string(), inode }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_file_name(name)?;
        let outcome = self.step(Call::Remove, name);
        let mut state = self.state();
        match outcome {
            Ok(()) => state.remove(name),
            Err(Failure::Partly(error)) => {
                if state.ended.is_some() && state.random.percent(50) {
                    state.remove(name).ok();
                }
                Err(error)
            }
            Err(Failure::Dead) => Err(gone()),
        }
    }

    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        let mut state = self.state();
        let has_run_short = std::mem::take(&mut state.ran_short);
        if has_run_short && state.random.percent(50) {
            state.crowded_until = 0;
        }
        Box::pin(async move {
            // A statement that is retried after it reads what is committed by then.
            if has_run_short {
                yield_now().await;
            }
            Ok(())
        })
    }

    fn ran_short(&self) -> bool {
        self.state().ran_short
    }
}

struct DiskFile {
    disk: Disk,
    name: String,
    inode: usize,
}

impl LocalFile for DiskFile {
    fn len(&self) -> Result<u64> {
        let state = self.disk.state();
        if state.ended.is_some() {
            Err(gone())
        } else {
            Ok(state.inodes[self.inode].current.len() as u64)
        }
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        if Class::of(&self.name) == Class::Segment {
            crate::hook::before(Call::Read, Class::Segment);
        }
        let outcome = self.disk.step(Call::Read, &self.name);
        let mut state = self.disk.state();
        let state = &mut *state;
        let partly = match outcome {
            Ok(()) => None,
            Err(Failure::Partly(error)) => Some(error),
            Err(Failure::Dead) => return Err(gone()),
        };
        let inode = &state.inodes[self.inode];
        if inode.removed && state.strict_removal {
            return Err(Error::io(format!("simulated: {} was removed", self.name)));
        }
        for range in ranges {
            let start = range.offset as usize;
            let Some(source) = inode.current.get(start..start + range.buffer.len()) else {
                return Err(Error::corrupt(format!(
                    "{}: read past the end at byte {start}",
                    self.name
                )));
            };
            if let Some(error) = partly {
                let part = state.random.below(source.len() as u64 + 1) as usize;
                range.buffer[..part].copy_from_slice(&source[..part]);
                return Err(error);
            }
            range.buffer.copy_from_slice(source);
        }
        partly.map_or(Ok(()), Err)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        crate::hook::before(Call::Write, Class::of(&self.name));
        let outcome = self.disk.step(Call::Write, &self.name);
        let mut state = self.disk.state();
        let state = &mut *state;
        let offset = offset as usize;
        let len = state.inodes[self.inode].current.len();
        let (part, outcome) = match outcome {
            Ok(()) if offset + bytes.len() > len => match state.room(Class::of(&self.name)) {
                Ok(()) => (bytes.len(), Ok(())),
                // Writes up to the end of the file's last block succeed.
                Err(full) => (len.saturating_sub(offset), Err(full)),
            },
            Ok(()) => (bytes.len(), Ok(())),
            Err(Failure::Partly(error)) => {
                (state.random.below(bytes.len() as u64 + 1) as usize, Err(error))
            }
            Err(Failure::Dead) => return Err(gone()),
        };
        if part > 0 {
            state.change(self.inode, Change::write(offset, &bytes[..part]));
        }
        outcome
    }

    fn truncate(&self, len: u64) -> Result<()> {
        whole(self.disk.step(Call::Truncate, &self.name))?;
        self.disk.state().change(self.inode, Change::Length(len as usize));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        crate::hook::before(Call::Sync, Class::of(&self.name));
        let outcome = self.disk.step(Call::Sync, &self.name);
        let mut state = self.disk.state();
        let state = &mut *state;
        let sector = state.sector;
        let inode = &mut state.inodes[self.inode];
        match outcome {
            Ok(()) => {
                for change in std::mem::take(&mut inode.changes) {
                    change.apply(&mut inode.durable);
                }
                inode.named = true;
                if !inode.removed {
                    state.ghosts.remove(&self.name);
                }
                if Class::of(&self.name) == Class::Log {
                    state.counts.log_syncs += 1;
                    crate::hook::log_synced();
                }
                Ok(())
            }
            Err(Failure::Partly(error)) => {
                if state.ended.is_none() {
                    inode.forget(&mut state.random, sector);
                }
                inode.named |= state.random.percent(50);
                Err(error)
            }
            Err(Failure::Dead) => Err(gone()),
        }
    }
}
