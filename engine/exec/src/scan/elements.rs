//! Rows of the elements of an array in documents, read where segments store the elements: the
//! document is not put together and taken apart again.
//!
//! A batch of the scan below is read, then the rows of its elements, a vector's length at a time.
//! Where the arrays of a batch are not stored as such, and for rows in memory, elements come from
//! text.

use super::access::source_of;
use super::source::{Locators, Origin, PathColumn, RowSource, Stored, is_existence};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::{Batch, Vector, VectorBuilder};
use nacre_function::json::outline::{Extent, Outline, Part};
use nacre_operator::context::Context;
use nacre_operator::expr::ActiveRows;
use nacre_operator::operator::json_rows::{coded, wrong};
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::ExprKind;
use nacre_sql::plan::node::json_rows::{DocumentRows, JsonRows};
use nacre_table::{PathPlace, PathRows, SegmentView};
use nacre_types::{DataType, Result, Value, limits};
use std::sync::Arc;

/// About how many elements are listed at once.
const MOST_ELEMENTS: usize = 16 * limits::VECTOR_ROWS;

/// The operator of rows of documents over a scan; `None` if it is the general one.
pub(crate) fn build_elements(
    node: &JsonRows,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let Some((spec, array)) = elements_of(node) else { return Ok(None) };
    let table = context.table_of(spec.schema)?;
    let view = view_of(&table, spec, context);
    let mut source = source_of(spec, view, Locators::Leave, context)?;
    let column = spec.projection.len() + array;
    source.need_only((0..spec.width()).map(|at| at != column).collect());
    Ok(Some(Box::new(Elements {
        source,
        array: PathColumn::new(&spec.paths[array]),
        column,
        paths: node.paths.iter().map(PathColumn::new).collect(),
        rows: node.rows,
        numbers: node.parts.len(),
        name: node.name,
        batch: None,
        current: None,
    })))
}

/// The scan below rows of documents, and which of its paths has the arrays.
fn elements_of(node: &JsonRows) -> Option<(ScanSpec<'_>, usize)> {
    let is_whole = match (node.rows, &node.path) {
        (DocumentRows::Elements, None) => true,
        (DocumentRows::Matches, Some(path)) => {
            path.kind == ExprKind::Literal(Value::Text("$[*]".into()))
        }
        _ => false,
    };
    let is_direct = is_whole
        && node.is_last_reader
        && !node.outer
        && node.parts.iter().all(|part| *part == Part::Ordinal)
        && !node.paths.iter().any(is_existence);
    let spec = ScanSpec::of(&node.input).filter(|_| is_direct)?;
    let ExprKind::Column(document) = node.document.kind else { return None };
    let array = document.checked_sub(spec.projection.len())?;
    Some((spec, array))
}

struct Elements {
    source: RowSource,
    /// The arrays, and their column in the batches of the scan.
    array: PathColumn,
    column: usize,
    /// Parts of an element.
    paths: Vec<PathColumn>,
    rows: DocumentRows,
    /// How many columns have the number of an element.
    numbers: usize,
    name: &'static str,
    /// A batch, and how many of its selected rows are done.
    batch: Option<(Batch, Origin, usize)>,
    current: Option<Current>,
}

/// The elements of some rows of a batch.
struct Current {
    columns: Vec<Arc<Vector>>,
    /// Number of selected rows.
    rows: usize,
    /// The row of the batch that each element is of.
    sources: Vec<u32>,
    values: Values,
    /// The next element.
    next: usize,
}

enum Values {
    /// JSON.
    Texts(Vector),
    /// Rows of elements of a segment, whose arrays are at a place.
    Stored(SegmentView, Arc<PathPlace>, Vec<u32>),
}

impl Operator for Elements {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.give_way()?;
            if let Some(current) = &self.current {
                let to = current.sources.len().min(current.next + limits::VECTOR_ROWS);
                let made = match current.next < to {
                    true => Some(context.counted(|context| self.made(current, to, context))?),
                    false => None,
                };
                match &mut self.current {
                    Some(current) if made.is_some() => current.next = to,
                    current => *current = None,
                }
                if made.is_some() {
                    return Ok(made);
                }
            }
            if self.batch.is_none() {
                let next = self.source.next(context)?;
                self.batch = next.map(|(batch, origin)| (batch, origin, 0));
            }
            // Nothing is lost if bytes are absent.
            let Some((batch, origin, done)) = &self.batch else { return Ok(None) };
            let active = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
            let rows = active.to_selection();
            let rows = &rows[(*done).min(rows.len())..];
            self.current = match rows.is_empty() {
                true => None,
                false => Some(context.counted(|context| self.begin(batch, origin, rows, context))?),
            };
            match (&self.current, &mut self.batch) {
                (Some(current), Some((_, _, done))) => *done += current.rows,
                (_, batch) => *batch = None,
            }
        }
    }
}

impl Elements {
    /// Lists elements of selected rows of a batch.
    fn begin(
        &self,
        batch: &Batch,
        origin: &Origin,
        selected: &[u32],
        context: &Context<'_>,
    ) -> Result<Current> {
        let columns = batch.columns.iter().cloned().map(coded).collect();
        let (view, rows) = match origin {
            Origin::Segment { view, start } => (view, PathRows::Range(*start..*start + batch.rows)),
            Origin::SegmentRows { view, rows } => (view, PathRows::Single(rows)),
            Origin::Memory(_) => {
                return self.texts(columns, &batch.columns[self.column], selected);
            }
        };
        let stored = view.columns.get(self.array.document).copied().flatten();
        let place = match stored {
            Some(stored) => self.array.stored(view, stored)?,
            None => Stored::Text,
        };
        if let Stored::Path(place) = place
            && let Some(arrays) = view.segment.arrays(&place, &rows, selected)?
            && (self.rows == DocumentRows::Matches || arrays.iter().all(Option::is_some))
        {
            let (mut sources, mut elements, mut rows) = (Vec::new(), Vec::new(), 0);
            for (row, array) in selected.iter().zip(arrays) {
                let array = array.unwrap_or_default();
                sources.resize(sources.len() + array.len(), *row);
                elements.extend(array);
                rows += 1;
                if sources.len() >= MOST_ELEMENTS {
                    break;
                }
            }
            let values = Values::Stored(view.clone(), place, elements);
            return Ok(Current { columns, rows, sources, values, next: 0 });
        }
        let arrays = self.source.read_column(self.column, view, &rows, context)?;
        self.texts(columns, &arrays, selected)
    }

    /// The elements of arrays that are JSON.
    fn texts(
        &self,
        columns: Vec<Arc<Vector>>,
        arrays: &Vector,
        selected: &[u32],
    ) -> Result<Current> {
        let mut values = VectorBuilder::new(DataType::Json);
        let (mut sources, mut rows) = (Vec::new(), 0);
        for row in selected {
            if sources.len() >= MOST_ELEMENTS {
                break;
            }
            rows += 1;
            let Value::Json(text) = arrays.value(*row as usize) else { continue };
            if !text.starts_with('[') {
                match self.rows {
                    DocumentRows::Elements => return Err(wrong(self.name, "an array")),
                    _ => continue,
                }
            }
            let outline = Outline::new(&text, "$", Extent::Children)?;
            (0..outline.rows()).for_each(|at| values.push(&outline.part(at, Part::Value)));
            sources.resize(sources.len() + outline.rows(), *row);
        }
        let values = Values::Texts(values.finish());
        Ok(Current { columns, rows, sources, values, next: 0 })
    }

    /// A batch of the elements from the next one on.
    fn made(&self, current: &Current, to: usize, context: &Context<'_>) -> Result<Batch> {
        let range = current.next..to;
        let sources = &current.sources[range.clone()];
        let mut columns = Vec::with_capacity(self.numbers + self.paths.len());
        for _ in 0..self.numbers {
            let mut numbers = VectorBuilder::new(DataType::Int64);
            for at in range.clone() {
                let first = current.sources[..at].partition_point(|row| *row < current.sources[at]);
                numbers.push_i64((at - first) as i64 + 1);
            }
            columns.push(Arc::new(numbers.finish()));
        }
        match &current.values {
            Values::Texts(texts) => {
                let positions: Vec<u32> = (range.start as u32..range.end as u32).collect();
                let texts = Arc::new(texts.take(&positions));
                for path in &self.paths {
                    columns.push(path.compute(&texts, context)?);
                }
            }
            Values::Stored(view, arrays, elements) => {
                let elements = &elements[range];
                let (first, last) = (elements[0] as usize, elements[elements.len() - 1] as usize);
                let rows = match last + 1 - first == elements.len() {
                    true => PathRows::Range(first..last + 1),
                    false => PathRows::Single(elements),
                };
                for path in &self.paths {
                    columns.push(path.in_elements(view, arrays, &rows, context)?);
                }
            }
        }
        columns.extend(current.columns.iter().map(|column| Arc::new(column.take(sources))));
        Ok(Batch::new(columns, sources.len()))
    }
}
