//! Output columns of a scan that are parts of documents.
//!
//! A segment that stores documents by their paths is asked for what is at the path only. Where it
//! has that in one column of the part's type, the column is read like any other, encoded; otherwise
//! the values come in several forms, are converted, and put together. From documents that are text,
//! and from rows in memory, the part is computed as the statement wrote it.

use crate::scan::spec::ScanSpec;
use nacre_builtin::scalar::json::get::{
    JSON_EXTRACT, JSON_EXTRACT_STRING, JSON_NO_DOUBLE, JSON_NO_INTEGER, JSON_NUMBER, JSON_QUERY,
    JSON_VALUE,
};
use nacre_builtin::scalar::json::inspect::JSON_EXISTS;
use nacre_column::kernel::Predicate;
use nacre_column::{Batch, Bitmap, Vector, VectorBuilder};
use nacre_function::json::path::{JsonPath, Step};
use nacre_operator::context::Context;
use nacre_operator::expr;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_table::{
    PathForm, PathNeed, PathPart, PathPlace, PathRows, PathStep, SegmentView, Span, Zone,
};
use nacre_types::hash::Map;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Result, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// A part of the documents of a column.
pub(in crate::scan) struct PathColumn {
    /// Over the document alone.
    expr: Expr,
    /// Position of the document in the table.
    pub document: usize,
    path: Vec<Step>,
    /// `None` if segments cannot read it.
    steps: Option<Vec<PathStep>>,
    need: PathNeed,
    /// Where the segment that is read has it, by the number of the segment.
    place: RefCell<Option<(u64, Stored)>>,
}

/// What a segment has of a part.
#[derive(Clone)]
pub(in crate::scan) enum Stored {
    /// All of it, in this column.
    Column(usize),
    /// Nothing: it is null in every row.
    Nowhere,
    /// In several columns, or not as values of its type.
    Path(Arc<PathPlace>),
    /// Documents that are text.
    Text,
}

use PathForm::{Boolean, Double, Integer, String};

const SCALARS: &[PathForm] = &[Integer, Double, String, Boolean];

/// What is read for a call with a result type.
fn need(call: &Expr) -> PathNeed {
    let ExprKind::Function { function, .. } = &call.kind else {
        broken(format_args!("a part of a document is a call"))
    };
    let (scalars, containers, nulls) = (false, false, false);
    let of = |forms| PathNeed { forms, scalars, containers, nulls };
    let is_double = call.data_type == DataType::Float64;
    if *function == JSON_EXTRACT_STRING {
        PathNeed { containers: true, ..of(SCALARS) }
    } else if *function == JSON_VALUE {
        match call.data_type {
            DataType::TEXT => of(SCALARS),
            DataType::Int64 => PathNeed { scalars: true, ..of(&[Integer]) },
            DataType::Float64 => PathNeed { scalars: true, ..of(&[Integer, Double]) },
            DataType::Boolean => PathNeed { scalars: true, ..of(&[Boolean]) },
            _ => PathNeed { scalars: true, ..of(&[]) },
        }
    } else if *function == JSON_NUMBER {
        of(if is_double { &[Integer, Double] } else { &[Integer] })
    } else if *function == JSON_NO_INTEGER {
        PathNeed { containers: true, ..of(&[Double, String, Boolean]) }
    } else if *function == JSON_NO_DOUBLE {
        PathNeed { containers: true, ..of(&[String, Boolean]) }
    } else if *function == JSON_QUERY {
        PathNeed { containers: true, ..of(&[]) }
    } else {
        debug_assert!(*function == JSON_EXTRACT || *function == JSON_EXISTS, "another function");
        PathNeed { scalars: true, containers: true, nulls: true, ..of(&[]) }
    }
}

/// Whether a part is the existence of a value.
pub(in crate::scan) fn is_existence(part: &Expr) -> bool {
    matches!(&part.kind, ExprKind::Function { function, .. } if *function == JSON_EXISTS)
}

/// A step as segments make it.
fn stored_step(step: &Step) -> Option<PathStep> {
    Some(match (step, step.index()) {
        (Step::Key(key), _) | (Step::Named(key), None) => PathStep::Key(key.clone()),
        (Step::Named(key), Some(at)) => PathStep::Either(key.clone(), at),
        (_, at) => PathStep::Index(at?),
    })
}

/// The column and the path of a part.
fn parts(expr: &Expr) -> Option<(usize, &str)> {
    let ExprKind::Function { args, .. } = &expr.kind else { return None };
    match &args[..] {
        [Expr { kind: ExprKind::Column(at), .. }, path] => match &path.kind {
            ExprKind::Literal(Value::Text(path)) => Some((*at, path)),
            _ => None,
        },
        _ => None,
    }
}

impl PathColumn {
    /// The part that an expression over the columns of a table computes.
    pub fn new(expr: &Expr) -> PathColumn {
        let Some((document, path)) = parts(expr) else {
            broken(format_args!("a part of a document has a column and a literal path"))
        };
        let path = JsonPath::parse(path).map(|path| path.steps).unwrap_or_default();
        let steps = path.iter().map(stored_step).collect::<Option<Vec<_>>>();
        let steps = steps.filter(|steps| !steps.is_empty());
        let (need, place) = (need(expr), RefCell::default());
        PathColumn { expr: over(expr, 0, None), document, path, steps, need, place }
    }

    /// Its type.
    pub fn data_type(&self) -> DataType {
        self.expr.data_type
    }

    /// Computes it from documents.
    pub fn compute(&self, documents: &Arc<Vector>, context: &Context<'_>) -> Result<Arc<Vector>> {
        let batch = Batch::new(vec![documents.clone()], documents.len());
        expr::evaluate_shared(&self.expr, &batch, context)
    }

    /// Where a segment, whose documents are in a column, has it.
    pub fn stored(&self, view: &SegmentView, column: usize) -> Result<Stored> {
        let Some(steps) = &self.steps else { return Ok(Stored::Text) };
        self.known(view, &|| {
            let Some(place) = view.segment.find_path(column, steps)? else {
                return Ok(Stored::Text);
            };
            Ok(match self.forms(&place).as_deref() {
                Some([]) => Stored::Nowhere,
                Some([(form, column)]) if natural_type(*form) == self.data_type() => {
                    Stored::Column(*column)
                }
                _ => Stored::Path(Arc::new(place)),
            })
        })
    }

    /// What was found in the segment that is read.
    fn known(&self, view: &SegmentView, find: &dyn Fn() -> Result<Stored>) -> Result<Stored> {
        let id = view.segment.id();
        let mut known = self.place.borrow_mut();
        match &*known {
            Some((of, stored)) if *of == id => Ok(stored.clone()),
            _ => {
                let stored = find()?;
                *known = Some((id, stored.clone()));
                Ok(stored)
            }
        }
    }

    /// Reads it in rows of the elements of arrays, which are at a place.
    pub fn in_elements(
        &self,
        view: &SegmentView,
        arrays: &PathPlace,
        rows: &PathRows<'_>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        let steps = self.steps.as_deref().unwrap_or_default();
        let stored = self.known(view, &|| {
            let place = view.segment.find_in_elements(arrays, steps)?;
            Ok(place.map_or(Stored::Nowhere, |place| Stored::Path(Arc::new(place))))
        })?;
        match stored {
            Stored::Path(place) => self.read(view, &place, rows, context),
            _ => broken(format_args!("elements of what has no arrays")),
        }
    }

    /// The columns that have all values, in rows of the segment; `None` if some are elsewhere.
    fn forms(&self, place: &PathPlace) -> Option<Vec<(PathForm, usize)>> {
        let columns = place.columns(self.need.containers)?;
        let is_read = |(form, _): &&(PathForm, usize)| self.need.forms.contains(form);
        let is_whole =
            !self.need.nulls && (!self.need.scalars || columns.iter().all(|c| is_read(&c)));
        is_whole.then(|| columns.iter().filter(is_read).copied().collect())
    }

    /// The columns of integers and doubles that have all values of a part that is a double; `None`
    /// for any other.
    fn numbers(&self, place: &PathPlace) -> Option<Vec<(PathForm, usize)>> {
        let forms = self.forms(place).filter(|_| self.data_type() == DataType::Float64)?;
        forms.iter().all(|(form, _)| matches!(form, Integer | Double)).then_some(forms)
    }

    /// Evaluates a test on encoded values; `None` if they are not stored as its type's.
    pub fn filter(
        &self,
        view: &SegmentView,
        place: &PathPlace,
        predicate: &Predicate,
        rows: Range<usize>,
    ) -> Result<Option<Bitmap>> {
        let Some(numbers) = self.numbers(place) else { return Ok(None) };
        let mut passed = Bitmap::filled(rows.len(), false);
        for (form, column) in numbers {
            let test = match form {
                Integer => Cow::Owned(predicate.of_integers()),
                _ => Cow::Borrowed(predicate),
            };
            let some = view.segment.filter(column, &test, rows.start, rows.len())?;
            passed = passed.or(&some);
        }
        Ok(Some(passed))
    }

    /// Bounds over some blocks; `None` if nothing is known.
    pub fn zone(&self, view: &SegmentView, place: &PathPlace, span: Span) -> Result<Option<Zone>> {
        let Some(forms) = self.numbers(place) else { return Ok(None) };
        let rows = view.segment.rows_of(span) as u32;
        let mut all = Zone { min: Value::Null, max: Value::Null, null_count: rows, exact: true };
        for (_, column) in forms {
            let zone = view.segment.zone_of(column, span)?;
            let (Some(min), Some(max)) = (double(&zone.min), double(&zone.max)) else { continue };
            let (low, high) = (double(&all.min), double(&all.max));
            all.min = Value::Float(low.map_or(min, |low| low.min(min)));
            all.max = Value::Float(high.map_or(max, |high| high.max(max)));
            all.null_count -= rows - zone.null_count;
            all.exact &= zone.exact;
        }
        Ok(Some(all))
    }

    /// Reads it in some rows of a segment.
    pub fn read(
        &self,
        view: &SegmentView,
        place: &PathPlace,
        rows: &PathRows<'_>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        let len = match rows {
            PathRows::Range(range) => range.len(),
            PathRows::Single(rows) => rows.len(),
        };
        let parts = view.segment.read_path(place, self.need, rows)?;
        let parts = parts.into_iter().map(|part| self.converted(part, context));
        let mut vectors = parts.collect::<Result<Vec<_>>>()?;
        vectors.retain(|vector| vector.null_count() < len);
        if is_existence(&self.expr) {
            let documents = view.segment.read_presence(place, rows)?;
            let mut out = VectorBuilder::new(DataType::Boolean);
            for row in 0..len {
                let found = vectors.iter().any(|v| v.value(row) == Value::Boolean(true));
                match documents.is_null(row) {
                    true => out.push_null(),
                    false => out.push_bool(found),
                }
            }
            return Ok(Arc::new(out.finish()));
        }
        Ok(match vectors.len() {
            0 => Arc::new(Vector::constant(self.data_type(), &Value::Null, len)),
            1 => vectors.swap_remove(0),
            _ => Arc::new(merged(self.data_type(), &vectors, len)),
        })
    }

    /// The values of a part as the call returns them.
    fn converted(&self, part: PathPart, context: &Context<'_>) -> Result<Arc<Vector>> {
        let (values, to) = (Arc::new(part.values), self.data_type());
        let column = Expr::column(0, values.data_type());
        let expr = match part.form {
            PathForm::Json => {
                let rest = JsonPath::text_of(&self.path[part.steps..]);
                over(&self.expr, 0, Some(rest.unwrap_or_default()))
            }
            _ if values.data_type() == to => column,
            _ => Expr { kind: ExprKind::Cast(Box::new(column)), data_type: to },
        };
        let batch = Batch::new(vec![values.clone()], values.len());
        expr::evaluate_shared(&expr, &batch, context)
    }
}

/// A part over a column, with another path if there is one.
fn over(expr: &Expr, column: usize, path: Option<std::string::String>) -> Expr {
    let mut expr = expr.clone();
    if let ExprKind::Function { args, .. } = &mut expr.kind
        && let [document, literal] = &mut args[..]
    {
        document.kind = ExprKind::Column(column);
        if let Some(path) = path {
            literal.kind = ExprKind::Literal(Value::Text(path));
        }
    }
    expr
}

/// The type of the values of a form.
fn natural_type(form: PathForm) -> DataType {
    match form {
        Integer => DataType::Int64,
        Double => DataType::Float64,
        String => DataType::TEXT,
        Boolean => DataType::Boolean,
        PathForm::Json => DataType::Json,
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// In each row the value of the vector that has one.
fn merged(data_type: DataType, vectors: &[Arc<Vector>], len: usize) -> Vector {
    let mut out = VectorBuilder::new(data_type);
    for row in 0..len {
        match vectors.iter().find(|vector| !vector.is_null(row)) {
            None => out.push_null(),
            Some(vector) => match vector.bytes(row) {
                Some(bytes) => out.push_bytes(bytes),
                None => out.push(&vector.value(row)),
            },
        }
    }
    out.finish()
}

/// The parts of documents of rows in memory: computed from documents that are read with the other
/// columns.
pub(in crate::scan) struct PathsInMemory {
    /// Number of columns of the table that the scan returns.
    stored: usize,
    /// Positions in the table of the columns to read.
    pub read: Vec<usize>,
    /// Over the columns that are read.
    exprs: Vec<Expr>,
}

impl PathsInMemory {
    /// The parts of a scan.
    pub fn new(spec: ScanSpec<'_>) -> PathsInMemory {
        let (stored, mut read) = (spec.projection.len(), spec.projection.to_vec());
        let mut places: Map<usize, usize> = Map::default();
        let mut exprs = Vec::with_capacity(spec.paths.len());
        for expr in spec.paths {
            let Some((document, _)) = parts(expr) else { continue };
            let at = *places.entry(document).or_insert_with(|| {
                read.push(document);
                read.len() - 1
            });
            exprs.push(over(expr, at, None));
        }
        debug_assert_eq!(exprs.len(), spec.paths.len(), "every path has a document");
        PathsInMemory { stored, read, exprs }
    }

    /// Replaces documents that were read by their parts.
    pub fn complete(&self, mut batch: Batch, context: &Context<'_>) -> Result<Batch> {
        if self.exprs.is_empty() {
            return Ok(batch);
        }
        debug_assert_eq!(batch.columns.len(), self.read.len(), "columns that were read");
        let parts = self.exprs.iter().map(|e| expr::evaluate_shared(e, &batch, context));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        batch.columns.truncate(self.stored);
        batch.columns.extend(parts);
        Ok(batch)
    }
}
