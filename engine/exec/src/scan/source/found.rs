//! The rows that indexes found: picked one by one, all filters checked on them, the other columns fetched for those
//! that passed.

use super::{Origin, Source};
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::scan::index::{self, Found};
use nacre_column::{Batch, Selection, Vector};
use nacre_table::{SegmentView, TableView};
use nacre_types::{Result, limits};
use std::sync::Arc;

impl Source {
    /// Looks at nothing but what indexes found. Only before the first rows.
    pub fn only(&mut self, found: Found) {
        self.segments = Vec::new().into_iter();
        self.found = found.segments.into_iter().rev().collect();
        self.found_memory = found.memory.into_iter();
        self.memory = None;
        self.counts_only = false;
    }

    /// Asks the indexes before the first rows are asked for: joins above know their keys only then.
    pub fn look_up_later(&mut self, view: TableView) {
        self.later = Some(view);
    }

    /// See [`Source::look_up_later`].
    pub(super) fn look_up(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(view) = self.later.take()
            && let Some(found) = index::find(
                &self.schema,
                &view,
                &self.projection,
                &self.filters,
                &self.wanted,
                context,
            )?
        {
            self.only(found);
        }
        Ok(())
    }

    /// The next of the rows that indexes found in segments.
    pub(super) fn next_found(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        while let Some((view, mut rows)) = self.found.pop() {
            context.check_cancelled()?;
            let later = rows.split_off(rows.len().min(limits::VECTOR_ROWS));
            context.statistics.rows_read.add(rows.len());
            let found = self.pick_found(&view, rows, context)?;
            if !later.is_empty() {
                self.found.push((view, later));
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Those of some rows that pass the filters.
    pub(in crate::scan) fn pick_found(
        &self,
        view: &SegmentView,
        mut rows: Vec<u32>,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let mut columns: Vec<Option<Arc<Vector>>> = vec![None; self.projection.len()];
        for (column, slot) in columns.iter_mut().enumerate() {
            if self.filtered[column] {
                *slot = Some(self.take(view, column, &rows, context)?);
            }
        }
        let passed = self.filter(&self.filters, &columns, ActiveRows::all(rows.len()), context)?;
        let passed = self.wanted_of_found(view, &rows, passed, &columns, context)?;
        if passed.is_empty() {
            return Ok(None);
        }
        if passed.len() < rows.len() {
            rows = passed.iter().map(|at| rows[*at as usize]).collect();
            columns
                .iter_mut()
                .flatten()
                .for_each(|vector| *vector = Arc::new(vector.take(&passed)));
        }
        let columns = (columns.into_iter().enumerate())
            .map(|(column, have)| match have {
                Some(vector) => Ok(vector),
                None if !self.needed[column] => Ok(self.stand_in(column, rows.len())),
                None => self.take(view, column, &rows, context),
            })
            .collect::<Result<Vec<_>>>()?;
        let batch = Batch::new(columns, rows.len());
        Ok(Some((
            batch,
            Origin::SegmentRows { partition: view.partition, segment: view.segment.id(), rows },
        )))
    }

    /// Those of the `passed` rows that joins above may have a use for.
    fn wanted_of_found(
        &self,
        view: &SegmentView,
        rows: &[u32],
        mut passed: Selection,
        columns: &[Option<Arc<Vector>>],
        context: &Context<'_>,
    ) -> Result<Selection> {
        for (column, filter) in self.wanted.0.iter().filter(|(_, filter)| filter.is_worth_it()) {
            if passed.is_empty() {
                break;
            }
            passed = match &columns[*column] {
                Some(vector) => {
                    filter.select(vector, ActiveRows { len: rows.len(), selection: Some(&passed) })
                }
                None => {
                    let left: Vec<u32> = passed.iter().map(|at| rows[*at as usize]).collect();
                    let vector = self.take(view, *column, &left, context)?;
                    filter
                        .select(&vector, ActiveRows::all(left.len()))
                        .iter()
                        .map(|at| passed[*at as usize])
                        .collect()
                }
            };
        }
        Ok(passed)
    }
}
