//! Window functions.

use crate::analysis::columns::{columns, mark, moved, only};
use crate::analysis::equal_values::tells_equals_apart;
use crate::explain::text::{expr_text, field_name, joined, key_text, window_text};
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::{ColumnMap, Domain, Field, Plan, PlanNode, Pruning, SortKey};
use crate::window::WindowCall;
use nacre_types::{Result, invariant};

/// Outputs the input's columns, then one column per call, sorted by partition and order.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Input.
    pub input: Plan,
    /// Partition keys over the input row.
    pub partition: Vec<Expr>,
    /// Order within a partition.
    pub order: Vec<SortKey>,
    /// The window functions to compute.
    pub calls: Vec<WindowCall>,
    /// Output columns.
    pub fields: Vec<Field>,
}

impl PlanNode for Window {
    fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.input);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.input);
    }

    fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        self.partition.iter().chain(self.order.iter().map(|k| &k.expr)).for_each(&mut *f);
        self.calls.iter().for_each(|call| call.for_each_expr(f));
    }

    fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let order = self.order.iter_mut().map(|k| &mut k.expr);
        self.partition.iter_mut().chain(order).for_each(&mut *f);
        self.calls.iter_mut().for_each(|call| call.for_each_expr_mut(f));
    }

    fn title(&self) -> &'static str {
        "a window function"
    }

    fn explain(&self) -> String {
        let fields = self.input.fields();
        let name = |at: usize| field_name(&fields, at);
        let by = joined(self.partition.iter().map(|e| expr_text(e, &name, false)));
        let order = joined(self.order.iter().map(|k| key_text(k, &name)));
        let calls = joined(self.calls.iter().map(|c| window_text(c, &name)));
        format!("Window by [{by}] order [{order}] compute [{calls}]")
    }

    /// Drops unread calls, and the node itself once no call is left.
    fn prune(&mut self, mut needed: Vec<bool>, pruning: &Pruning) -> (Option<Plan>, ColumnMap) {
        invariant!(
            needed.len() == self.fields.len(),
            "{} of {} columns are asked for",
            needed.len(),
            self.fields.len()
        );
        let width = self.input.fields().len();
        let wanted = needed.split_off(width);
        let mut kept = wanted.iter();
        self.calls.retain(|_| kept.next() == Some(&true));
        if self.calls.is_empty() {
            let mut map = pruning.input(&mut self.input, needed);
            map.resize(self.fields.len(), None);
            return (Some(std::mem::replace(&mut self.input, Plan::nothing())), map);
        }
        self.for_each_expr(&mut |e| mark(e, &mut needed));
        let mut map = pruning.input(&mut self.input, needed);
        self.for_each_expr_mut(&mut |e| moved(e, &map));
        let mut fields = self.input.fields();
        for (field, wanted) in self.fields.drain(..).skip(width).zip(&wanted) {
            map.push(wanted.then_some(fields.len()));
            if *wanted {
                fields.push(field);
            }
        }
        self.fields = fields;
        (None, map)
    }

    /// Pushes down conditions on partition keys alone, which drop whole partitions. Any other
    /// condition would change the results of the calls.
    fn push_filters(
        &mut self,
        conditions: Vec<Expr>,
        push: &mut dyn FnMut(&mut Plan, Vec<Expr>),
    ) -> Vec<Expr> {
        let is_partition =
            |at| self.partition.iter().any(|e| matches!(e.kind, ExprKind::Column(c) if c == at));
        let (below, above) = conditions.into_iter().partition(|c| {
            let mut any = false;
            columns(c, &mut |_| any = true);
            any && only(c, &is_partition) && !tells_equals_apart(c)
        });
        push(&mut self.input, below);
        above
    }

    /// Adds the domain's columns to the partition keys, so that each argument has partitions of its
    /// own.
    fn spread(
        &mut self,
        domain: &Domain,
        spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        let base = self.input.fields().len();
        self.for_each_expr_mut(&mut |e| domain.settle(e, base));
        self.partition.extend(domain.columns(base));
        self.fields.splice(base..base, domain.fields.iter().cloned());
        spread(&mut self.input)?;
        Ok(base)
    }
}
