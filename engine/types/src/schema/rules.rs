//! What a schema says about the values of rows beyond their types: how a column gets a value that a
//! statement does not give, and `CHECK` constraints. Expressions are SQL text. The storage keeps
//! them and does not interpret them.

/// How a column gets its value when a statement gives none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColumnRule {
    /// [`Column::default`](super::table::Column).
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
    /// Computed from the columns of the row where an index needs it, and stored in no row
    /// ([`TableSchema::computed`](super::table::TableSchema)).
    /// The name of the column is the expression.
    Computed {
        /// Whether rows exist for which it raises an error. Such rows are refused.
        may_fail: bool,
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
