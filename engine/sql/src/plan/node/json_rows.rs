//! Functions in `FROM` that make rows of a JSON document: for each input row, the rows of the
//! document that an expression over it yields.

use crate::analysis::columns::{mark, moved, only, shift_columns};
use crate::analysis::may_fail::expr_may_fail;
use crate::explain::text::{expr_text, field_name, joined};
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::{ColumnMap, Domain, Field, Plan, PlanNode, Pruning};
use nacre_function::json::outline::Part;
use nacre_types::Result;

/// Which values of a document become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentRows {
    /// The members or elements of what the path names; a scalar itself.
    Each,
    /// What the path names, and all values in it.
    Tree,
    /// The elements of the document, which must be an array.
    Elements,
    /// The members of the document, which must be an object.
    Members,
    /// All values that the path names.
    Matches,
}

/// Rows of documents, each with the input row that it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRows {
    /// Input.
    pub input: Plan,
    /// The document, over the input row. No rows if it is null.
    pub document: Expr,
    /// Text of a path into it, over the input row.
    pub path: Option<Expr>,
    /// Which values become rows.
    pub rows: DocumentRows,
    /// What the first output columns show of a value.
    pub parts: Vec<Part>,
    /// Parts of a value, which is column 0 here. Their columns follow, and then the input's.
    pub paths: Vec<Expr>,
    /// The output columns before the input's.
    pub fields: Vec<Field>,
    /// Whether nothing above reads the document, if it is a column of the input.
    pub is_last_reader: bool,
    /// Whether an input row without rows becomes one with nulls.
    pub outer: bool,
    /// The function's name.
    pub name: &'static str,
}

impl PlanNode for JsonRows {
    fn fields(&self) -> Vec<Field> {
        self.fields.iter().cloned().chain(self.input.fields()).collect()
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.input);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.input);
    }

    fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        [&self.document].into_iter().chain(&self.path).for_each(f);
    }

    fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        [&mut self.document].into_iter().chain(&mut self.path).for_each(f);
    }

    fn title(&self) -> &'static str {
        "a table function"
    }

    fn explain(&self) -> String {
        let fields = self.input.fields();
        let text = |e: &Expr| expr_text(e, &|at| field_name(&fields, at), false);
        let args = [&self.document].into_iter().chain(&self.path).map(text);
        let outer = if self.outer { " outer" } else { "" };
        let mut line = format!("JsonRows {}({}){outer}", self.name, joined(args));
        if !self.paths.is_empty() {
            let value = |_| "value".to_string();
            let paths = self.paths.iter().map(|e| expr_text(e, &value, false));
            line += &format!(" [{}]", joined(paths));
        }
        line
    }

    fn prune(&mut self, mut needed: Vec<bool>, pruning: &Pruning) -> (Option<Plan>, ColumnMap) {
        let mut input = needed.split_off(self.fields.len());
        self.is_last_reader =
            matches!(self.document.kind, ExprKind::Column(at) if input.get(at) == Some(&false));
        self.for_each_expr(&mut |e| mark(e, &mut input));
        let moves = pruning.input(&mut self.input, input);
        self.for_each_expr_mut(&mut |e| moved(e, &moves));
        let mut next = 0;
        let mut map: ColumnMap = needed
            .iter()
            .map(|needed| {
                next += usize::from(*needed);
                needed.then(|| next - 1)
            })
            .collect();
        let is_needed = |at: &mut usize| {
            *at += 1;
            needed[*at - 1]
        };
        let (mut part, mut path, mut field) = (0, self.parts.len(), 0);
        self.parts.retain(|_| is_needed(&mut part));
        self.paths.retain(|_| is_needed(&mut path));
        self.fields.retain(|_| is_needed(&mut field));
        map.extend(moves.into_iter().map(|to| to.map(|to| to + next)));
        (None, map)
    }

    fn push_filters(
        &mut self,
        conditions: Vec<Expr>,
        push: &mut dyn FnMut(&mut Plan, Vec<Expr>),
    ) -> Vec<Expr> {
        let width = self.fields.len();
        let (mut below, above): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|c| only(c, &|at| at >= width) && !expr_may_fail(c));
        below.iter_mut().for_each(|c| shift_columns(c, -(width as isize)));
        push(&mut self.input, below);
        above
    }

    fn estimate_rows(&self, inputs: &[f64]) -> f64 {
        inputs.iter().sum::<f64>() * 10.0
    }

    fn spread(
        &mut self,
        domain: &Domain,
        spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        let width = self.input.fields().len();
        self.for_each_expr_mut(&mut |e| domain.settle(e, width));
        spread(&mut self.input)?;
        Ok(self.fields.len() + width)
    }
}
