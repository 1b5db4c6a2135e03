//! Tests of the log: guarantees without faults, damaged bytes, failing and crashing stores,
//! concurrency.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may use threads and sleep"
)]

mod basics;
mod commit;
mod crash;
mod damage;
mod reach;
mod tail;

use crate::format::{FILE_HEADER_BYTES, FileKind};
use crate::{Log, LogOptions, Lsn};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalStore, ReadRange};
use nacre_types::{ErrorKind, Result};
use std::cell::Cell;
use std::sync::Arc;

/// The result of recovery.
#[derive(Clone, Debug, Default, PartialEq)]
struct Replayed {
    snapshot: Option<Vec<u8>>,
    records: Vec<(Lsn, Vec<u8>)>,
}

impl Replayed {
    fn payloads(&self) -> Vec<&[u8]> {
        self.records.iter().map(|(_, payload)| payload.as_slice()).collect()
    }
}

fn open_with(
    store: &Arc<dyn LocalStore>,
    chunk_bytes: u64,
    database_id: u64,
) -> Result<(Log, Replayed)> {
    let mut replayed = Replayed::default();
    let any_record = Cell::new(false);
    let Replayed { snapshot, records } = &mut replayed;
    let log = Log::open(
        store.clone(),
        LogOptions { chunk_bytes, database_id, ..LogOptions::default() },
        &mut |payload| {
            assert!(snapshot.is_none() && !any_record.get(), "one snapshot, before every record");
            *snapshot = Some(payload.to_vec());
            Ok(())
        },
        &mut |lsn, payload| {
            any_record.set(true);
            records.push((lsn, payload.to_vec()));
            Ok(())
        },
    )?;
    Ok((log, replayed))
}

fn open(store: &Arc<dyn LocalStore>) -> Result<(Log, Replayed)> {
    open_with(store, 1 << 20, 0xda7a)
}

fn memory() -> Arc<dyn LocalStore> {
    Arc::new(MemoryStore::new())
}

fn commit(log: &Log, payload: &[u8]) -> Lsn {
    let lsn = log.append(payload).unwrap();
    log.sync(lsn).unwrap();
    lsn
}

fn bytes_of(store: &dyn LocalStore, name: &str) -> Vec<u8> {
    let file = store.open(name).unwrap();
    let mut buffer = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut buffer }]).unwrap();
    buffer
}

/// A chunk of the log, truncated by the space reserved at its end.
fn trimmed(store: &dyn LocalStore, name: &str) -> Vec<u8> {
    let start = FileKind::Chunk.parse(name).unwrap();
    let mut ends = Vec::new();
    Log::open(copy(store), LogOptions::default(), &mut |_| Ok(()), &mut |lsn, _| {
        ends.push(lsn);
        Ok(())
    })
    .map(|log| ends.push(log.position()))
    .unwrap();
    let mut bytes = bytes_of(store, name);
    bytes.truncate(FILE_HEADER_BYTES + (ends.last().unwrap() - start) as usize);
    put(store, name, &bytes);
    bytes
}

fn put(store: &dyn LocalStore, name: &str, bytes: &[u8]) {
    let _ = store.remove(name);
    store.create(name).unwrap().write(0, bytes).unwrap();
}

/// Copies the files into a new store.
fn copy(store: &dyn LocalStore) -> Arc<dyn LocalStore> {
    let out = memory();
    for name in store.list().unwrap() {
        put(out.as_ref(), &name, &bytes_of(store, &name));
    }
    out
}

fn files(store: &dyn LocalStore, prefix: &str) -> Vec<String> {
    let mut names = store.list().unwrap();
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

#[track_caller]
fn expect_error(result: Result<(Log, Replayed)>, kind: ErrorKind, parts: &[&str]) {
    match result {
        Ok((_, replayed)) => panic!("opened, with {} records", replayed.records.len()),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            for part in parts {
                assert!(error.message().contains(part), "{error} does not say {part}");
            }
        }
    }
}
