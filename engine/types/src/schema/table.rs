//! The schema of a table: columns and keys. Storage decisions (segments, partitions) are not here.

use super::foreign_key::ForeignKey;
use super::index::IndexSchema;
use super::rules::{CheckConstraint, ColumnRule};
use crate::{DataType, Error, Result, Value, limits};

/// Identifies a table for the life of a database; never reused.
pub type TableId = u32;

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Stable id inside the table. Never reused: the data of a dropped column must not reappear.
    pub id: u32,
    /// Name as written. Compared without regard to ASCII case.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether `NULL` is allowed.
    pub nullable: bool,
    /// Value of rows written before the column existed, and of rows that do not name it while its
    /// rule is [`ColumnRule::Constant`]; `Null` without a default.
    pub default: Value,
    /// Where the value of a row that does not name the column comes from.
    pub rule: ColumnRule,
}

/// Compares float defaults by their bits, so that a NaN equals itself.
impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        let same_default = match (&self.default, &other.default) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        };
        let known = (self.id, &self.name, self.data_type, self.nullable, &self.rule);
        let others = (other.id, &other.name, other.data_type, other.nullable, &other.rule);
        same_default && known == others
    }
}

impl Eq for Column {}

/// Columns of a key, as positions in [`TableSchema::columns`], in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumns {
    /// Name, for messages and `SHOW INDEXES`.
    pub name: String,
    /// Positions.
    pub columns: Vec<usize>,
}

/// How rows are distributed over partitions. A table without a shard key has a single partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardKey {
    /// Positions of the columns that choose the partition; none when the hidden row number does. In
    /// a table with a primary key they are among its columns, so that a key alone gives the
    /// partition.
    pub columns: Vec<usize>,
    /// Number of partitions. 0 in a schema that is not created yet: the database chooses.
    pub partitions: u32,
}

/// A table's schema. Immutable; DDL makes a new one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSchema {
    /// Identity.
    pub id: TableId,
    /// Name as written; looked up without regard to ASCII case.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Primary key. Without one, rows are identified by a hidden row number.
    pub primary_key: Option<KeyColumns>,
    /// The order of segments, when it is not that of the primary key. Need not be unique.
    pub sort_key: Option<KeyColumns>,
    /// How rows are distributed over partitions.
    pub shard_key: Option<ShardKey>,
    /// Secondary indexes, in the order of their creation.
    pub indexes: Vec<IndexSchema>,
    /// Ids below this are used, some by dropped indexes.
    pub next_index_id: u32,
    /// Ids below this are used, some by dropped columns.
    pub next_column_id: u32,
    /// Columns of indexes that no row has: expressions over the columns of a row. Their positions
    /// follow those of the columns.
    pub computed: Vec<Column>,
    /// Conditions that rows satisfy.
    pub checks: Vec<CheckConstraint>,
    /// What its rows refer to.
    pub foreign_keys: Vec<ForeignKey>,
    /// The other tables with foreign keys that refer to this one, ascending.
    pub referenced_by: Vec<TableId>,
    /// The least value that the counter of the identity column gives next.
    pub next_identity: i64,
    /// Incremented with every change of the columns. Rows in memory and in the log carry the
    /// version under which they were written.
    pub version: u16,
}

/// The ids of temporary tables begin here. Other tables have smaller ones.
pub const FIRST_TEMPORARY_TABLE: TableId = 1 << 31;

impl TableSchema {
    /// Whether the table is of one session, and in memory only. In a `CREATE TABLE`, whose table has no
    /// id yet, the id is [`FIRST_TEMPORARY_TABLE`].
    pub fn is_temporary(&self) -> bool {
        self.id >= FIRST_TEMPORARY_TABLE
    }

    /// Allocates the id of a new column.
    pub fn take_column_id(&mut self) -> u32 {
        let above = self.columns.iter().chain(&self.computed).map(|c| c.id + 1).max().unwrap_or(0);
        let id = self.next_column_id.max(above);
        self.next_column_id = id + 1;
        id
    }

    /// Inserts a column at a position; keys still refer to the same columns.
    pub fn insert_column(&mut self, at: usize, column: Column) {
        self.columns.insert(at, column);
        self.move_keys(|position| if position >= at { position + 1 } else { position });
    }

    /// Removes a column that is in no key; keys still refer to the same columns.
    pub fn remove_column(&mut self, at: usize) -> Column {
        self.move_keys(|position| if position > at { position - 1 } else { position });
        let gone = self.columns.remove(at);
        self.next_column_id = self.next_column_id.max(gone.id + 1);
        gone
    }

    fn move_keys(&mut self, to: impl Fn(usize) -> usize) {
        let keys = [&mut self.primary_key, &mut self.sort_key];
        keys.into_iter()
            .flatten()
            .flat_map(|key| &mut key.columns)
            .for_each(|position| *position = to(*position));
        let shard = self.shard_key.as_mut().map(|key| &mut key.columns);
        shard.into_iter().flatten().for_each(|position| *position = to(*position));
    }

    /// Whether both have the same columns at the same positions: rows of one are rows of the other.
    pub fn same_columns(&self, other: &TableSchema) -> bool {
        self.version == other.version
            && self.columns.len() == other.columns.len()
            && self.columns.iter().zip(&other.columns).all(|(a, b)| a.id == b.id)
    }

    /// Position of a column by name, without regard to ASCII case.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// Column types in order.
    pub fn types(&self) -> Vec<DataType> {
        self.columns.iter().map(|c| c.data_type).collect()
    }

    /// Checks that the shard key agrees with the primary key.
    pub fn check_shard_key(&self) -> Result<()> {
        let Some(shard) = &self.shard_key else { return Ok(()) };
        if shard.partitions as usize > limits::MAX_PARTITIONS {
            return Err(Error::limit(format!(
                "a table has at most {} partitions",
                limits::MAX_PARTITIONS
            )));
        }
        let Some(key) = &self.primary_key else { return Ok(()) };
        if shard.columns.is_empty() {
            return Err(Error::unsupported("SHARD KEY () of a table with a PRIMARY KEY")
                .with_sqlstate("42P16"));
        }
        match shard.columns.iter().find(|c| !key.columns.contains(c)).and_then(|c| self.columns.get(*c)) {
            Some(column) => Err(Error::constraint(format!(
                "the SHARD KEY must be part of every unique key: column {} is not in the PRIMARY KEY",
                column.name
            ))
            .with_sqlstate("42P16")
            .with_table(self.name.clone())),
            None => Ok(()),
        }
    }

    /// Checks one row: width, nulls, and that each value is of the column's type and within its
    /// limits.
    pub fn check_row(&self, row: &[Value]) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(Error::type_error(format!(
                "table {} has {} columns, the row has {}",
                self.name,
                self.columns.len(),
                row.len()
            )));
        }
        for (column, value) in self.columns.iter().zip(row) {
            column.check(value).map_err(|e| e.with_table(self.name.clone()))?;
        }
        Ok(())
    }
}

impl Column {
    /// Checks one value: null only when allowed, of this type, and within its limits.
    pub fn check(&self, value: &Value) -> Result<()> {
        let bytes = match value {
            Value::Text(v) | Value::Json(v) => v.len(),
            Value::Binary(v) => v.len(),
            _ => 0,
        };
        if bytes > limits::MAX_VALUE_BYTES {
            return Err(Error::limit(format!(
                "value longer than {} bytes",
                limits::MAX_VALUE_BYTES
            )));
        }
        let stored = |v: i64| {
            self.data_type
                .stored_range()
                .is_some_and(|(low, high)| (low..=high).contains(&(v as i128)))
        };
        let fits = match (value, self.data_type) {
            (Value::Null, _) if self.nullable => true,
            (Value::Null, _) => {
                return Err(Error::constraint(format!("column {} must not be null", self.name))
                    .with_sqlstate("23502")
                    .with_key(self.name.clone()));
            }
            (Value::Boolean(_), DataType::Boolean) => true,
            (Value::Int(v), t) if t.is_integer() && t != DataType::UInt64 => stored(*v),
            (Value::UInt(_), DataType::UInt64) => true,
            (Value::Float(_), DataType::Float64) => true,
            (Value::Float(v), DataType::Float32) => (*v as f32) as f64 == *v || v.is_nan(),
            (Value::Decimal { unscaled, scale }, DataType::Decimal { precision, scale: s }) => {
                *scale == s && crate::decimal::digits(*unscaled) <= precision
            }
            (Value::Text(v), DataType::Text { max_chars }) => {
                if max_chars.is_some_and(|n| v.len() > n as usize && v.chars().count() > n as usize)
                {
                    return Err(Error::type_error(format!(
                        "value too long for column {} {}",
                        self.name, self.data_type
                    ))
                    .with_sqlstate("22001"));
                }
                true
            }
            (Value::Binary(v), DataType::Binary { max_bytes }) => {
                if max_bytes.is_some_and(|n| v.len() > n as usize) {
                    return Err(Error::type_error(format!(
                        "value too long for column {} {}",
                        self.name, self.data_type
                    ))
                    .with_sqlstate("22001"));
                }
                true
            }
            (Value::Date(v), DataType::Date) => stored(*v as i64),
            (Value::Time(v), DataType::Time)
            | (Value::Timestamp(v), DataType::Timestamp)
            | (Value::TimestampTz(v), DataType::TimestampTz) => stored(*v),
            (Value::Json(_), DataType::Json) | (Value::Uuid(_), DataType::Uuid) => true,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let error = Error::out_of_range(format!(
            "value {value} of type {} does not fit column {} {}",
            value.natural_type(),
            self.name,
            self.data_type
        ));
        let is_moment = self.data_type.is_moment();
        Err(if is_moment { error.with_sqlstate("22008") } else { error })
    }
}

/// A named query, stored as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSchema {
    /// Name as written; looked up without regard to ASCII case, in the same namespace as tables.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// The `CREATE VIEW` statement, as written.
    pub statement: String,
}
