//! Hands parts of documents to the scans that read the documents, so that a scan reads what is at a
//! path and not the document.
//!
//! A part is a call of a function of a document and a literal path that names one value. Each node
//! collects the parts that its expressions read, and those that are wanted above it, as expressions
//! over its input. A scan computes them as output columns after those that it has; where they
//! arrive, columns replace the calls. Where they do not, calls stay where they are.
//!
//! A cast of a text of a document to a number may fail. It is divided in two parts that cannot: the
//! number where the document has one, and the text, which is cast, where it has something else.

use crate::access::{ScanOutput, equalities};
use crate::analysis::columns::{columns, only, remap, shift_columns};
use crate::analysis::json_path::normal;
use crate::bind::key_of;
use crate::explain::text::expr_text;
use crate::expr::{Expr, ExprKind, ScalarCallee};
use crate::plan::node::json_rows::{DocumentRows, JsonRows};
use crate::plan::{Field, Plan, PlanNode};
use nacre_builtin::scalar::any::COALESCE;
use nacre_builtin::scalar::json::get::{
    JSON_EXTRACT, JSON_EXTRACT_STRING, JSON_NO_DOUBLE, JSON_NO_INTEGER, JSON_NUMBER, JSON_QUERY,
    JSON_VALUE,
};
use nacre_builtin::scalar::json::inspect::JSON_EXISTS;
use nacre_function::json::outline::Part;
use nacre_function::json::path::{JsonPath, Step};
use nacre_types::{DataType, Value};
use std::any::Any;

/// Parts of a scan are at most this many.
const MOST_PATHS: usize = 100;

/// Hands the parts that a plan reads to its scans. Its output columns stay the same.
pub(super) fn share(plan: &mut Plan) {
    let fields = plan.fields();
    let moved = push(plan, Vec::new());
    if moved.columns.len() == plan.fields().len() {
        return;
    }
    let column = |(at, field): (&usize, &Field)| Expr::column(*at, field.data_type);
    let exprs = moved.columns.iter().zip(&fields).map(column).collect();
    let input = Box::new(std::mem::replace(plan, Plan::nothing()));
    *plan = Plan::Project { input, exprs, fields };
}

/// Hands the parts that the conditions of a target read to its scan, after the columns of its rows.
pub(super) fn share_in_target(plan: &mut Plan) {
    let width = plan.fields().len();
    let moved = push(plan, Vec::new());
    debug_assert!(moved.columns.iter().copied().eq(0..width), "columns of a target are moved");
}

/// Names the computed columns of indexes in the scans of a plan, as expressions over the output of
/// each.
pub(super) fn name_keys(plan: &mut Plan) {
    plan.for_each_own_input_mut(&mut name_keys);
    let Plan::Scan { table, projection, paths, keys, .. } = plan else { return };
    if table.computed.is_empty() {
        return;
    }
    let first = projection.len();
    let at = (first..first + paths.len()).map(Some).collect();
    let parts = Below { parts: paths.iter().map(normal).collect(), at };
    let place = |at: usize| projection.iter().position(|known| *known == at);
    let to: Vec<usize> =
        (0..table.columns.len()).map(|at| place(at).unwrap_or(usize::MAX)).collect();
    for (at, column) in table.computed.iter().enumerate() {
        // An index whose expression has no meaning any more serves no query.
        let Ok(mut key) = key_of(table, column) else { continue };
        parts.replace(&mut key, &to);
        if only(&key, &|at| at != usize::MAX) {
            keys.push((table.columns.len() + at, key));
        }
    }
}

/// Where the output columns of a plan went.
struct Moved {
    /// The columns that it had.
    columns: Vec<usize>,
    /// The parts that were wanted; `None` for one that is not computed.
    parts: Vec<Option<usize>>,
}

impl Moved {
    fn nowhere(columns: usize, parts: usize) -> Moved {
        Moved { columns: (0..columns).collect(), parts: vec![None; parts] }
    }
}

/// The parts that are read of an input, and then where they are.
#[derive(Default)]
struct Below {
    parts: Vec<Expr>,
    at: Vec<Option<usize>>,
}

impl Below {
    fn add(&mut self, part: Expr) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    /// Adds the parts that an expression reads.
    fn collect(&mut self, expr: &Expr) {
        if let Some((number, text)) = numbers(expr) {
            self.add(number);
            self.add(text);
        } else if let Some(part) = part(expr) {
            self.add(part);
        } else {
            expr.for_each_child(&mut |e| self.collect(e));
        }
    }

    fn push(&mut self, plan: &mut Plan) -> Vec<usize> {
        let moved = push(plan, self.parts.clone());
        self.at = moved.parts;
        moved.columns
    }

    /// The column of a part.
    fn column(&self, part: &Expr) -> Option<Expr> {
        let at = self.parts.iter().position(|known| known == part)?;
        Some(Expr::column((*self.at.get(at)?)?, part.data_type))
    }

    /// Replaces the parts that an expression reads by their columns, and moves its other columns.
    fn replace(&self, expr: &mut Expr, to: &[usize]) {
        if let Some((number, text)) = numbers(expr)
            && let (Some(number), Some(text)) = (self.column(&number), self.column(&text))
        {
            let to = expr.data_type;
            let cast = |e: Expr| match e.data_type == to {
                true => e,
                false => Expr { kind: ExprKind::Cast(Box::new(e)), data_type: to },
            };
            *expr = Expr::call(&COALESCE, vec![cast(number), cast(text)], to);
        } else if let Some(column) = part(expr).and_then(|part| self.column(&part)) {
            *expr = column;
        } else if let ExprKind::Column(at) = &mut expr.kind {
            *at = to[*at];
        } else {
            expr.for_each_child_mut(&mut |e| self.replace(e, to));
        }
    }

    fn wanted(&self, wanted: &[Expr]) -> Vec<Option<usize>> {
        let place = |part: &Expr| match self.column(part)?.kind {
            ExprKind::Column(at) => Some(at),
            _ => None,
        };
        wanted.iter().map(place).collect()
    }
}

/// The column that a part reads.
fn document(part: &Expr) -> usize {
    let mut document = 0;
    columns(part, &mut |at| document = at);
    document
}

/// Computes the wanted parts of a plan's output as far as scans can, and the parts that it reads.
fn push(plan: &mut Plan, wanted: Vec<Expr>) -> Moved {
    let mut below = Below::default();
    match plan {
        Plan::Scan { .. } => scan(plan, wanted),
        Plan::Join { .. } => join(plan, wanted),
        Plan::Filter { .. }
        | Plan::Sort { .. }
        | Plan::Limit { .. }
        | Plan::Project { .. }
        | Plan::Aggregate { .. } => {
            plan.for_each_expr(&mut |e| below.collect(e));
            let wanted_below: Vec<Option<Expr>> = match plan {
                Plan::Project { exprs, .. } => wanted.iter().map(|p| through(p, exprs)).collect(),
                Plan::Aggregate { .. } => Vec::new(),
                _ => wanted.iter().cloned().map(Some).collect(),
            };
            wanted_below.iter().flatten().for_each(|part| below.add(part.clone()));
            let width = plan.fields().len();
            let mut to = Vec::new();
            plan.for_each_input_mut(&mut |input| to = below.push(input));
            plan.for_each_expr_mut(&mut |e| below.replace(e, &to));
            let mut moved = Moved::nowhere(width, wanted.len());
            match plan {
                Plan::Project { input, exprs, fields } => {
                    let below_fields = input.fields();
                    for (part, at) in wanted_below.iter().zip(&mut moved.parts) {
                        let Some(column) = part.as_ref().and_then(|part| below.column(part)) else {
                            continue;
                        };
                        *at = Some(exprs.len());
                        fields.extend(field_of(&below_fields, &column));
                        exprs.push(column);
                    }
                }
                Plan::Aggregate { .. } => {}
                _ => moved = Moved { columns: to, parts: below.wanted(&wanted) },
            }
            moved
        }
        Plan::Node(node) => {
            if let Some(rows) = (&mut **node as &mut dyn Any).downcast_mut::<JsonRows>() {
                return json_rows(rows, wanted);
            }
            let width = plan.fields().len();
            plan.for_each_input_mut(&mut share);
            Moved::nowhere(width, wanted.len())
        }
        Plan::Union { .. } | Plan::Recursive { .. } => {
            let width = plan.fields().len();
            plan.for_each_input_mut(&mut share);
            Moved::nowhere(width, wanted.len())
        }
        // The inputs of shared plans are optimised by themselves.
        Plan::Values { .. } | Plan::Given { .. } | Plan::Shared { .. } => {
            Moved::nowhere(plan.fields().len(), wanted.len())
        }
    }
}

/// Rows of documents: parts of their values are computed with them.
fn json_rows(node: &mut JsonRows, wanted: Vec<Expr>) -> Moved {
    divide(node);
    let (parts, own) = (node.parts.len(), node.fields.len());
    let shifted = |part: &Expr| {
        let mut part = part.clone();
        shift_columns(&mut part, -(own as isize));
        part
    };
    let mut below = Below::default();
    node.for_each_expr(&mut |e| below.collect(e));
    let mut places = Vec::with_capacity(wanted.len());
    for part in &wanted {
        let at = document(part);
        if at >= own {
            below.add(shifted(part));
        }
        places.push((node.parts.get(at) == Some(&Part::Value)).then(|| {
            let mut path = part.clone();
            remap(&mut path, &|_| 0);
            let known = node.paths.iter().position(|known| *known == path);
            parts
                + known.unwrap_or_else(|| {
                    let name = expr_text(&path, &|_| "value".into(), false);
                    let data_type = path.data_type;
                    node.fields.push(Field { name, data_type, nullable: true });
                    node.paths.push(path);
                    node.paths.len() - 1
                })
        }));
    }
    let to = below.push(&mut node.input);
    node.for_each_expr_mut(&mut |e| below.replace(e, &to));
    let now = node.fields.len();
    for (part, place) in wanted.iter().zip(&mut places).filter(|(part, _)| document(part) >= own) {
        *place = below.wanted(&[shifted(part)])[0].map(|at| at + now);
    }
    Moved { columns: (0..own).chain(to.iter().map(|at| at + now)).collect(), parts: places }
}

/// Reads rows of the elements of an array in a document from the array.
fn divide(node: &mut JsonRows) {
    let (DocumentRows::Matches, Some(path)) = (node.rows, &mut node.path) else { return };
    let ExprKind::Literal(Value::Text(text)) = &path.kind else { return };
    let Ok(JsonPath { steps }) = JsonPath::parse(text) else { return };
    let Some((Step::Elements, first)) = steps.split_last() else { return };
    let text =
        JsonPath::text_of(first).map(|text| Expr::literal(Value::Text(text), DataType::TEXT));
    let Some(first) = text.filter(|text| !first.is_empty() && self::steps(text).is_some()) else {
        return;
    };
    *path = Expr::literal(Value::Text("$[*]".into()), DataType::TEXT);
    let args = vec![node.document.clone(), first];
    node.document = Expr::call(&JSON_EXTRACT, args, DataType::Json);
}

fn field_of(fields: &[Field], column: &Expr) -> Option<Field> {
    match column.kind {
        ExprKind::Column(at) => fields.get(at).cloned(),
        _ => None,
    }
}

/// A part of a projection's output over its input.
fn through(part: &Expr, exprs: &[Expr]) -> Option<Expr> {
    let ExprKind::Column(below) = exprs.get(document(part))?.kind else { return None };
    let mut part = part.clone();
    remap(&mut part, &|_| below);
    Some(part)
}

fn scan(plan: &mut Plan, wanted: Vec<Expr>) -> Moved {
    let width = plan.fields().len();
    let Plan::Scan { table, projection, paths, filters, .. } = plan else {
        return Moved::nowhere(width, wanted.len());
    };
    // One row is found by its key and read whole.
    let output = ScanOutput { table, projection, keys: &[] };
    let fixed = equalities(output, filters);
    if table.unique_sets(false).any(|key| fixed.fix(&key)) {
        return Moved::nowhere(width, wanted.len());
    }
    let mut below = Below::default();
    filters.iter().for_each(|e| below.collect(e));
    wanted.iter().for_each(|part| below.add(part.clone()));
    below.parts.truncate(MOST_PATHS);
    for part in &below.parts {
        let mut path = part.clone();
        let stored = projection.get(document(part)).copied().filter(|_| !is_root(part));
        remap(&mut path, &|at| stored.unwrap_or(at));
        let same = normal(&path);
        let known = paths.iter().position(|known| normal(known) == same);
        let at = known.unwrap_or(paths.len());
        if stored.is_some() && known.is_none() {
            paths.push(path);
        }
        below.at.push(stored.map(|_| projection.len() + at));
    }
    let same: Vec<usize> = (0..width).collect();
    filters.iter_mut().for_each(|e| below.replace(e, &same));
    Moved { columns: same, parts: below.wanted(&wanted) }
}

fn join(plan: &mut Plan, wanted: Vec<Expr>) -> Moved {
    let Plan::Join { left, right, kind, keys, residual } = plan else {
        return Moved::nowhere(0, wanted.len());
    };
    let (width, (keeps_left, keeps_right)) = (left.fields().len(), kind.sides());
    let (mut of_left, mut of_right, mut both) =
        (Below::default(), Below::default(), Below::default());
    for (l, r) in &*keys {
        of_left.collect(l);
        of_right.collect(r);
    }
    residual.iter().for_each(|e| both.collect(e));
    // Where the output begins among the columns of both sides.
    let first = if keeps_left { 0 } else { width };
    for part in &wanted {
        let mut part = part.clone();
        shift_columns(&mut part, first as isize);
        both.add(part);
    }
    for part in &both.parts {
        match document(part).checked_sub(width) {
            None => of_left.add(part.clone()),
            Some(_) => {
                let mut part = part.clone();
                shift_columns(&mut part, -(width as isize));
                of_right.add(part);
            }
        }
    }
    let (to_left, to_right) = (of_left.push(left), of_right.push(right));
    let new_width = left.fields().len();
    for (l, r) in keys {
        of_left.replace(l, &to_left);
        of_right.replace(r, &to_right);
    }
    let place = |part: &Expr| match document(part).checked_sub(width) {
        None => of_left.wanted(std::slice::from_ref(part))[0],
        Some(_) => {
            let mut part = part.clone();
            shift_columns(&mut part, -(width as isize));
            of_right.wanted(&[part])[0].map(|at| at + new_width)
        }
    };
    both.at = both.parts.iter().map(place).collect();
    let all = || to_left.iter().copied().chain(to_right.iter().map(|at| at + new_width));
    let to: Vec<usize> = all().collect();
    residual.iter_mut().for_each(|e| both.replace(e, &to));
    let out = if keeps_left { 0 } else { new_width };
    let parts = wanted.iter().map(|part| {
        let mut part = part.clone();
        shift_columns(&mut part, first as isize);
        both.wanted(&[part])[0].map(|at| at - out)
    });
    let parts = parts.collect();
    let columns = match (keeps_left, keeps_right) {
        (true, true) => to,
        (true, false) => {
            let mark = kind.marks().then_some(new_width);
            to_left.into_iter().chain(mark).collect()
        }
        (false, _) => to_right,
    };
    Moved { columns, parts }
}

/// The steps of a literal path that names one value.
fn steps(path: &Expr) -> Option<JsonPath> {
    let ExprKind::Literal(Value::Text(text)) = &path.kind else { return None };
    // A character that stands for what is none may be in keys that are not equal.
    let is_plain = !text.contains('\u{fffd}');
    JsonPath::parse(text).ok().filter(|path| is_plain && path.is_single())
}

/// Whether a part is all of its document.
fn is_root(part: &Expr) -> bool {
    let ExprKind::Function { args, .. } = &part.kind else { return false };
    args.get(1).and_then(steps).is_some_and(|path| path.steps.is_empty())
}

/// A call of a function of a document and a path that a scan can compute, of a column and one path.
fn part(expr: &Expr) -> Option<Expr> {
    let ExprKind::Function { function, args } = &expr.kind else { return None };
    let known = [&JSON_EXTRACT, &JSON_EXTRACT_STRING, &JSON_VALUE, &JSON_QUERY, &JSON_EXISTS];
    let [document, path] = &args[..] else { return None };
    if !known.into_iter().any(|known| *function == *known) {
        return None;
    }
    let own = steps(path)?;
    if matches!(document.kind, ExprKind::Column(_)) && document.data_type == DataType::Json {
        return Some(expr.clone());
    }
    // A path into what another one finds. Whether nothing is found is null there, not false.
    let ExprKind::Function { function: inner, .. } = &document.kind else { return None };
    if *inner != JSON_EXTRACT || *function == JSON_EXISTS {
        return None;
    }
    let ExprKind::Function { args, .. } = part(document)?.kind else { return None };
    let [column, first] = <[Expr; 2]>::try_from(args).ok()?;
    let all: Vec<_> = steps(&first)?.steps.into_iter().chain(own.steps).collect();
    let text = Value::Text(JsonPath::text_of(&all)?);
    let args = vec![column, Expr::literal(text, DataType::TEXT)];
    Some(Expr::call(function.clone(), args, expr.data_type))
}

/// For a cast of the text of a part to a number: the number, and the text of what is none.
fn numbers(expr: &Expr) -> Option<(Expr, Expr)> {
    let ExprKind::Cast(text) = &expr.kind else { return None };
    let ExprKind::Function { function, args } = part(text)?.kind else { return None };
    let (to, rest): (_, ScalarCallee) = match expr.data_type {
        DataType::Float64 => (DataType::Float64, (&JSON_NO_DOUBLE).into()),
        t if t.is_integer() || matches!(t, DataType::Decimal { .. }) => {
            (DataType::Int64, (&JSON_NO_INTEGER).into())
        }
        _ => return None,
    };
    (function == JSON_EXTRACT_STRING).then(|| {
        let number = Expr::call(&JSON_NUMBER, args.clone(), to);
        (number, Expr::call(rest, args, DataType::TEXT))
    })
}
