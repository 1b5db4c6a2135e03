//! What a part of the engine holds in memory.

/// Memory of one part of a database.
///
/// ```
/// let part = nacre_types::MemoryPart {
///     part: "block cache",
///     bytes: 4_096,
///     limit_bytes: Some(1 << 20),
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
}
