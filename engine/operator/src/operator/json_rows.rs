//! Rows of JSON documents: reads one document at a time, and makes its rows as they are asked for.

use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::memory::Reservation;
use crate::operator::inputs::{Inputs, exactly};
use crate::operator::protocol::Operator;
use nacre_column::{Batch, Form, Values, Vector, VectorBuilder};
use nacre_function::json::outline::{Extent, Outline, Part};
use nacre_function::json::path::LastPath;
use nacre_function::json::select;
use nacre_function::vector::room::Room;
use nacre_sql::plan::node::json_rows::{DocumentRows, JsonRows};
use nacre_types::{Error, Result, Value, limits};
use std::sync::Arc;

/// The operator of a node.
pub fn operator(node: &JsonRows, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [input] = exactly(inputs);
    // The input of the node is an operator by now.
    let node = JsonRows { input: nacre_sql::plan::Plan::nothing(), ..node.clone() };
    Ok(Box::new(Unfolding { input, node, current: None, held: Reservation::default() }))
}

struct Unfolding {
    input: Box<dyn Operator>,
    node: JsonRows,
    current: Option<Current>,
    held: Reservation,
}

/// A batch of input rows, with the document that is being read.
struct Current {
    columns: Vec<Arc<Vector>>,
    documents: Arc<Vector>,
    paths: Option<Arc<Vector>>,
    path: LastPath,
    /// The input rows that are left, in reverse order.
    rows: Vec<u32>,
    /// The input row of the document.
    row: u32,
    /// `None` for an input row that has no rows of its own.
    outline: Option<Outline>,
    /// The next row of the document.
    next: usize,
}

impl Operator for Unfolding {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.check_cancelled()?;
            if self.current.is_none() {
                let Some(batch) = self.input.next(context)? else { return Ok(None) };
                self.current = Some(self.begin(batch, context)?);
            }
            let Some(current) = &mut self.current else { return Ok(None) };
            let made = current.take(&self.node, &mut self.held, context)?;
            if current.is_over() {
                self.current = None;
            }
            if made.is_some() {
                return Ok(made);
            }
        }
    }
}

impl Unfolding {
    fn begin(&self, batch: Batch, context: &Context<'_>) -> Result<Current> {
        let documents = expr::evaluate_shared(&self.node.document, &batch, context)?;
        let path = self.node.path.as_ref();
        let paths = path.map(|path| expr::evaluate_shared(path, &batch, context)).transpose()?;
        let selected = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let mut rows = selected.to_selection();
        rows.reverse();
        let columns = batch.columns.into_iter().map(coded).collect();
        let path = LastPath::default();
        Ok(Current { columns, documents, paths, path, rows, row: 0, outline: None, next: 0 })
    }
}

impl Current {
    fn is_over(&self) -> bool {
        self.rows.is_empty() && self.left() == 0
    }

    /// Rows that are left of the document.
    fn left(&self) -> usize {
        self.outline.as_ref().map_or(0, |outline| outline.rows() - self.next)
    }

    /// Makes rows until a batch is full or the input rows are read.
    fn take(
        &mut self,
        node: &JsonRows,
        held: &mut Reservation,
        context: &Context<'_>,
    ) -> Result<Option<Batch>> {
        let (most, mut bytes) = (context.most_text_bytes(), 0);
        let of_parts = node.fields.iter().take(node.parts.len());
        let mut columns: Vec<VectorBuilder> =
            of_parts.map(|field| VectorBuilder::new(field.data_type)).collect();
        // What the parts of values are computed from comes last.
        let whole = (!node.paths.is_empty()).then_some(Part::Value);
        columns.extend(whole.map(|part| VectorBuilder::new(part.data_type())));
        let mut sources: Vec<u32> = Vec::new();
        while sources.len() < limits::VECTOR_ROWS {
            if self.left() == 0 {
                let Some(row) = self.rows.pop() else { break };
                (self.row, self.next) = (row, 0);
                self.outline = self.read(row as usize, node)?;
                let bytes = self.outline.as_ref().map_or(0, Outline::memory_bytes);
                context.reserve(held, node.name, bytes)?;
                if self.left() == 0 {
                    if node.outer {
                        columns.iter_mut().for_each(VectorBuilder::push_null);
                        sources.push(row);
                    }
                    continue;
                }
            }
            let Some(outline) = &self.outline else { break };
            let parts = node.parts.iter().chain(&whole);
            let parts = parts.map(|part| outline.part(self.next, *part));
            let values: Vec<Value> = parts.collect();
            let mut more = Room::new(most - bytes);
            let fits = values.iter().try_for_each(|value| more.take_value(value));
            // A batch ends before a row that has no room in it; a row alone must have room.
            match fits {
                Err(error) if sources.is_empty() => return Err(error),
                Err(_) => break,
                Ok(()) => bytes += more.taken(),
            }
            columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value));
            self.next += 1;
            sources.push(self.row);
        }
        if sources.is_empty() {
            return Ok(None);
        }
        let rows = sources.len();
        let mut made: Vec<Arc<Vector>> =
            columns.into_iter().map(|column| Arc::new(column.finish())).collect();
        if let Some(value) = made.pop_if(|_| whole.is_some()) {
            let values = Batch::new(vec![value], rows);
            for path in &node.paths {
                made.push(expr::evaluate_shared(path, &values, context)?);
            }
        }
        made.extend(self.columns.iter().map(|column| Arc::new(column.take(&sources))));
        Ok(Some(Batch::new(made, rows)))
    }

    /// The rows of the document of an input row; `None` if it is null or its path names nothing.
    fn read(&mut self, row: usize, node: &JsonRows) -> Result<Option<Outline>> {
        let Value::Json(document) = self.documents.value(row) else { return Ok(None) };
        let path = match self.paths.as_ref().map(|paths| paths.value(row)) {
            None => "$".to_string(),
            Some(Value::Text(path)) => path,
            Some(_) => return Ok(None),
        };
        let extent = match node.rows {
            DocumentRows::Tree => Extent::Tree,
            DocumentRows::Each
            | DocumentRows::Elements
            | DocumentRows::Members
            | DocumentRows::Matches => Extent::Children,
        };
        match node.rows {
            DocumentRows::Each | DocumentRows::Tree => {
                let found = select::first(&document, self.path.get(&path)?)?;
                found.map(|found| Outline::new(found, &path, extent)).transpose()
            }
            DocumentRows::Matches => {
                let found = select::every(&document, self.path.get(&path)?)?;
                Outline::new(&format!("[{}]", found.join(",")), &path, extent).map(Some)
            }
            DocumentRows::Elements if !document.starts_with('[') => {
                Err(wrong(node.name, "an array"))
            }
            DocumentRows::Members if !document.starts_with('{') => {
                Err(wrong(node.name, "an object"))
            }
            DocumentRows::Elements | DocumentRows::Members => {
                Outline::new(&document, &path, extent).map(Some)
            }
        }
    }
}

/// A column whose texts are not copied when rows are repeated.
pub fn coded(column: Arc<Vector>) -> Arc<Vector> {
    let Form::Flat(values @ Values::Bytes(_)) = column.form() else { return column };
    let codes = (0..column.len() as u32).collect();
    let (data_type, validity) = (column.data_type(), column.validity().cloned());
    Arc::new(Vector::dictionary(data_type, codes, Arc::new(values.clone()), validity))
}

/// The error of a wrong argument of a table function.
#[cold]
pub fn wrong(name: &str, what: &str) -> Error {
    Error::type_error(format!("{name} takes {what}")).with_sqlstate("22023")
}
