//! Checks sorted runs: the bounds of their segments, and that no two of them overlap.

use crate::maintenance::check::findings::Findings;
use crate::segments::state::SegmentState;
use crate::table::run::Run;
use crate::table::version::Table;
use nacre_types::{Result, Timestamp, Value};

/// How far a run was checked.
pub(super) struct CheckedRun {
    /// The position of the next segment.
    next: usize,
    /// The number and the last order key of the segment before.
    previous: Option<(u64, Vec<u8>)>,
}

impl CheckedRun {
    /// Nothing checked.
    pub fn new() -> CheckedRun {
        CheckedRun { next: 0, previous: None }
    }

    /// Checks the next segment of a run; returns whether there was one. Rows inside segments are
    /// checked elsewhere. Fails if it met absent bytes.
    pub fn step(
        &mut self,
        (table, run): (&Table, &Run),
        at: Timestamp,
        findings: &mut Findings,
    ) -> Result<bool> {
        let Some(state) = run.states().get(self.next) else { return Ok(false) };
        // The file of any other may be gone by now.
        let is_there = state.exists_at(at) || state.is_current();
        if is_there && state.segment.rows() > 0 {
            let place = format!("table {}", table.schema().name);
            let checked = self.check(table, run, state, findings);
            findings.check(&place, checked)?;
        }
        self.next += 1;
        debug_assert!(self.next <= run.states().len(), "more segments than a run has are checked");
        Ok(true)
    }

    fn check(
        &mut self,
        table: &Table,
        run: &Run,
        state: &SegmentState,
        findings: &mut Findings,
    ) -> Result<()> {
        let place = format!("table {}: run {}", table.schema().name, run.place().number);
        let first = order_of(table, state, 0)?;
        let last = order_of(table, state, state.segment.rows() - 1)?;
        if first < state.bounds().first || last > state.bounds().last {
            findings.add(format!("{place}: segment {} has rows beyond its bounds", state.id()));
        }
        if let Some((before, _)) = self.previous.as_ref().filter(|(_, end)| *end >= first) {
            findings.add(format!("{place}: segments {before} and {} overlap", state.id()));
        }
        self.previous = Some((state.id(), last));
        Ok(())
    }
}

/// The order key of a row.
fn order_of(table: &Table, state: &SegmentState, row: usize) -> Result<Vec<u8>> {
    let columns = table.layout().order_columns(&state.segment)?;
    let values: Vec<Value> =
        columns.iter().map(|column| state.segment.get(*column, row)).collect::<Result<_>>()?;
    table.layout().encode_order(&values)
}
