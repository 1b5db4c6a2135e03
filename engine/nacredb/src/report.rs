//! What `inspect` shows: how a table is stored.

use crate::database::Database;
use nacre_table::{SegmentState, Table, hidden_column};
use nacre_types::{DataType, Result, Value};

/// How a table is stored.
#[derive(Clone, Debug)]
pub struct TableReport {
    /// Name.
    pub name: String,
    /// Rows, about.
    pub rows: u64,
    /// Nodes in the rowstore, including tombstones and old versions not yet freed.
    pub rowstore_rows: u64,
    /// Bytes of the rowstore.
    pub rowstore_bytes: u64,
    /// Names of the primary key's columns; empty when rows have hidden numbers.
    pub primary_key: Vec<String>,
    /// Columns, over all segments.
    pub columns: Vec<ColumnReport>,
    /// Segments, oldest first.
    pub segments: Vec<SegmentReport>,
}

/// A column over all segments.
#[derive(Clone, Debug)]
pub struct ColumnReport {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Bytes in segments.
    pub bytes: u64,
    /// Bytes the same values take unencoded.
    pub raw_bytes: u64,
    /// Encodings and in how many segments each is used.
    pub encodings: Vec<(String, usize)>,
}

/// A segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Id.
    pub id: u64,
    /// File name.
    pub name: String,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Deleted rows.
    pub deleted: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Smallest value of the first key column; empty without a primary key.
    pub min_key: String,
    /// Largest value of the first key column.
    pub max_key: String,
    /// Columns in file order.
    pub columns: Vec<SegmentColumnReport>,
}

/// A column of a segment.
#[derive(Clone, Debug)]
pub struct SegmentColumnReport {
    /// Column name; what it is in brackets, as `(row number)`, when it is not a column of the table.
    pub name: String,
    /// Encoding.
    pub encoding: String,
    /// Bytes.
    pub bytes: u64,
}

impl Database {
    /// How every table is stored.
    pub fn inspect(&self) -> Result<Vec<TableReport>> {
        Ok(self.0.store().tables().iter().map(|t| table_report(t)).collect())
    }
}

fn table_report(table: &Table) -> TableReport {
    let schema = table.schema();
    let states: Vec<_> = table.segments().iter().filter(|s| s.is_current()).cloned().collect();
    let columns = schema
        .columns
        .iter()
        .map(|column| {
            let mut report = ColumnReport {
                name: column.name.clone(),
                data_type: column.data_type,
                nullable: column.nullable,
                bytes: 0,
                raw_bytes: 0,
                encodings: Vec::new(),
            };
            for state in &states {
                let Some(index) = state.segment.column_index(column.id) else { continue };
                let Some(meta) = state.segment.columns().get(index) else { continue };
                report.bytes += meta.bytes;
                report.raw_bytes += meta.raw_bytes;
                match report.encodings.iter_mut().find(|(name, _)| name == meta.encoding) {
                    Some((_, count)) => *count += 1,
                    None => report.encodings.push((meta.encoding.to_string(), 1)),
                }
            }
            report
        })
        .collect();
    let (rowstore_rows, rowstore_bytes) = table.rowstore_size();
    TableReport {
        name: schema.name.clone(),
        rows: table.row_count_estimate(),
        rowstore_rows: rowstore_rows as u64,
        rowstore_bytes: rowstore_bytes as u64,
        primary_key: table
            .key_columns()
            .map(|key| key.iter().map(|c| schema.columns[*c].name.clone()).collect())
            .unwrap_or_default(),
        columns,
        segments: states.iter().map(|s| segment_report(table, s)).collect(),
    }
}

fn segment_report(table: &Table, state: &SegmentState) -> SegmentReport {
    let schema = table.schema();
    let segment = &state.segment;
    let bound = |pick: fn(&(Value, Value)) -> &Value| {
        let key = table.key_columns().and_then(|k| k.first()).and_then(|c| schema.columns.get(*c));
        let meta = key
            .and_then(|c| segment.column_index(c.id))
            .and_then(|index| segment.columns().get(index));
        meta.map_or(String::new(), |m| pick(&(m.min.clone(), m.max.clone())).to_string())
    };
    SegmentReport {
        id: segment.id(),
        name: segment.name().to_string(),
        rows: segment.rows() as u64,
        deleted: state.deleted_rows(),
        bytes: segment.bytes(),
        min_key: bound(|b| &b.0),
        max_key: bound(|b| &b.1),
        columns: segment
            .columns()
            .iter()
            .map(|meta| SegmentColumnReport {
                name: schema
                    .columns
                    .iter()
                    .find(|c| c.id == meta.id)
                    .map_or(hidden_column(meta.id), |c| &c.name)
                    .to_string(),
                encoding: meta.encoding.to_string(),
                bytes: meta.bytes,
            })
            .collect(),
    }
}
