//! Builds operators for `UPDATE` and `DELETE`.

use super::measure::measured_locating;
use crate::scan::{self, ScanSpec};
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::operator::protocol::{LocatedColumns, LocatingOperator};
use nacre_sql::plan::Plan;
use nacre_table::RowLocator;
use nacre_types::{Error, Result};

/// Builds an operator for the target rows of a plan, with locators. The plan must be a scan, or
/// filters over one.
pub fn build_locating(
    plan: &Plan,
    rows: LocatedColumns,
    context: &Context<'_>,
) -> Result<Box<dyn LocatingOperator>> {
    let mut plan = plan;
    let mut predicates = Vec::new();
    loop {
        match plan {
            Plan::Filter { input, predicate } => {
                predicates.push(predicate.clone());
                plan = input;
            }
            Plan::Scan { table, projection, paths, filters, keys } => {
                // The innermost filter comes first: it keeps later ones from failing.
                let all: Vec<_> =
                    filters.iter().cloned().chain(predicates.into_iter().rev()).collect();
                let spec = ScanSpec { schema: table, projection, paths, filters: &all, keys };
                let context = &context.of_node(plan);
                return Ok(measured_locating(
                    scan::build_locating(spec, rows, context)?,
                    plan,
                    context,
                ));
            }
            // The optimizer's form of a condition that is never true.
            Plan::Values { rows, .. } if rows.is_empty() => return Ok(Box::new(Nothing)),
            _ => {
                return Err(Error::unsupported(
                    "UPDATE or DELETE over anything but a filtered table",
                ));
            }
        }
    }
}

/// No rows.
struct Nothing;

impl LocatingOperator for Nothing {
    fn next(&mut self, _: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        Ok(None)
    }
}
