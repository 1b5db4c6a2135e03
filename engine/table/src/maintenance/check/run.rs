//! Runs all checks on all tables, step by step: a step that met absent bytes can be called again
//! once they were fetched.

use crate::commit::snapshots::SnapshotGuard;
use crate::maintenance::check::findings::{Findings, Seen};
use crate::maintenance::check::hashes::CheckedHashes;
use crate::maintenance::check::indexes::{self, CheckedIndex};
use crate::maintenance::check::rows;
use crate::maintenance::check::runs::CheckedRun;
use crate::maintenance::context::TaskContext;
use crate::segments::state::SegmentState;
use crate::table::run::Run;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::{Result, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// A check under way. It sees rows as of its beginning.
pub struct Check {
    guard: Arc<SnapshotGuard>,
    tables: VecDeque<Arc<Table>>,
    table: Option<CheckedTable>,
    findings: Findings,
}

/// A table whose parts are checked one after the other.
struct CheckedTable {
    table: Arc<Table>,
    parts: VecDeque<CheckedPart>,
    /// Its keys, then the values of the index that is checked.
    seen: Seen,
}

/// A part of a table, and how far it was checked.
enum CheckedPart {
    /// The rows of a segment of a partition.
    Rows(u32, Arc<SegmentState>),
    /// The rows of a partition in memory.
    Memory(u32),
    Run(Arc<Run>, CheckedRun),
    /// Begins to check another index.
    Index,
    /// An index, by its position, against a segment.
    Entries(usize, Arc<SegmentState>, CheckedIndex),
    /// An index against the rows of a partition in memory.
    MemoryEntries(usize, u32),
    /// A hash table of a partition.
    Hashes(u32, Box<CheckedHashes>),
}

impl Check {
    /// Begins a check of all tables.
    pub(crate) fn new(context: &TaskContext) -> Check {
        Check {
            guard: context.snapshots().take(),
            tables: context.catalog().tables().into(),
            table: None,
            findings: Findings::default(),
        }
    }

    /// Checks the next part; returns whether there was one. Can be called again after an error,
    /// which is one of absent bytes.
    pub(crate) fn step(&mut self, context: &TaskContext) -> Result<bool> {
        let (at, findings) = (self.guard.at(), &mut self.findings);
        let Some(table) = &mut self.table else {
            let next = self.tables.pop_front();
            self.table = next.map(|table| CheckedTable::new(table, at));
            return Ok(self.table.is_some());
        };
        let Some(mut part) = table.parts.pop_front() else {
            self.table = None;
            return Ok(true);
        };
        let known = findings.len();
        let step = table.step(&mut part, at, findings, context);
        match step {
            Ok(_) => table.seen.keep(),
            Err(_) => {
                table.seen.undo();
                findings.truncate(known);
            }
        }
        if !matches!(step, Ok(false)) {
            table.parts.push_front(part);
        }
        step.map(|_| true)
    }

    /// What was found, one sentence each.
    pub(crate) fn into_findings(self) -> Vec<String> {
        debug_assert!(self.table.is_none() && self.tables.is_empty(), "a check ends too early");
        self.findings.into_list()
    }
}

impl CheckedTable {
    fn new(table: Arc<Table>, at: Timestamp) -> CheckedTable {
        let mut parts = VecDeque::new();
        let lists: Vec<Arc<SegmentList>> =
            table.partitions().iter().map(|partition| partition.segments()).collect();
        let numbered = || (0u32..).zip(&lists);
        let there = |list: &Arc<SegmentList>| -> Vec<Arc<SegmentState>> {
            list.iter().filter(|state| state.exists_at(at)).cloned().collect()
        };
        for (number, list) in numbered() {
            parts.extend(there(list).into_iter().map(|state| CheckedPart::Rows(number, state)));
            parts.push_back(CheckedPart::Memory(number));
        }
        let runs = lists.iter().flat_map(|list| list.runs());
        parts.extend(runs.map(|run| CheckedPart::Run(run.clone(), CheckedRun::new())));
        for index in 0..table.indexes().len() {
            parts.push_back(CheckedPart::Index);
            for (number, list) in numbered() {
                let entries = |state| CheckedPart::Entries(index, state, CheckedIndex::new());
                parts.extend(there(list).into_iter().map(entries));
                parts.push_back(CheckedPart::MemoryEntries(index, number));
            }
        }
        for (number, list) in numbered() {
            let hashes =
                |hashes| CheckedPart::Hashes(number, Box::new(CheckedHashes::new(&table, hashes)));
            parts.extend(list.tables().iter().map(hashes));
        }
        debug_assert!(
            parts.len() >= lists.len() * (1 + table.indexes().len()),
            "a partition of table {} is not checked",
            table.schema().name
        );
        CheckedTable { table, parts, seen: Seen::default() }
    }

    /// Checks a part, or some of it; returns whether there is more of it.
    fn step(
        &mut self,
        part: &mut CheckedPart,
        at: Timestamp,
        findings: &mut Findings,
        context: &TaskContext,
    ) -> Result<bool> {
        let (table, seen) = (&*self.table, &mut self.seen);
        match part {
            CheckedPart::Rows(number, state) => {
                rows::check_segment(table, *number, state, at, seen, findings)?;
            }
            CheckedPart::Memory(number) => {
                rows::check_rowstore(table, table.partition(*number), at, seen, findings);
            }
            CheckedPart::Run(run, checked) => return checked.step((table, run), at, findings),
            CheckedPart::Index => *seen = Seen::default(),
            CheckedPart::Entries(index, state, checked) => {
                let index = &table.indexes()[*index];
                return checked.step((table, index), state, at, seen, findings);
            }
            CheckedPart::MemoryEntries(index, number) => {
                let (index, partition) = (&table.indexes()[*index], table.partition(*number));
                // Nothing keeps the entries of an index that was dropped meanwhile.
                let newest = context.catalog().newest(&self.table);
                if newest.is_ok_and(|newest| newest.has_index(index.id())) {
                    indexes::check_memory(table, index, partition, at, seen, findings);
                }
            }
            CheckedPart::Hashes(number, checked) => {
                return checked.step(table, &table.partition(*number).segments(), findings);
            }
        }
        Ok(false)
    }
}
