//! Hard limits, all in one place.

/// Rows of one segment at most.
pub const MAX_SEGMENT_ROWS: usize = 1 << 20;
/// Rows of one column block: the unit of I/O, checksum and zone map inside a segment.
pub const BLOCK_ROWS: usize = 4096;
/// Rows of one vector: the unit of execution. Divides [`BLOCK_ROWS`].
pub const VECTOR_ROWS: usize = 2048;
/// Bytes of one text or binary value at most.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
/// Bytes of an encoded key at most.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Partitions of a table at most.
pub const MAX_PARTITIONS: usize = 1024;
/// Columns of a table at most.
pub const MAX_COLUMNS: usize = 4096;
/// Columns of a segment at most: a table's, the number of the row, the order of the keys and their filter.
pub const MAX_SEGMENT_COLUMNS: usize = MAX_COLUMNS + 3;
/// Bytes of SQL text at most.
pub const MAX_SQL_BYTES: usize = 16 << 20;
/// Secondary indexes of a table at most.
pub const MAX_INDEXES: usize = 64;
/// Columns of a secondary index at most.
pub const MAX_INDEX_COLUMNS: usize = 16;
/// Ids of indexes are below this: columns of segments are numbered by them.
pub const MAX_INDEX_ID: u32 = (1 << 26) - 1;
