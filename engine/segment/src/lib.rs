//! The immutable columnar file: its writer, its reader and the cache of its blocks.
//!
//! Knows bytes, not transactions: deletes, snapshots and indexes across segments live elsewhere.
//! The format is described in `docs/FORMAT.md`, chapter "Segment file".

use nacre_column::{Batch, Vector};
use nacre_host::LocalFile;
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

/// What a builder needs to know about a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The table's stable number of the column.
    pub id: u32,
    /// The declared type.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
}

/// What a segment knows about one of its columns.
#[derive(Clone, Debug)]
pub struct ColumnMeta {
    /// The table's stable number of the column.
    pub id: u32,
    /// The type the values were written with.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
    /// The encoding of most blocks.
    pub encoding: &'static str,
    /// Bytes in the file: blocks and dictionary.
    pub bytes: u64,
    /// Bytes the values take uncompressed.
    pub raw_bytes: u64,
    /// Number of null rows.
    pub null_count: u64,
    /// A lower bound of the values; the least one unless it was cut. Null when there are only nulls.
    pub min: Value,
    /// An upper bound of the values; the greatest one unless it was cut. Null when there are only nulls.
    pub max: Value,
    /// Whether `min` and `max` are values of the column rather than cut bounds.
    pub exact: bool,
}

/// Bounds of one column in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Lower bound; null when all rows are null.
    pub min: Value,
    /// Upper bound; null when all rows are null.
    pub max: Value,
    /// Null rows of the block.
    pub null_count: u32,
    /// Whether the bounds occur in the block (long text is cut to shorter bounds).
    pub exact: bool,
}

/// Collects rows and writes them as one segment.
pub struct SegmentBuilder {
    columns: Vec<ColumnSpec>,
    rows: usize,
}

impl SegmentBuilder {
    /// A builder of a segment with these columns.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        SegmentBuilder { columns, rows: 0 }
    }
    /// Appends the selected rows of a batch, whose columns are those of the builder in order.
    pub fn push(&mut self, batch: &Batch) {
        self.rows += batch.selected();
    }
    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.columns.len()
    }
    /// Writes the whole file, footer last, and answers its length. Does not sync.
    pub fn write(self, _file: &dyn LocalFile) -> Result<u64> {
        Err(Error::unsupported("segment"))
    }
}

/// One immutable file of rows, column by column. Cheap to share.
pub struct Segment {
    columns: Vec<ColumnMeta>,
}

#[allow(missing_docs, unused_variables)]
impl Segment {
    pub fn open(file: Arc<dyn LocalFile>, name: &str, id: u64, cache: Arc<BlockCache>) -> Result<Segment> {
        Err(Error::unsupported("segment"))
    }
    pub fn id(&self) -> u64 {
        0
    }
    pub fn name(&self) -> &str {
        ""
    }
    pub fn rows(&self) -> usize {
        0
    }
    pub fn bytes(&self) -> u64 {
        0
    }
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
    pub fn column_index(&self, id: u32) -> Option<usize> {
        self.columns.iter().position(|c| c.id == id)
    }
    pub fn blocks(&self) -> usize {
        0
    }
    pub fn zone(&self, column: usize, block: usize) -> Zone {
        Zone { min: Value::Null, max: Value::Null, null_count: 0, exact: true }
    }
    pub fn get(&self, column: usize, row: usize) -> Result<Value> {
        Err(Error::unsupported("segment"))
    }
    pub fn take(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        Err(Error::unsupported("segment"))
    }
    pub fn decode(&self, column: usize, start: usize, len: usize) -> Result<Vector> {
        Err(Error::unsupported("segment"))
    }
    pub fn load(&self, column_blocks: &[(usize, usize)]) -> Result<()> {
        Err(Error::unsupported("segment"))
    }
    pub fn search(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        Err(Error::unsupported("segment"))
    }
    pub fn lower_bound(&self, key_columns: &[usize], key_prefix: &[Value]) -> Result<usize> {
        Err(Error::unsupported("segment"))
    }
    pub fn verify(&self) -> Vec<Error> {
        Vec::new()
    }
}

/// Blocks held in memory, shared by the segments of a database and bounded in bytes.
pub struct BlockCache {
    limit_bytes: usize,
}

#[allow(missing_docs, unused_variables)]
impl BlockCache {
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(BlockCache { limit_bytes })
    }
    pub fn read_bytes(&self) -> u64 {
        0
    }
    pub fn memory_bytes(&self) -> usize {
        self.limit_bytes.min(0)
    }
    pub fn forget(&self, segment: u64) {}
}
