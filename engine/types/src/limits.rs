//! Hard limits of the engine.

/// Maximum number of rows in a segment.
pub const MAX_SEGMENT_ROWS: usize = 1 << 20;
/// Rows in a column block, the unit of I/O, checksum and zone map inside a segment.
pub const BLOCK_ROWS: usize = 4096;
/// Rows in a vector, the unit of execution. Divides [`BLOCK_ROWS`].
pub const VECTOR_ROWS: usize = 2048;
/// Maximum size of a text or binary value, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
/// Maximum size of an encoded key, in bytes.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Maximum number of partitions of a table.
pub const MAX_PARTITIONS: usize = 1024;
/// Maximum number of columns of a table.
pub const MAX_COLUMNS: usize = 4096;
/// Maximum id of a table's column. Greater ids are those of hidden columns.
pub const MAX_COLUMN_ID: u32 = (1 << 31) - 1;
/// Maximum number of columns of a segment: those of the table, the row number, the key order and
/// the key filter.
pub const MAX_SEGMENT_COLUMNS: usize = MAX_COLUMNS + 3;
/// Maximum size of an SQL text, in bytes.
pub const MAX_SQL_BYTES: usize = 16 << 20;
/// Maximum number of checks of a table.
pub const MAX_CHECKS: usize = 4096;
/// Maximum number of foreign keys of a table.
pub const MAX_FOREIGN_KEYS: usize = 256;
/// Maximum number of other tables with foreign keys to one.
pub const MAX_REFERENCES: usize = 4096;
/// Maximum number of secondary indexes of a table.
pub const MAX_INDEXES: usize = 64;
/// Maximum number of columns of a secondary index.
pub const MAX_INDEX_COLUMNS: usize = 16;
/// Exclusive upper bound of index ids, which become part of column numbers in segments.
pub const MAX_INDEX_ID: u32 = (1 << 26) - 2;
/// Maximum number of keys that a change feed compares at a time.
pub const MAX_CHANGED_KEYS: usize = 1 << 20;
/// Maximum number of levels of objects and arrays in a JSON value.
pub const MAX_JSON_DEPTH: usize = 10_000;

/// Whether a host may run several tasks at once. None does in WebAssembly, whose module leaves out what that takes.
pub const HAS_THREADS: bool = cfg!(not(target_family = "wasm"));
