//! What a part of the engine holds in memory, and what of a table is on the local disk.

/// Memory of one part of a database.
///
/// ```
/// let part = nacre_types::MemoryPart {
///     part: "block cache",
///     bytes: 4_096,
///     limit_bytes: Some(1 << 20),
///     hits: Some(90),
///     misses: Some(10),
/// };
/// assert!(part.limit_bytes.is_some_and(|limit| part.bytes <= limit));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// Name, as in `information_schema.memory`.
    pub part: &'static str,
    /// Bytes held now.
    pub bytes: u64,
    /// Most bytes that it may hold; `None` if it has no limit of its own.
    pub limit_bytes: Option<u64>,
    /// How often something was found in it since the database was opened; `None` of what is no cache
    /// that counts. Concurrent hits may count as one.
    pub hits: Option<u64>,
    /// How often something was not, and was read from a file.
    pub misses: Option<u64>,
}

/// What of a column or an index of a table is on the local disk.
///
/// ```
/// let part = nacre_types::CachePart {
///     table: "orders".into(),
///     column: Some("price".into()),
///     index: None,
///     bytes: 1 << 20,
///     local_bytes: 32 << 10,
///     memory_bytes: 4 << 10,
/// };
/// assert!(part.local_bytes <= part.bytes);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePart {
    /// The table.
    pub table: String,
    /// The column; `None` for an index, and for footers and what belongs to no column that is known.
    pub column: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// Bytes in all, in files.
    pub bytes: u64,
    /// Those on the local disk.
    pub local_bytes: u64,
    /// Those whose blocks are in memory.
    pub memory_bytes: u64,
}
