//! Registry entries of functions of a row's grouping set.

use super::doc::Doc;
use std::fmt;

/// A function of a row's grouping set. Its value is one constant per set, which the binder writes
/// into the plan, so the executor never evaluates it.
pub struct GroupingFunction {
    /// Its names in lower case; the first is the one that output columns show.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Maximum number of arguments, which are group expressions. The minimum is one.
    pub most_arguments: usize,
    /// Returns the value for one set, a `BIGINT`, given for each argument whether the set lacks it.
    pub value: fn(&[bool]) -> i64,
}

impl GroupingFunction {
    /// The name that output columns show.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

impl PartialEq for GroupingFunction {
    fn eq(&self, other: &GroupingFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for GroupingFunction {}

impl fmt::Debug for GroupingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
