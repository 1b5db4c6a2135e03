//! What a schema says about the values of rows beyond their types: how a column gets a value that a
//! statement does not give, and `CHECK` constraints. Expressions are SQL text. The storage keeps
//! them and does not interpret them.

use super::table::{Column, TableSchema};

/// How a column gets its value when a statement gives none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColumnRule {
    /// [`Column::default`].
    #[default]
    Constant,
    /// `DEFAULT` of an expression, which reads no column.
    Default(String),
    /// Always computed from other columns of the row.
    Generated {
        /// The expression.
        expression: String,
        /// `STORED` rather than `VIRTUAL`, as declared. Both are stored.
        stored: bool,
    },
    /// The table's counter, which also replaces a null.
    Identity {
        /// Whether a statement must not give a value.
        always: bool,
    },
}

/// A condition that no row may make false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckConstraint {
    /// Name, unique among the constraints of a table.
    pub name: String,
    /// The condition.
    pub expression: String,
}

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
