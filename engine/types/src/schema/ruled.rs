//! What the rules of a schema mean for its columns and rows.

use super::rules::{CheckConstraint, ColumnRule};
use super::table::{Column, TableSchema};

impl Column {
    /// Whether an `INSERT` that does not name the column fails: it has no default and takes no null.
    pub fn must_be_given(&self) -> bool {
        self.rule == ColumnRule::Constant && self.default.is_null() && !self.nullable
    }

    /// Whether the column is computed from others.
    pub fn is_generated(&self) -> bool {
        matches!(self.rule, ColumnRule::Generated { .. })
    }
}

impl TableSchema {
    /// Position of the column that counts rows, if there is one.
    pub fn identity_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| matches!(c.rule, ColumnRule::Identity { .. }))
    }

    /// Whether rows have more to satisfy or to compute than types, nulls and keys.
    pub fn has_rules(&self) -> bool {
        !self.checks.is_empty() || self.columns.iter().any(|c| c.rule != ColumnRule::Constant)
    }

    /// A check by name, without regard to ASCII case.
    pub fn check_by_name(&self, name: &str) -> Option<&CheckConstraint> {
        self.checks.iter().find(|check| check.name.eq_ignore_ascii_case(name))
    }
}
