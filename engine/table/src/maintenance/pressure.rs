//! Backpressure: what the rowstores of all tables hold of their share, which flush would relieve
//! them, and what a write waits for.
//!
//! Writes never flush. Above a soft limit the background work flushes the fullest rowstore, and a
//! session waits in proportion to the rows that it wrote last; the wait grows with the square of
//! the way from the soft limit to the limit. At the limit, a write waits until a flush has made
//! room. It is refused only if no flush can make any.

use crate::maintenance::context::TaskContext;
use crate::record::Place;
use crate::table::version::Table;
use nacre_types::plant::{self, Bug};
use nacre_types::walked::{self, Path};
use nacre_types::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest delay of a write that may begin, and the time between two looks at full rowstores,
/// in nanoseconds.
const LONGEST_DELAY_NS: u64 = 50_000_000;
/// A session that wrote at least this many rows last waits for the whole delay.
const ROWS_OF_A_DELAY: u64 = 256;
/// A flush is worth its file if at least this fraction of the soft limit is to be flushed.
const WORTH_FLUSHING: usize = 4;

/// The answer to a write that asks for room in the rowstores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may begin.
    Granted,
    /// It may begin after this many nanoseconds: the rowstores fill faster than they are flushed.
    Delayed(u64),
    /// It asks again after this many nanoseconds: the rowstores are full, and are being flushed.
    Full(u64),
}

/// What a write that asks for room has to do with the rowstores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking {
    /// Rows that its session wrote last, and has not waited for.
    pub rows: u64,
    /// Whether it does not ask again, but gives up if there is no room.
    pub is_last: bool,
}

/// What is known about flushes besides the sizes on the agenda.
#[derive(Default)]
pub(crate) struct Pressure {
    /// Whether a flush is in progress, or a snapshot, which keeps rows until it ends.
    is_urgent: AtomicBool,
    /// Whether the last step of either failed.
    has_failed: AtomicBool,
}

/// A partition of a table, by its number.
type Filled = (Arc<Table>, u32);

/// Partitions with rows in memory.
fn filled(context: &TaskContext) -> Vec<Filled> {
    let catalog = context.catalog();
    let known = |place: Place| {
        let found = catalog.at_place(place);
        if found.is_none() {
            catalog.agenda().set_filled(place, false);
        }
        found
    };
    let filled: Vec<Filled> = catalog.agenda().filled().into_iter().filter_map(known).collect();
    debug_assert!(
        filled.iter().all(|(table, number)| (*number as usize) < table.partitions().len()),
        "a partition with rows is in no table"
    );
    filled
}

/// Counts these rowstores. Returns the partition with the most unflushed bytes, if it has any, and
/// those bytes of all partitions together.
fn count(filled: &[Filled]) -> (usize, Option<&Filled>) {
    let (mut unflushed, mut most, mut fullest) = (0, 0, None);
    for one in filled {
        let (table, number) = one;
        let partition = table.partition(*number);
        table.recount(partition);
        let bytes = partition.unflushed(table.entry_bytes(partition));
        unflushed += bytes;
        if bytes > most {
            (most, fullest) = (bytes, Some(one));
        }
    }
    debug_assert!(
        fullest.is_some() == (unflushed > 0),
        "{unflushed} bytes to flush are in no partition"
    );
    (unflushed, fullest)
}

/// The partition to flush because all rowstores together exceed their soft limit: the one with the
/// most rows that no flush has seen, otherwise one whose rows the last flush left for a snapshot
/// that has ended since. Visits partitions only above the soft limit, and only those with rows.
pub(crate) fn relief(context: &TaskContext) -> Option<(Arc<Table>, u32)> {
    let (agenda, soft) = (context.catalog().agenda(), context.options().soft_rowstore_bytes());
    if agenda.held() <= soft {
        return None;
    }
    let filled = filled(context);
    let (unflushed, fullest) = count(&filled);
    if agenda.held() <= soft || plant::is(Bug::KeptRows) && unflushed <= soft {
        return None;
    }
    let oldest = context.snapshots().oldest();
    let left = || {
        let left = filled.iter().filter(|(table, number)| {
            let partition = table.partition(*number);
            partition.wants_flush(0, table.entry_bytes(partition), || oldest)
        });
        left.max_by_key(|(table, number)| table.partition(*number).rowstore_size().1)
    };
    if unflushed > soft / WORTH_FLUSHING { fullest.cloned() } else { left().cloned() }
}

impl Pressure {
    /// Records whether a flush or a snapshot is in progress.
    pub fn note_urgent(&self, is_urgent: bool) {
        self.is_urgent.store(is_urgent, Ordering::Relaxed);
    }

    /// Records the outcome of a step of a flush or a snapshot.
    pub fn note_step(&self, has_failed: bool) {
        self.has_failed.store(has_failed, Ordering::Relaxed);
    }

    /// Whether a flush can make room, or may be able to when a snapshot has ended.
    pub fn can_relieve(&self, context: &TaskContext) -> bool {
        self.is_urgent.load(Ordering::Relaxed) || relief(context).is_some()
    }

    /// Answers a write that asks for room, without visiting tables if there is some. `limit` if no
    /// flush can make any.
    pub fn admit(&self, asking: Asking, context: &TaskContext) -> Result<Admission> {
        let (options, agenda) = (context.options(), context.catalog().agenda());
        let (soft, limit) = (options.soft_rowstore_bytes(), options.rowstore_bytes);
        debug_assert!(soft <= limit, "a soft limit of {soft} bytes is above the limit of {limit}");
        if agenda.held() < limit {
            return Ok(match delay_ns(agenda.held(), soft, limit, asking.rows) {
                0 => Admission::Granted,
                ns => {
                    walked::walk(Path::WriteDelayed);
                    Admission::Delayed(ns)
                }
            });
        }
        let can_relieve = self.can_relieve(context);
        if can_relieve && !self.has_failed.load(Ordering::Relaxed) && !asking.is_last {
            walked::walk(Path::WriteDelayed);
            return Ok(Admission::Full(LONGEST_DELAY_NS));
        }
        // A flush may have ended since they were counted.
        count(&filled(context));
        let held = agenda.held();
        match held < limit {
            true => Ok(Admission::Delayed(LONGEST_DELAY_NS)),
            false => Err(refusal(held, limit, can_relieve)),
        }
    }
}

/// The delay of a session that wrote this many rows, while the rowstores hold this many bytes.
fn delay_ns(held: usize, soft: usize, limit: usize, rows: u64) -> u64 {
    let over = held.saturating_sub(soft) as f64 / limit.saturating_sub(soft).max(1) as f64;
    let share = rows.min(ROWS_OF_A_DELAY) as f64 / ROWS_OF_A_DELAY as f64;
    let delay = (over.min(1.0).powi(2) * share * LONGEST_DELAY_NS as f64) as u64;
    debug_assert!(delay <= LONGEST_DELAY_NS, "a write is delayed by {delay} ns");
    delay
}

#[cold]
fn refusal(held: usize, limit: usize, can_relieve: bool) -> Error {
    walked::walk(Path::WriteRefused);
    let (why, hint) = match can_relieve {
        true => ("and no flush makes room", "see the error of background work; make space on disk"),
        false => (
            "and none can be flushed yet",
            "commit or end open transactions and streams, or raise memory_bytes",
        ),
    };
    Error::limit(format!(
        "rowstore: its rows take {held} bytes, its share of memory is {limit}, {why}"
    ))
    .with_sqlstate("53200")
    .with_hint(hint)
}
