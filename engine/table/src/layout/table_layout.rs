//! The row and key layout of one version of a table: encoded in memory and in the log, and as
//! columns of segments. Everything here derives from the schema; no rows are held.
//!
//! Rows written under earlier versions of the schema stay in the rowstores as they are. The layout
//! keeps the row layouts of those versions and [`TableLayout::upgrade`]s such a row when it is
//! read.

use crate::layout::columns::{KEY_ORDER_COLUMN, ROW_NUMBER_COLUMN};
use crate::layout::constraints::{check_column, check_row_length};
use crate::layout::rules::TableRules;
use crate::layout::sorted_keys::SortedKeys;
use nacre_column::Batch;
use nacre_rowstore::Row;
use nacre_segment::{ColumnSpec, IndexOrder, OrderBounds, Segment, SegmentBuilder};
use nacre_types::row::{self, RowLayout};
use nacre_types::{Column, DataType, Error, Result, TableSchema, Value, key};
use std::sync::Arc;

/// How to search a segment sorted by key: [`Segment::search`], or [`Segment::search_to_read`] if
/// the caller reads the row afterwards.
pub(crate) type Search = fn(&Segment, &[usize], &[Value]) -> Result<Option<usize>>;

/// The layout of one version of a table.
#[derive(Clone)]
pub(crate) struct TableLayout {
    schema: Arc<TableSchema>,
    rows: RowLayout,
    older: Vec<OlderRows>,
    rules: Arc<TableRules>,
}

/// Layout of rows of an earlier schema version, which may still be in the rowstores.
#[derive(Clone)]
struct OlderRows {
    layout: RowLayout,
    /// Ids of its columns.
    columns: Vec<u32>,
}

impl TableLayout {
    /// The layout of a table without earlier versions.
    pub fn new(schema: TableSchema) -> TableLayout {
        let rows = RowLayout::new(schema.types(), schema.version);
        TableLayout { rows, schema: Arc::new(schema), older: Vec::new(), rules: Arc::default() }
    }

    /// The layout after a change of the schema.
    pub fn altered(&self, schema: TableSchema) -> TableLayout {
        debug_assert!(
            schema.version >= self.schema.version,
            "table {} goes back to version {} of its schema",
            schema.name,
            schema.version
        );
        let mut older = self.older.clone();
        if schema.version != self.schema.version {
            let columns = self.schema.columns.iter().map(|c| c.id).collect();
            older.push(OlderRows { layout: self.rows.clone(), columns });
        }
        debug_assert!(
            older.is_sorted_by(|a, b| a.layout.version() < b.layout.version()),
            "versions of the schema of table {} do not ascend",
            schema.name
        );
        let rules = Arc::new(self.rules.of_version());
        TableLayout { older, rules, ..TableLayout::new(schema) }
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The rules of its rows.
    pub fn rules(&self) -> &TableRules {
        &self.rules
    }

    /// The encoding of rows of this version.
    pub fn rows(&self) -> &RowLayout {
        &self.rows
    }

    /// Re-encodes a rowstore row for this version of the schema, with defaults for columns that the
    /// row predates.
    pub fn upgrade(&self, row: Row) -> Result<Row> {
        let version = row::version(&row);
        if version == Some(self.schema.version) {
            return Ok(row);
        }
        let older = self.older_rows(version)?;
        let value = |column: &Column| match older.columns.iter().position(|id| *id == column.id) {
            Some(at) => older.layout.value(&row, at),
            None => column.default.clone(),
        };
        let values: Vec<Value> = self.schema.columns.iter().map(value).collect();
        Ok(self.rows.encode(&values)?.into())
    }

    fn older_rows(&self, version: Option<u16>) -> Result<&OlderRows> {
        let found = self.older.iter().find(|older| Some(older.layout.version()) == version);
        found.ok_or_else(|| {
            let version = version.map_or_else(|| "?".to_string(), |v| v.to_string());
            Error::corrupt(format!(
                "table {}: a row has the unknown schema version {version}",
                self.schema.name
            ))
        })
    }

    /// Validates stored bytes as a row of this or an earlier version of the schema.
    pub fn validate_row(&self, row: &[u8]) -> Result<()> {
        let version = row::version(row);
        if version == Some(self.schema.version) {
            return self.rows.validate(row);
        }
        self.older_rows(version)?.layout.validate(row)
    }

    /// Encodes a row for memory and the log. `limit` if it would not fit in one log record when
    /// moved.
    pub fn encode_row(&self, values: &[Value]) -> Result<Row> {
        let row = self.rows.encode(values)?;
        check_row_length(row.len())?;
        debug_assert!(
            row::version(&row) == Some(self.schema.version),
            "an encoded row does not name version {} of its schema",
            self.schema.version
        );
        Ok(row.into())
    }

    /// Positions of the primary key's columns in the table; `None` if rows have hidden numbers.
    pub fn key_columns(&self) -> Option<&[usize]> {
        self.schema.primary_key.as_ref().map(|key| key.columns.as_slice())
    }

    /// Data types of the key's columns.
    pub fn key_types(&self) -> Vec<DataType> {
        match self.key_columns() {
            Some(columns) => columns.iter().map(|c| self.schema.columns[*c].data_type).collect(),
            None => vec![DataType::Int64],
        }
    }

    /// Encodes the key of a row to be written. `limit` if it is too long.
    pub fn encode_key(&self, values: &[Value]) -> Result<Vec<u8>> {
        let key = self.encode_wanted_key(values)?;
        key::check_length(&key).map(|()| key)
    }

    /// Encodes a key for a lookup. A key that is too long for any row is simply not found.
    pub fn encode_wanted_key(&self, values: &[Value]) -> Result<Vec<u8>> {
        let columns = self.key_columns();
        if values.len() != columns.map_or(1, <[usize]>::len) {
            return Err(Error::type_error("key has the wrong number of values"));
        }
        let mut out = Vec::with_capacity(values.len() * 9);
        for (at, value) in values.iter().enumerate() {
            let data_type = columns
                .map_or(DataType::Int64, |columns| self.schema.columns[columns[at]].data_type);
            key::append(&mut out, data_type, value)?;
        }
        Ok(out)
    }

    /// Encodes a hidden row number as a key.
    pub fn encode_row_number(number: u64) -> Vec<u8> {
        let mut out = vec![1];
        key::put_i64(&mut out, number as i64);
        debug_assert!(
            key::check_length(&out).is_ok() && out.len() == 9,
            "row number {number} takes {} bytes",
            out.len()
        );
        out
    }

    /// The columns of this table's segments: the table's columns, then the hidden row number if
    /// there is one.
    pub fn segment_columns(&self) -> Vec<ColumnSpec> {
        let mut columns: Vec<ColumnSpec> = self.schema.columns.iter().map(spec_of).collect();
        if self.key_columns().is_none() {
            columns.push(ColumnSpec {
                id: ROW_NUMBER_COLUMN,
                data_type: DataType::Int64,
                nullable: false,
            });
        }
        columns
    }

    /// Starts a segment with these index parts, over positions in the table. Rows must be pushed in
    /// the order of [`TableLayout::encode_order`], by [`TableLayout::push`].
    pub fn segment_builder(&self, mut indexes: Vec<IndexOrder>) -> SegmentBuilder {
        let mut columns = self.segment_columns();
        let (width, written) = (self.schema.columns.len(), columns.len());
        // Computed columns come after the hidden row number.
        let places = indexes.iter_mut().flat_map(|index| &mut index.columns);
        places.filter(|at| **at >= width).for_each(|at| *at += written - width);
        columns.extend(self.schema.computed.iter().map(spec_of));
        let builder = SegmentBuilder::new(columns).writing(written).with_indexes(indexes);
        if self.sort_columns().is_none() {
            return builder;
        }
        let key =
            self.key_columns().map_or_else(|| vec![self.schema.columns.len()], <[usize]>::to_vec);
        builder.with_key_order(key, KEY_ORDER_COLUMN)
    }

    /// Columns of the sort key; `None` if key order implies sort order.
    pub fn sort_columns(&self) -> Option<&[usize]> {
        let sort = self.schema.sort_key.as_ref()?;
        if self.key_columns().is_some_and(|key| key.starts_with(&sort.columns)) {
            None
        } else {
            Some(&sort.columns)
        }
    }

    /// Encodes the columns that order the rows of a segment: the sort columns, then the key. The
    /// encoding is not stored, so its length is not limited.
    pub fn encode_order(&self, values: &[Value]) -> Result<Vec<u8>> {
        let sort = self.sort_columns().unwrap_or(&[]);
        debug_assert!(
            values.len() >= sort.len(),
            "{} values of {} sort columns",
            values.len(),
            sort.len()
        );
        self.encode_order_prefix(values)
    }

    /// Encodes the first of the columns that order the rows of a segment.
    pub fn encode_order_prefix(&self, values: &[Value]) -> Result<Vec<u8>> {
        let sort = self.sort_columns().unwrap_or(&[]);
        debug_assert!(
            values.len() <= sort.len() + self.key_types().len(),
            "{} values of the order of table {}",
            values.len(),
            self.schema.name
        );
        let types = sort
            .iter()
            .map(|column| self.schema.columns[*column].data_type)
            .chain(self.key_types());
        let mut out = Vec::with_capacity(values.len() * 9);
        for (value, data_type) in values.iter().zip(types) {
            key::append(&mut out, data_type, value)?;
        }
        Ok(out)
    }

    /// Sets the order bounds of a segment whose rows are all pushed.
    pub fn with_order_bounds(&self, builder: SegmentBuilder) -> Result<SegmentBuilder> {
        let Some(last) = builder.rows().checked_sub(1) else { return Ok(builder) };
        let row_number = [self.schema.columns.len()];
        let key = self.key_columns().unwrap_or(&row_number);
        let columns = [self.sort_columns().unwrap_or(&[]), key].concat();
        let order = |row: usize| self.encode_order(&builder.values(&columns, row));
        let (first, last) = (order(0)?, order(last)?);
        if first > last {
            // A row's columns may differ from the key of its node only in a forged log.
            let table = &self.schema.name;
            return Err(Error::corrupt(format!(
                "table {table}: rows are not in order of their keys"
            )));
        }
        Ok(builder.with_order_bounds(OrderBounds::cut(first, last)))
    }

    /// The order bounds of a segment. Those of a segment without any in its footer are wider: they
    /// follow from the bounds of the first column that orders its rows.
    pub fn order_bounds(&self, segment: &Segment) -> Result<Arc<OrderBounds>> {
        if let Some(bounds) = segment.order_bounds() {
            return Ok(bounds.clone());
        }
        let first = self.order_columns(segment)?[0];
        let columns = segment.columns()?;
        let meta = &columns[first];
        let data_type = match self.sort_columns() {
            Some(sort) => self.schema.columns[sort[0]].data_type,
            None => self.key_types()[0],
        };
        let (mut first, mut last) = (vec![0], vec![0]);
        if meta.null_count < segment.rows() as u64 {
            last.clear();
            key::append(&mut last, data_type, &meta.max)?;
            if meta.null_count == 0 {
                first.clear();
                key::append(&mut first, data_type, &meta.min)?;
            }
        }
        // Above the encodings of all columns that follow.
        last.push(2);
        Ok(Arc::new(OrderBounds { first, last }))
    }

    /// Positions, within a segment, of the columns that order its rows.
    pub fn order_columns(&self, segment: &Segment) -> Result<Vec<usize>> {
        let mut positions = Vec::new();
        for column in self.sort_columns().unwrap_or(&[]) {
            let id = self.schema.columns[*column].id;
            let missing = || {
                Error::corrupt(format!("segment {}: sort column {id} is missing", segment.name()))
            };
            positions.push(segment.column_index(id).ok_or_else(missing)?);
        }
        // The key comes last and makes the order total.
        positions.extend(self.key_positions(segment)?);
        Ok(positions)
    }

    /// Positions, within a segment, of the key columns.
    pub fn key_positions(&self, segment: &Segment) -> Result<Vec<usize>> {
        let find = |id: u32| {
            segment.column_index(id).ok_or_else(|| {
                Error::corrupt(format!("segment {}: key column {id} is missing", segment.name()))
            })
        };
        match self.key_columns() {
            Some(columns) => columns.iter().map(|c| find(self.schema.columns[*c].id)).collect(),
            None => Ok(vec![find(ROW_NUMBER_COLUMN)?]),
        }
    }

    /// Position of the column of row numbers in key order; `None` if the segment's rows are already
    /// in key order.
    pub fn key_order(&self, segment: &Segment) -> Result<Option<usize>> {
        if self.sort_columns().is_none() {
            return Ok(None);
        }
        let found = segment.column_index(KEY_ORDER_COLUMN);
        found.map(Some).ok_or_else(|| {
            Error::corrupt(format!("segment {}: the key order is missing", segment.name()))
        })
    }

    /// The row at a position in key order.
    pub fn row_in_key_order(&self, segment: &Segment, at: usize) -> Result<usize> {
        debug_assert!(at < segment.rows(), "key {at} of {}", segment.rows());
        match self.key_order(segment)? {
            Some(order) => segment.row_in_order(order, at),
            None => Ok(at),
        }
    }

    /// The keys of a segment's rows, in key order.
    pub fn sorted_keys<'a>(&self, segment: &'a Segment) -> Result<SortedKeys<'a>> {
        let (columns, order) = (self.key_positions(segment)?, self.key_order(segment)?);
        Ok(SortedKeys::new(segment, columns, order))
    }

    /// Maps table column positions to segment column positions; `None` for a column that the
    /// segment predates.
    pub fn segment_mapping(&self, segment: &Segment) -> Vec<Option<usize>> {
        self.schema.columns.iter().map(|c| segment.column_index(c.id)).collect()
    }

    /// The row of a key in a segment, deleted or not.
    pub fn find_row(
        &self,
        segment: &Segment,
        key: &[Value],
        search: Search,
    ) -> Result<Option<u32>> {
        let columns = self.key_positions(segment)?;
        debug_assert!(
            key.len() == columns.len(),
            "{} values of a key of {} columns",
            key.len(),
            columns.len()
        );
        let found = match self.key_order(segment)? {
            Some(order) => segment.search_in_order(order, &columns, key)?,
            None => search(segment, &columns, key)?,
        };
        debug_assert!(
            found.is_none_or(|row| row < segment.rows()),
            "a key was found in row {found:?} of {}",
            segment.rows()
        );
        Ok(found.map(|row| row as u32))
    }

    /// The key of a segment's row.
    pub fn key_of_segment_row(&self, segment: &Segment, row: u32) -> Result<Vec<Value>> {
        debug_assert!((row as usize) < segment.rows(), "row {row} of {}", segment.rows());
        let columns = self.key_positions(segment)?;
        columns.iter().map(|c| segment.get(*c, row as usize)).collect()
    }

    /// Values of a segment's row, projected.
    pub fn segment_row(
        &self,
        segment: &Segment,
        row: u32,
        projection: &[usize],
    ) -> Result<Vec<Value>> {
        debug_assert!((row as usize) < segment.rows(), "row {row} of {}", segment.rows());
        let mut values = Vec::with_capacity(projection.len());
        let column = |at: usize| &self.schema.columns[projection[at]];
        let absent = |at: usize| column(at).default.clone();
        segment.values(
            row as usize,
            projection.len(),
            &|at| column(at).id,
            &absent,
            &mut values,
        )?;
        debug_assert!(
            values.len() == projection.len(),
            "{} values for {} columns",
            values.len(),
            projection.len()
        );
        Ok(values)
    }

    /// The value of a column in segments older than the column.
    pub fn default_of(&self, column_id: u32) -> Value {
        let column = self.schema.columns.iter().find(|c| c.id == column_id);
        debug_assert!(column.is_some(), "table {} has no column {column_id}", self.schema.name);
        column.map_or(Value::Null, |c| c.default.clone())
    }

    /// Checks that a batch has this table's columns and satisfies their constraints.
    pub fn check_batch(&self, batch: &Batch) -> Result<()> {
        debug_assert!(batch.selection.is_none(), "a batch to be written is not compact");
        if batch.columns.len() != self.schema.columns.len() {
            return Err(Error::type_error(format!(
                "table {} has {} columns, the rows have {}",
                self.schema.name,
                self.schema.columns.len(),
                batch.columns.len()
            )));
        }
        for (column, vector) in self.schema.columns.iter().zip(&batch.columns) {
            if vector.data_type().physical() != column.data_type.physical() {
                return Err(Error::type_error(format!(
                    "column {} has type {}, but the value has type {}",
                    column.name,
                    column.data_type,
                    vector.data_type()
                )));
            }
            check_column(column, vector).map_err(|e| e.with_table(self.schema.name.clone()))?;
        }
        Ok(())
    }

    /// The error for a key that already exists.
    pub fn duplicate(&self, key: &[Value]) -> Error {
        debug_assert!(
            key.len() == self.key_types().len(),
            "a key of {} values comes twice",
            key.len()
        );
        let values: Vec<String> = key.iter().map(ToString::to_string).collect();
        let name = self.schema.primary_key.as_ref().map_or("PRIMARY", |k| k.name.as_str());
        Error::duplicate_key(format!(
            "duplicate key ({}) in table {}, key {name}",
            values.join(", "),
            self.schema.name
        ))
        .with_table(self.schema.name.clone())
        .with_key(name)
    }
}

/// A column as segments store it.
pub(crate) fn spec_of(column: &Column) -> ColumnSpec {
    ColumnSpec { id: column.id, data_type: column.data_type, nullable: column.nullable }
}
