//! Functions that identify the grouping set of a row.

use crate::entry::doc::Doc;
use crate::entry::grouping::GroupingFunction;

/// The functions of this file.
pub static FUNCTIONS: &[&GroupingFunction] = &[&GroupingFunction {
    names: &["grouping", "grouping_id"],
    doc: Doc::new(
        "grouping(x, …), grouping_id",
        "A bit an argument: whether the row's grouping set leaves it out.",
        "grouping(x) from (values (1)) as t(x) group by rollup (x) order by 1 desc",
        "1",
    ),
    // One bit per argument in a `BIGINT`.
    most_arguments: 62,
    value: |left_out| left_out.iter().fold(0, |bits, out| bits << 1 | i64::from(*out)),
}];
