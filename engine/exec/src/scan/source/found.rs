//! The rows that indexes found: picked one by one, all filters checked on them, the other columns fetched for those
//! that passed.

use super::{Origin, Source};
use crate::context::{Context, count};
use crate::expr::Rows;
use crate::scan::index::Found;
use nacre_column::{Batch, Vector};
use nacre_table::SegmentView;
use nacre_types::{Result, limits};
use std::sync::Arc;

impl Source {
    /// Looks at nothing but what indexes found.
    pub fn only(mut self, found: Found) -> Source {
        let segments: Vec<SegmentView> = std::mem::take(&mut self.segments).collect();
        let rows = found.segments.into_iter().rev();
        self.found = rows.filter_map(|(at, rows)| Some((segments.get(at)?.clone(), rows))).collect();
        self.found_memory = found.memory.into_iter();
        self.memory = None;
        self.counts_only = false;
        self
    }

    /// The next of the rows that indexes found in segments.
    pub(super) fn next_found(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        while let Some((view, mut rows)) = self.found.pop() {
            context.check_cancelled()?;
            let later = rows.split_off(rows.len().min(limits::VECTOR_ROWS));
            count(&context.statistics.rows_read, rows.len());
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
    fn pick_found(
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
        let passed = self.filter(&self.filters, &columns, Rows::all(rows.len()), context)?;
        if passed.is_empty() {
            return Ok(None);
        }
        if passed.len() < rows.len() {
            rows = passed.iter().map(|at| rows[*at as usize]).collect();
            columns.iter_mut().flatten().for_each(|vector| *vector = Arc::new(vector.take(&passed)));
        }
        let columns = (columns.into_iter().enumerate())
            .map(|(column, have)| match have {
                Some(vector) => Ok(vector),
                None if !self.needed[column] => Ok(self.stand_in(column, rows.len())),
                None => self.take(view, column, &rows, context),
            })
            .collect::<Result<Vec<_>>>()?;
        let batch = Batch::new(columns, rows.len());
        Ok(Some((batch, Origin::SegmentRows { partition: view.partition, segment: view.segment.id(), rows })))
    }
}
