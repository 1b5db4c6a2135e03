//! Journals of locks under `loom`: transactions that lock rows while journals are opened, read and
//! closed, in every interleaving. Run with `cargo test -p nacre-table --features loom models`; see
//! `docs/TESTING.md`.
//!
//! The journals are the real ones. A row lock, which has models of its own, is one flag here.

use crate::segments::sync::AtomicBool;
use crate::table::journal::{Journal, Journals, TakenLock};
use crate::table::partition::Partition;
use loom::thread;
use nacre_rowstore::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// A row with its lock.
struct Row {
    partition: u32,
    node: Arc<Node>,
    is_locked: AtomicBool,
}

impl Row {
    fn new(partition: u32) -> Arc<Row> {
        let node = Partition::new(0, 1).rowstore().get_or_insert(b"k");
        Arc::new(Row { partition, node, is_locked: AtomicBool::new(false) })
    }

    /// Takes the lock, as a transaction does before it looks anything up.
    fn lock(&self, journals: &Journals) {
        assert!(!self.is_locked.swap(true, AcqRel));
        journals.note(|| TakenLock::Row { partition: self.partition, node: self.node.clone() });
    }

    fn is_locked(&self) -> bool {
        self.is_locked.load(Acquire)
    }
}

/// The partitions of the locks in a journal, which it no longer has; `None` if it has lost some.
fn taken(journal: &Journal) -> Option<Vec<u32>> {
    let partition = |lock: &TakenLock| match lock {
        TakenLock::Row { partition, .. } => *partition,
        TakenLock::Value { .. } => u32::MAX,
    };
    journal.take().map(|taken| taken.iter().map(partition).collect())
}

/// A load opens a journal, and then looks at the rows in memory. It meets each lock, in the journal
/// or at the row.
///
/// Planted bugs: the fence of `Journals::note` is left out, or that of `Journals::open`.
#[test]
fn a_lock_is_in_the_journal_or_held_when_it_was_opened() {
    model(|| {
        let (journals, row) = (Arc::new(Journals::default()), Row::new(1));
        let writer = {
            let (journals, row) = (journals.clone(), row.clone());
            thread::spawn(move || row.lock(&journals))
        };
        let journal = journals.open(8);
        let was_held = row.is_locked();
        writer.join().unwrap();
        let noted = taken(&journal);
        assert!(was_held || noted == Some(vec![1]), "{noted:?}");
    });
}

/// Two transactions lock rows while the journal is read. Each lock is taken out once.
///
/// Planted bug: `Journal::take` copies the locks and clears them under a second lock.
#[test]
fn each_lock_is_taken_out_of_a_journal_once() {
    model(|| {
        let journals = Arc::new(Journals::default());
        let journal = journals.open(8);
        let writers = [1, 2].map(|partition| {
            let (journals, row) = (journals.clone(), Row::new(partition));
            thread::spawn(move || row.lock(&journals))
        });
        let mut all = taken(&journal).unwrap();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(journal.len(), Some(2 - all.len()));
        all.extend(taken(&journal).unwrap());
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A journal that is full tells so once: what it has lost is looked for at the rows, and what is
/// locked later is in it again.
///
/// Planted bug: as for the model above.
#[test]
fn a_journal_that_lost_locks_tells() {
    model(|| {
        let journals = Arc::new(Journals::default());
        let journal = journals.open(1);
        let rows = [1, 2].map(Row::new);
        let writer = {
            let (journals, rows) = (journals.clone(), rows.clone());
            thread::spawn(move || rows.iter().for_each(|row| row.lock(&journals)))
        };
        let mut met = taken(&journal).unwrap_or_else(|| {
            (1..).zip(&rows).filter(|(_, row)| row.is_locked()).map(|(number, _)| number).collect()
        });
        writer.join().unwrap();
        met.extend(taken(&journal).unwrap_or_else(|| vec![1, 2]));
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, [1, 2]);
    });
}

/// One load ends while another begins and a transaction locks a row. The journal that is open has
/// the lock, whatever becomes of the other.
#[test]
fn closing_a_journal_closes_no_other() {
    model(|| {
        let journals = Arc::new(Journals::default());
        let first = journals.open(8);
        let row = Row::new(1);
        let writer = {
            let (journals, row) = (journals.clone(), row.clone());
            thread::spawn(move || row.lock(&journals))
        };
        let second = journals.open(8);
        let was_held = row.is_locked();
        drop(first);
        writer.join().unwrap();
        let noted = taken(&second);
        assert!(was_held || noted == Some(vec![1]), "{noted:?}");
        drop(second);
        // No journal is open: nothing is noted, and nothing is there to note it.
        Row::new(2).lock(&journals);
        assert_eq!(journals.open(8).len(), Some(0));
    });
}
