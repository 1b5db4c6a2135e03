//! A store that can fail, and that knows what a power cut would leave of it.
//!
//! Fault model. Until a file is synced, each of its writes since the last sync may be on the medium
//! whole, in any part (by sectors of 16 bytes, so that small logs tear too) or not at all, in any
//! order; so may each truncation. The name of a file that was never synced may be missing, and a
//! removed file may be back with its last durable content. Nothing that was synced is lost. A single
//! failed sync ([`FaultStore::fail_next`]) forgets the bytes written before it: they can still be
//! read, but no later sync makes them durable. After the chosen step every call fails, having done
//! nothing or, for a write, part of its work.

use crate::random::Random;
use nacre_host::memory::MemoryStore;
use nacre_host::{Error, LocalFile, LocalStore, ReadRange, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const SECTOR: usize = 16;

fn bytes_of(store: &dyn LocalStore, name: &str) -> Vec<u8> {
    let file = store.open(name).unwrap();
    let mut buffer = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut buffer }]).unwrap();
    buffer
}

fn put(store: &dyn LocalStore, name: &str, bytes: &[u8]) {
    let _ = store.remove(name);
    store.create(name).unwrap().write(0, bytes).unwrap();
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
    name_durable: bool,
}

impl Content {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write(offset, written) => {
                let end = offset + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(written);
            }
            Change::Truncate(len) => bytes.resize(*len, 0),
        }
    }

    fn change(&mut self, change: Change) {
        Content::apply(&mut self.current, &change);
        self.changes.push(change);
    }

    /// What a power cut leaves.
    fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        // Now and then everything or nothing of a file survived; otherwise any part of it.
        let all = match random.below(4) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        for change in &self.changes {
            match change {
                Change::Write(offset, written) => {
                    for (index, sector) in written.chunks(SECTOR).enumerate() {
                        if all.unwrap_or_else(|| random.below(2) == 0) {
                            Content::apply(
                                &mut bytes,
                                &Change::Write(offset + index * SECTOR, sector.to_vec()),
                            );
                        }
                    }
                }
                Change::Truncate(_) if all.unwrap_or_else(|| random.below(2) == 0) => {
                    Content::apply(&mut bytes, change)
                }
                Change::Truncate(_) => {}
            }
        }
        bytes
    }
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Content>,
    removed: BTreeMap<String, Content>,
    steps: usize,
    syncs: usize,
    fail_from: Option<usize>,
    /// Fail one step only, not all from there on.
    once: bool,
    /// Fail only these: "write", "sync", …
    only: Option<&'static str>,
    sync_takes: Duration,
    lie_about: Option<String>,
}

impl State {
    fn step(&mut self, what: &'static str) -> Result<()> {
        if self.only.is_some_and(|only| only != what) {
            return Ok(());
        }
        self.steps += 1;
        match self.fail_from {
            Some(from) if self.steps == from + 1 || (self.steps > from && !self.once) => {
                Err(Error::io(format!("injected failure of {what}")))
            }
            _ => Ok(()),
        }
    }
}

/// A store with faults, as the module describes. Clones are the same store.
#[derive(Clone, Default)]
pub struct FaultStore(Arc<Mutex<State>>);

impl FaultStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// A store whose files are all durable.
    pub fn with_files_of(store: &dyn LocalStore) -> FaultStore {
        let out = FaultStore::default();
        for name in store.list().unwrap() {
            let bytes = bytes_of(store, &name);
            let content = Content {
                current: bytes.clone(),
                durable: bytes,
                name_durable: true,
                ..Content::default()
            };
            out.state().files.insert(name, content);
        }
        out
    }

    /// From the step after this many on, everything fails. Counts from now.
    pub fn fail_after(&self, steps: usize) {
        let mut state = self.state();
        (state.steps, state.fail_from, state.only, state.once) = (0, Some(steps), None, false);
    }

    /// The next call of this kind fails, later ones do not.
    pub fn fail_next(&self, what: &'static str) {
        let mut state = self.state();
        (state.steps, state.fail_from, state.only, state.once) = (0, Some(0), Some(what), true);
    }

    /// From now on syncs of files whose names begin with `prefix` succeed and do nothing: a device
    /// that lies, to show that a test notices what it is there to notice.
    pub fn lie_about_syncs_of(&self, prefix: &str) {
        self.state().lie_about = Some(prefix.to_string());
    }

    /// Steps since the last call that set a failure.
    pub fn steps(&self) -> usize {
        self.state().steps
    }

    /// Syncs that were tried.
    pub fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// Makes each sync take this long.
    pub fn set_sync_time(&self, takes: Duration) {
        self.state().sync_takes = takes;
    }

    /// The files as a machine that lost power now may find them.
    pub fn after_crash(&self, random: &mut Random) -> Arc<dyn LocalStore> {
        let out = MemoryStore::new();
        let state = self.state();
        for (name, content) in &state.files {
            if content.name_durable || random.below(2) == 0 {
                put(&out, name, &content.after_crash(random));
            }
        }
        for (name, content) in &state.removed {
            if !state.files.contains_key(name) && random.below(2) == 0 {
                put(&out, name, &content.after_crash(random));
            }
        }
        Arc::new(out)
    }
}

struct FaultFile {
    name: String,
    store: FaultStore,
}

impl LocalStore for FaultStore {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.state().files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        match self.state().files.contains_key(name) {
            true => Ok(Arc::new(FaultFile { name: name.to_string(), store: self.clone() })),
            false => Err(Error::not_found(name)),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let mut state = self.state();
        state.step("create")?;
        if state.files.contains_key(name) {
            return Err(Error::already_exists(name));
        }
        state.files.insert(name.to_string(), Content::default());
        Ok(Arc::new(FaultFile { name: name.to_string(), store: self.clone() }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        state.step("remove")?;
        let content = state.files.remove(name).ok_or_else(|| Error::not_found(name))?;
        if content.name_durable {
            state.removed.insert(name.to_string(), content);
        }
        Ok(())
    }
}

impl FaultFile {
    fn with<T>(&self, what: &'static str, run: impl FnOnce(&mut Content) -> T) -> Result<T> {
        let mut state = self.store.state();
        state.step(what)?;
        state
            .files
            .get_mut(&self.name)
            .map(run)
            .ok_or_else(|| Error::io(format!("{} was removed", self.name)))
    }
}

impl LocalFile for FaultFile {
    fn len(&self) -> Result<u64> {
        let state = self.store.state();
        Ok(state.files.get(&self.name).map_or(0, |content| content.current.len() as u64))
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let state = self.store.state();
        let bytes = &state.files.get(&self.name).ok_or_else(|| Error::io("removed"))?.current;
        for range in ranges {
            let start = range.offset as usize;
            let source = bytes
                .get(start..start + range.buffer.len())
                .ok_or_else(|| Error::corrupt("past the end"))?;
            range.buffer.copy_from_slice(source);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = self.with("write", |content| {
            content.change(Change::Write(offset as usize, bytes.to_vec()))
        });
        if written.is_err() {
            // A write that fails may have done half of its work.
            let half = bytes[..bytes.len() / 2].to_vec();
            if let Some(content) = self.store.state().files.get_mut(&self.name) {
                content.change(Change::Write(offset as usize, half));
            }
        }
        written
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.with("truncate", |content| content.change(Change::Truncate(len as usize)))
    }

    fn sync(&self) -> Result<()> {
        let takes = self.store.state().sync_takes;
        if !takes.is_zero() {
            std::thread::sleep(takes);
        }
        let lie = {
            let mut state = self.store.state();
            state.syncs += 1;
            state.lie_about.as_ref().is_some_and(|prefix| self.name.starts_with(prefix.as_str()))
        };
        let synced = self.with("sync", |content| {
            if lie {
                return;
            }
            for change in std::mem::take(&mut content.changes) {
                Content::apply(&mut content.durable, &change);
            }
            content.name_durable = true;
        });
        let mut state = self.store.state();
        if synced.is_err()
            && state.once
            && let Some(content) = state.files.get_mut(&self.name)
        {
            content.changes.retain(|change| matches!(change, Change::Truncate(_)));
        }
        synced
    }
}
