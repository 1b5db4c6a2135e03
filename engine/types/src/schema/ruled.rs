//! What the rules of a schema mean for its columns and rows.

use super::rules::{CheckConstraint, ColumnRule};
use super::table::{Column, TableSchema};
use crate::{DataType, Value};

impl Column {
    /// Whether an `INSERT` that does not name the column fails: it has no default and takes no null.
    pub fn must_be_given(&self) -> bool {
        self.rule == ColumnRule::Constant && self.default.is_null() && !self.nullable
    }

    /// A column of indexes that is computed from a row.
    pub fn computed(id: u32, data_type: DataType, expression: &str, may_fail: bool) -> Column {
        let (name, rule) = (expression.to_string(), ColumnRule::Computed { may_fail });
        Column { id, name, data_type, nullable: true, default: Value::Null, rule }
    }

    /// Whether the column is computed from others.
    pub fn is_generated(&self) -> bool {
        matches!(self.rule, ColumnRule::Generated { .. })
    }

    /// Whether it is a computed column whose expression raises an error for some rows.
    pub fn may_fail(&self) -> bool {
        matches!(self.rule, ColumnRule::Computed { may_fail: true, .. })
    }
}

impl TableSchema {
    /// Position of the column that counts rows, if there is one.
    pub fn identity_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| matches!(c.rule, ColumnRule::Identity { .. }))
    }

    /// Whether writing a row takes the rules: checks, or computed columns that may fail.
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty() || self.computed.iter().any(Column::may_fail)
    }

    /// Whether rows have more to satisfy or to compute than types, nulls and keys.
    pub fn has_rules(&self) -> bool {
        !self.checks.is_empty() || self.columns.iter().any(|c| c.rule != ColumnRule::Constant)
    }

    /// Whether every row of a table with another schema, stored as it is there, is one of this: they
    /// differ in nothing but indexes, and no new one computes a column that may fail.
    pub fn takes_rows_of(&self, old: &TableSchema) -> bool {
        let fails = |column: &Column| column.may_fail() && !old.computed.contains(column);
        self.name == old.name
            && self.checks == old.checks
            && self.foreign_keys == old.foreign_keys
            && self.referenced_by == old.referenced_by
            && self.columns == old.columns
            && !self.computed.iter().any(fails)
    }

    /// A check by name, without regard to ASCII case.
    pub fn check_by_name(&self, name: &str) -> Option<&CheckConstraint> {
        self.checks.iter().find(|check| check.name.eq_ignore_ascii_case(name))
    }
}
