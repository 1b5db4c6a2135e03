//! A table: its schema, its partitions, and where the row of a key is.
//!
//! The key of a row alone decides which partition the row is in. What only needs the schema is here;
//! what is kept per partition is in `partition.rs`.

use crate::index::definition::Index;
use crate::index::directory::Candidate;
use crate::layout::key_filter::KEY_FILTER_COLUMN;
use crate::load::common_keys::SortedKeys;
use crate::record::Place;
use crate::segments::part;
use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::sharding;
use nacre_column::Batch;
use nacre_rowstore::Row;
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::row::{self, RowLayout};
use nacre_types::{DataType, Error, Result, TableId, TableSchema, Timestamp, Value, key};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Column id, inside segments, of the hidden row number of tables without a primary key.
pub(crate) const ROW_NUMBER_COLUMN: u32 = u32::MAX;

/// Not ended.
const FOREVER: Timestamp = Timestamp::MAX;

/// Rows of an earlier version of the schema, which may still be in the rowstores.
#[derive(Clone)]
struct OlderRows {
    layout: RowLayout,
    /// Ids of its columns.
    columns: Vec<u32>,
}

/// Column id, inside segments that are sorted by something else than the key, of the row numbers in key order.
pub(crate) const KEY_ORDER_COLUMN: u32 = u32::MAX - 1;

/// What a column of a segment is that its table does not have, or not any more.
pub fn hidden_column(id: u32) -> &'static str {
    match id {
        ROW_NUMBER_COLUMN => "(row number)",
        KEY_ORDER_COLUMN => "(key order)",
        KEY_FILTER_COLUMN => "(key filter)",
        id if part::is_of_index(id) => "(index)",
        _ => "(dropped)",
    }
}

/// [`Segment::search`], or the same for who will read the row.
pub(crate) type Search = fn(&Segment, &[usize], &[Value]) -> Result<Option<usize>>;

/// One table of a database, from one change of its schema to the next.
pub struct Table {
    schema: Arc<TableSchema>,
    layout: RowLayout,
    older: Vec<OlderRows>,
    /// At least one.
    partitions: Arc<Vec<Partition>>,
    indexes: Vec<Index>,
    /// The commit that made this version; 0 when it is older than the opening of the database.
    since: Timestamp,
    /// The commit that made the table; 0 as above.
    made: AtomicU64,
    /// The commit that put another version in its place or dropped the table.
    until: AtomicU64,
    previous: Previous,
    /// Counts rows that may go anywhere.
    pub(crate) next_spread: AtomicU64,
    dropped: AtomicBool,
    /// Timestamp of the last commit that changed it.
    changed: Arc<AtomicU64>,
}

/// The version before, while a snapshot may ask for it.
#[derive(Default)]
struct Previous(RwLock<Option<Arc<Table>>>);

impl Drop for Previous {
    /// One version after the other, not each inside the drop of the next: there are as many as there were changes while
    /// somebody read the oldest.
    fn drop(&mut self) {
        let take = |previous: &mut Previous| {
            previous.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        };
        let mut next = take(self);
        while let Some(mut table) = next.and_then(Arc::into_inner) {
            next = take(&mut table.previous);
        }
    }
}

impl Table {
    pub(crate) fn new(schema: TableSchema) -> Table {
        let partitions = sharding::new_partitions(&schema);
        Table {
            layout: RowLayout::new(schema.types(), schema.version),
            indexes: Index::all(&schema, partitions.len(), &[]),
            partitions: Arc::new(partitions),
            next_spread: AtomicU64::new(0),
            schema: Arc::new(schema),
            older: Vec::new(),
            since: 0,
            made: AtomicU64::new(0),
            until: AtomicU64::new(FOREVER),
            previous: Previous::default(),
            dropped: AtomicBool::new(false),
            changed: Arc::default(),
        }
    }

    /// The version of a table that a commit makes by changing the schema. It shares the partitions.
    pub(crate) fn altered(old: &Table, schema: TableSchema, since: Timestamp) -> Table {
        let mut older = old.older.clone();
        if schema.version != old.schema.version {
            let columns = old.schema.columns.iter().map(|c| c.id).collect();
            older.push(OlderRows { layout: old.layout.clone(), columns });
        }
        let indexes = Index::all(&schema, old.partitions.len(), &old.indexes);
        let partitions = old.partitions.clone();
        let made = AtomicU64::new(old.made());
        Table {
            older,
            partitions,
            indexes,
            changed: old.changed.clone(),
            since,
            made,
            ..Table::new(schema)
        }
    }

    /// The version of a table that a commit makes by taking all rows away. Its partitions are new and empty, but go
    /// on counting rows.
    pub(crate) fn emptied(old: &Table, since: Timestamp) -> Table {
        let old_schema = old.schema.clone();
        let partition = |old: &Partition| {
            let new = Partition::new(old.number(), sharding::partitions(&old_schema));
            new.saw_row_numbers(old.next_row_number().saturating_sub(1));
            new
        };
        let partitions = Arc::new(old.partitions.iter().map(partition).collect());
        let made = AtomicU64::new(old.made());
        Table { partitions, since, made, ..Table::new((*old.schema).clone()) }
    }

    /// The commit that made the table, in whatever version; 0 when it is older than the opening of the database.
    pub(crate) fn made(&self) -> Timestamp {
        self.made.load(Ordering::Acquire)
    }

    pub(crate) fn made_by(&self, commit: Timestamp) {
        self.made.store(commit, Ordering::Release);
    }

    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    pub(crate) fn previous(&self) -> Option<Arc<Table>> {
        self.previous.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_previous(&self, previous: Option<Arc<Table>>) {
        *self.previous.0.write().unwrap_or_else(PoisonError::into_inner) = previous;
    }

    /// Whether no commit has put another version in the place of this one.
    pub(crate) fn is_newest(&self) -> bool {
        self.until.load(Ordering::Acquire) == FOREVER
    }

    /// Whether snapshots of a timestamp see this version of the table.
    pub fn serves(&self, at: Timestamp) -> bool {
        self.since <= at && at < self.until.load(Ordering::Acquire)
    }

    /// Only under the commit lock.
    pub(crate) fn end_at(&self, commit: Timestamp) {
        self.until.store(commit, Ordering::Release);
    }

    /// A row of the rowstore as a row of this version of the schema: columns that came later have their default.
    pub(crate) fn upgrade(&self, row: Row) -> Result<Row> {
        let version = row::version(&row);
        if version == Some(self.schema.version) {
            return Ok(row);
        }
        let older = self.older_rows(version)?;
        let value = |column: &nacre_types::Column| match older
            .columns
            .iter()
            .position(|id| *id == column.id)
        {
            Some(at) => older.layout.value(&row, at),
            None => column.default.clone(),
        };
        let values: Vec<Value> = self.schema.columns.iter().map(value).collect();
        Ok(self.layout.encode(&values)?.into())
    }

    fn older_rows(&self, version: Option<u16>) -> Result<&OlderRows> {
        let found = self.older.iter().find(|older| Some(older.layout.version()) == version);
        found.ok_or_else(|| {
            let version = version.map_or_else(|| "?".to_string(), |v| v.to_string());
            Error::corrupt(format!(
                "table {}: a row of version {version} of its schema",
                self.schema.name
            ))
        })
    }

    /// Checks bytes that are said to be a row, of this version of the schema or of one before it.
    pub(crate) fn validate_row(&self, row: &[u8]) -> Result<()> {
        let version = row::version(row);
        if version == Some(self.schema.version) {
            return self.layout.validate(row);
        }
        self.older_rows(version)?.layout.validate(row)
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    pub(crate) fn id(&self) -> TableId {
        self.schema.id
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    pub(crate) fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// Its partitions, by number.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The partition of a number that this table gave out.
    pub(crate) fn partition(&self, number: u32) -> &Partition {
        &self.partitions[number as usize]
    }

    /// How records name one of its partitions.
    pub(crate) fn place(&self, partition: &Partition) -> Place {
        Place { table: self.id(), partition: partition.number() }
    }

    /// Number of rows, about: deleted versions in memory are counted.
    pub fn row_count_estimate(&self) -> u64 {
        self.partitions.iter().map(Partition::row_count_estimate).sum()
    }

    /// Number of nodes and bytes of the rowstores, index entries included.
    pub fn rowstore_size(&self) -> (usize, usize) {
        let sizes = self.partitions.iter().map(|partition| {
            let (nodes, bytes) = partition.rowstore_size();
            (nodes, bytes + self.entry_bytes(partition.number()))
        });
        sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }

    /// A partition whose share of the limit on rowstore bytes is passed.
    pub(crate) fn wanting_flush(&self, store: &Store) -> Option<&Partition> {
        let limit = store.options.flush_bytes / self.partitions.len();
        let wants = |p: &&Partition| {
            p.wants_flush(limit, self.entry_bytes(p.number()), || store.oldest_snapshot())
        };
        self.partitions.iter().find(wants)
    }

    /// All segments that some snapshot may see, by partition.
    pub fn segments(&self) -> Vec<Arc<SegmentState>> {
        self.partitions
            .iter()
            .flat_map(|p| p.segments().iter().cloned().collect::<Vec<_>>())
            .collect()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Only under the commit lock, on the newest version. The older ones, which snapshots may have, are dropped too.
    pub(crate) fn drop_at(&self, commit: Timestamp) {
        self.dropped.store(true, Ordering::Release);
        let mut older = self.previous();
        while let Some(version) = older {
            version.dropped.store(true, Ordering::Release);
            older = version.previous();
        }
        self.end_at(commit);
    }

    pub(crate) fn changed(&self) -> Timestamp {
        self.changed.load(Ordering::Acquire)
    }

    pub(crate) fn set_changed(&self, at: Timestamp) {
        self.changed.fetch_max(at, Ordering::AcqRel);
    }

    /// Positions of the primary key's columns in the table; `None` when rows have hidden numbers.
    pub fn key_columns(&self) -> Option<&[usize]> {
        self.schema.primary_key.as_ref().map(|key| key.columns.as_slice())
    }

    /// Data types of the key's columns.
    pub(crate) fn key_types(&self) -> Vec<DataType> {
        match self.key_columns() {
            Some(columns) => columns.iter().map(|c| self.schema.columns[*c].data_type).collect(),
            None => vec![DataType::Int64],
        }
    }

    /// Encodes key values of a row. Keys have a limit.
    pub(crate) fn encode_key(&self, values: &[Value]) -> Result<Vec<u8>> {
        let key = self.encode_wanted_key(values)?;
        key::check_length(&key).map(|()| key)
    }

    /// The same of a key that is only looked for: one that is too long for a row is not found.
    pub(crate) fn encode_wanted_key(&self, values: &[Value]) -> Result<Vec<u8>> {
        let columns = self.key_columns();
        if values.len() != columns.map_or(1, <[usize]>::len) {
            return Err(Error::type_error("key has a wrong number of values"));
        }
        let mut out = Vec::with_capacity(values.len() * 9);
        for (at, value) in values.iter().enumerate() {
            let data_type = columns
                .map_or(DataType::Int64, |columns| self.schema.columns[columns[at]].data_type);
            key::append(&mut out, data_type, value)?;
        }
        Ok(out)
    }

    pub(crate) fn encode_row_number(number: u64) -> Vec<u8> {
        let mut out = vec![1];
        key::put_i64(&mut out, number as i64);
        out
    }

    /// The columns of this table's segments: the table's, then the hidden row number if it has one.
    pub(crate) fn segment_columns(&self) -> Vec<ColumnSpec> {
        let mut columns: Vec<ColumnSpec> = self
            .schema
            .columns
            .iter()
            .map(|c| ColumnSpec { id: c.id, data_type: c.data_type, nullable: c.nullable })
            .collect();
        if self.key_columns().is_none() {
            columns.push(ColumnSpec {
                id: ROW_NUMBER_COLUMN,
                data_type: DataType::Int64,
                nullable: false,
            });
        }
        columns
    }

    /// Collects rows for a segment of this table. They must come in the order of [`Table::encode_order`].
    pub(crate) fn segment_builder(&self) -> SegmentBuilder {
        let builder = SegmentBuilder::new(self.segment_columns());
        let builder = builder.with_indexes(self.indexes.iter().map(Index::order).collect());
        if self.sort_columns().is_none() {
            return builder;
        }
        let key =
            self.key_columns().map_or_else(|| vec![self.schema.columns.len()], <[usize]>::to_vec);
        builder.with_key_order(key, KEY_ORDER_COLUMN)
    }

    /// Columns of the sort key, unless rows in key order are in this order too.
    pub(crate) fn sort_columns(&self) -> Option<&[usize]> {
        let sort = self.schema.sort_key.as_ref()?;
        if self.key_columns().is_some_and(|key| key.starts_with(&sort.columns)) {
            None
        } else {
            Some(&sort.columns)
        }
    }

    /// In a segment that is not sorted by the key, the position of the column with the row numbers in key order.
    pub(crate) fn key_order(&self, segment: &Segment) -> Result<Option<usize>> {
        if self.sort_columns().is_none() {
            return Ok(None);
        }
        let found = segment.column_index(KEY_ORDER_COLUMN);
        found
            .map(Some)
            .ok_or_else(|| Error::corrupt(format!("segment {}: no key order", segment.name())))
    }

    /// The row at a position in key order.
    pub(crate) fn row_in_key_order(&self, segment: &Segment, at: usize) -> Result<usize> {
        match self.key_order(segment)? {
            Some(order) => segment.row_in_order(order, at),
            None => Ok(at),
        }
    }

    /// The keys of a segment's rows, in order.
    pub(crate) fn sorted_keys<'a>(&self, segment: &'a Segment) -> Result<SortedKeys<'a>> {
        let (columns, order) = (self.key_positions(segment)?, self.key_order(segment)?);
        Ok(SortedKeys { file: segment, columns, order })
    }

    /// Positions, inside a segment, of the columns that its rows are sorted by.
    pub(crate) fn order_columns(&self, segment: &Segment) -> Result<Vec<usize>> {
        let mut positions = Vec::new();
        for column in self.sort_columns().unwrap_or_default() {
            let id = self.schema.columns[*column].id;
            let missing = || {
                Error::corrupt(format!("segment {}: sort column {id} is missing", segment.name()))
            };
            positions.push(segment.column_index(id).ok_or_else(missing)?);
        }
        // The key comes last, so that the order is one and the same every time.
        positions.extend(self.key_positions(segment)?);
        Ok(positions)
    }

    /// Encodes the values of the columns that rows are sorted by. They are stored nowhere like this, so that they have no
    /// limit.
    pub(crate) fn encode_order(&self, values: &[Value]) -> Result<Vec<u8>> {
        let sort = self.sort_columns().unwrap_or_default();
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

    /// Whether both are versions of one table that has not been emptied in between.
    pub(crate) fn shares_partitions(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.partitions, &other.partitions)
    }

    /// Value of a column in segments older than it.
    pub(crate) fn default_of(&self, column_id: u32) -> Value {
        self.schema
            .columns
            .iter()
            .find(|c| c.id == column_id)
            .map_or(Value::Null, |c| c.default.clone())
    }

    /// Positions, inside a segment, of the key's columns.
    pub(crate) fn segment_key_columns(&self, state: &SegmentState) -> Result<Vec<usize>> {
        self.key_positions(&state.segment)
    }

    pub(crate) fn key_positions(&self, segment: &Segment) -> Result<Vec<usize>> {
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

    /// Table column positions to segment column positions.
    pub(crate) fn segment_mapping(&self, state: &SegmentState) -> Vec<Option<usize>> {
        self.schema.columns.iter().map(|c| state.segment.column_index(c.id)).collect()
    }

    /// Row of a key in one segment, deleted or not.
    pub(crate) fn find_in_segment(
        &self,
        state: &SegmentState,
        key: &[Value],
    ) -> Result<Option<u32>> {
        self.find_row(&state.segment, key, Segment::search_to_read)
    }

    /// The same where only a candidate is to be looked at.
    pub(crate) fn find_candidate(
        &self,
        state: &SegmentState,
        candidate: Candidate,
        key: &[Value],
    ) -> Result<Option<u32>> {
        match candidate.position {
            Some(row) => {
                let columns = self.segment_key_columns(state)?;
                Ok(state.segment.is_key(row as usize, &columns, key)?.then_some(row))
            }
            None if !state.may_have(candidate.hash)? => Ok(None),
            None => self.find_in_segment(state, key),
        }
    }

    /// Row of a key in a segment; `search` is how a segment is searched that is sorted by the key.
    pub(crate) fn find_row(
        &self,
        segment: &Segment,
        key: &[Value],
        search: Search,
    ) -> Result<Option<u32>> {
        let columns = self.key_positions(segment)?;
        let found = match self.key_order(segment)? {
            Some(order) => segment.search_in_order(order, &columns, key)?,
            None => search(segment, &columns, key)?,
        };
        Ok(found.map(|row| row as u32))
    }

    /// Where a key's row is among a partition's segments as of now, including commits not yet visible to new
    /// snapshots; a segment of an unfinished bulk load counts.
    pub(crate) fn find_newest(
        &self,
        partition: &Partition,
        key: &[Value],
    ) -> Result<Option<(Arc<SegmentState>, u32)>> {
        loop {
            let list = partition.segments();
            let mut left_out = false;
            for candidate in list.of_key(self, &self.encode_key(key)?)?.newest_first() {
                let state = &list[candidate.place];
                if !state.is_current() {
                    left_out = true;
                } else if let Some(row) = self.find_candidate(state, candidate, key)?
                    && !state.is_deleted(row)
                {
                    return Ok(Some((state.clone(), row)));
                }
            }
            // What a merge has replaced since the list was read is in segments that the list may not have.
            if !left_out || Arc::ptr_eq(&list, &partition.segments()) {
                return Ok(None);
            }
        }
    }

    /// The key of a segment's row.
    pub(crate) fn key_of_segment_row(&self, state: &SegmentState, row: u32) -> Result<Vec<Value>> {
        let columns = self.segment_key_columns(state)?;
        columns.iter().map(|c| state.segment.get(*c, row as usize)).collect()
    }

    /// Values of a row of a segment.
    pub(crate) fn segment_row(
        &self,
        state: &SegmentState,
        row: u32,
        projection: &[usize],
    ) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(projection.len());
        let column = |at: usize| &self.schema.columns[projection[at]];
        let absent = |at: usize| column(at).default.clone();
        state.segment.values(
            row as usize,
            projection.len(),
            &|at| column(at).id,
            &absent,
            &mut values,
        )?;
        Ok(values)
    }

    /// Checks that a batch has this table's columns and that no value breaks a constraint.
    pub(crate) fn check_batch(&self, batch: &Batch) -> Result<()> {
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
                    "column {} is {}, the value is {}",
                    column.name,
                    column.data_type,
                    vector.data_type()
                )));
            }
            crate::layout::rows::check_column(column, vector)
                .map_err(|e| e.with_table(self.schema.name.clone()))?;
        }
        Ok(())
    }

    /// A row as it is in memory and in the log. `limit` when it is longer than what moves it can be.
    pub(crate) fn encode_row(&self, values: &[Value]) -> Result<Row> {
        let row = self.layout.encode(values)?;
        crate::layout::rows::check_row_length(row.len())?;
        Ok(row.into())
    }

    /// The error for a key that exists already.
    pub(crate) fn duplicate(&self, key: &[Value]) -> Error {
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
