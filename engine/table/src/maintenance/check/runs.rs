//! Checks sorted runs: the bounds of their segments, and that no two of them overlap.

use crate::maintenance::check::findings::Findings;
use crate::segments::state::SegmentState;
use crate::table::run::Run;
use crate::table::version::Table;
use nacre_types::{Result, Value};

/// Checks the runs of a table. Rows inside segments are checked elsewhere.
pub(super) fn check(table: &Table, findings: &mut Findings) {
    for partition in table.partitions() {
        for run in partition.segments().runs() {
            if let Err(error) = check_run(table, run, findings) {
                findings.add(format!("table {}: {}", table.schema().name, error.message()));
            }
        }
    }
}

fn check_run(table: &Table, run: &Run, findings: &mut Findings) -> Result<()> {
    let place = format!("table {}: run {}", table.schema().name, run.place().number);
    let mut previous: Option<(u64, Vec<u8>)> = None;
    for state in run.states().iter().filter(|state| state.segment.rows() > 0) {
        let first = order_of(table, state, 0)?;
        let last = order_of(table, state, state.segment.rows() - 1)?;
        if first < state.bounds().first || last > state.bounds().last {
            findings.add(format!("{place}: segment {} has rows beyond its bounds", state.id()));
        }
        if let Some((before, _)) = previous.filter(|(_, end)| *end >= first) {
            findings.add(format!("{place}: segments {before} and {} overlap", state.id()));
        }
        previous = Some((state.id(), last));
    }
    Ok(())
}

/// The order key of a row.
fn order_of(table: &Table, state: &SegmentState, row: usize) -> Result<Vec<u8>> {
    let columns = table.layout().order_columns(&state.segment)?;
    let values: Vec<Value> =
        columns.iter().map(|column| state.segment.get(*column, row)).collect::<Result<_>>()?;
    table.layout().encode_order(&values)
}
