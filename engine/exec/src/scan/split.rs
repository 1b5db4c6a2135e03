//! A scan split into morsels for several threads.

use super::index::{self, Found};
use super::morsel::Morsel;
use super::point::point_key;
use super::source::{Locators, RowSource};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_table::TableView;
use nacre_types::Result;

/// A scan's input, divided for several threads.
pub(crate) struct SplitScan {
    /// In the scan's order.
    pub morsels: Vec<Morsel>,
    /// The view to search by index once the joins above know their keys ([`SplitScan::look_up`]).
    later: Option<TableView>,
    /// Whether indexes found the rows, which justifies several threads even for few rows.
    pub is_found: bool,
}

/// When to look up indexes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskIndexes {
    Now,
    /// Once the joins above the scan have collected their keys.
    AfterJoins,
}

impl SplitScan {
    fn of_found(
        spec: ScanSpec<'_>,
        view: TableView,
        found: Found,
        context: &Context<'_>,
    ) -> Result<SplitScan> {
        let mut source = RowSource::new(spec, view, Locators::Leave, context);
        source.read_only(found);
        let rows = context.threads.morsel_rows;
        let mut morsels = context.counted(|context| source.morsels(rows, context))?;
        if morsels.is_empty() {
            morsels.push(Morsel::Batches(Vec::new()));
        }
        Ok(SplitScan { morsels, later: None, is_found: true })
    }

    /// Looks up indexes with the filters of the joins above, which are filled now. Rows found
    /// replace the morsels.
    pub fn look_up(
        &mut self,
        spec: ScanSpec<'_>,
        filters: &RuntimeFilters,
        context: &Context<'_>,
    ) -> Result<()> {
        let Some(view) = &self.later else { return Ok(()) };
        match index::find(spec, view, filters, context)? {
            Some(found) => *self = SplitScan::of_found(spec, view.clone(), found, context)?,
            None => self.later = None,
        }
        Ok(())
    }
}

/// Divides a scan's input. `None` if several threads are not worthwhile.
pub(crate) fn split(
    spec: ScanSpec<'_>,
    indexes: AskIndexes,
    context: &Context<'_>,
) -> Result<Option<SplitScan>> {
    let table = context.table_of(spec.schema)?;
    // A single row by key, or a row count that needs no reading.
    if point_key(spec, context).is_some() || (spec.width() == 0 && spec.filters.is_empty()) {
        return Ok(None);
    }
    let view = view_of(&table, spec, context);
    let mut later = None;
    if indexes == AskIndexes::AfterJoins {
        later = Some(view.clone());
    } else if let Some(found) = index::find(spec, &view, &RuntimeFilters::default(), context)? {
        return SplitScan::of_found(spec, view, found, context).map(Some);
    }
    let source = RowSource::new(spec, view, Locators::Leave, context);
    let rows = context.threads.morsel_rows;
    let morsels = context.counted(|context| source.morsels(rows, context))?;
    Ok(Some(SplitScan { morsels, later, is_found: false }))
}
