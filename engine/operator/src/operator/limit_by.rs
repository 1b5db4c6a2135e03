//! `LIMIT` for each combination of keys, in the order in which rows come.

use super::limit::row_count;
use super::settle::settle;
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::group::Grouper;
use crate::memory::Reservation;
use crate::operator::inputs::{Inputs, exactly};
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::node::limit_by as node;
use nacre_types::Result;

/// The operator of a node.
pub fn operator(node: &node::LimitBy, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [input] = exactly(inputs);
    let (keys, offset, limit) = (node.keys.clone(), node.offset.clone(), node.limit.clone());
    Ok(Box::new(LimitBy::new(input, keys, offset, limit)))
}

/// Counts the rows of each group as they pass.
struct LimitBy {
    input: Box<dyn Operator>,
    keys: Vec<Expr>,
    offset: Option<Expr>,
    limit: Option<Expr>,
    grouper: Grouper,
    /// Rows of each group so far.
    seen: Vec<u64>,
    held: Reservation,
}

impl LimitBy {
    fn new(
        input: Box<dyn Operator>,
        keys: Vec<Expr>,
        offset: Option<Expr>,
        limit: Option<Expr>,
    ) -> LimitBy {
        let types: Vec<_> = keys.iter().map(|k| k.data_type).collect();
        let grouper = Grouper::new(&types);
        LimitBy {
            input,
            keys,
            offset,
            limit,
            grouper,
            seen: Vec::new(),
            held: Reservation::default(),
        }
    }
}

impl Operator for LimitBy {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let skip = row_count(&self.offset, 0, "OFFSET", context)?;
        let end = skip.saturating_add(row_count(&self.limit, u64::MAX, "LIMIT", context)?);
        while let Some(mut batch) = self.input.next(context)? {
            context.check_cancelled()?;
            let keys = self
                .keys
                .iter()
                .map(|k| expr::evaluate_shared(k, &batch, context))
                .collect::<Result<Vec<_>>>()?;
            let selected = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
            let mut groups = Vec::new();
            self.grouper.assign(&keys, selected, &mut groups)?;
            self.seen.resize(self.grouper.groups(), 0);
            let mut passed = Vec::new();
            for (row, group) in selected.iter().zip(&groups) {
                let seen = &mut self.seen[*group as usize];
                if *seen >= skip && *seen < end {
                    passed.push(row as u32);
                }
                *seen += 1;
            }
            context.reserve(
                &mut self.held,
                "limit",
                self.grouper.memory_bytes() + self.seen.len() * 8,
            )?;
            if !passed.is_empty() {
                batch.selection = Some(passed);
                return Ok(Some(settle(batch)));
            }
        }
        Ok(None)
    }
}
