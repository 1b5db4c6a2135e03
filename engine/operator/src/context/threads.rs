//! Parallelism of a statement.

use nacre_types::limits;

/// The threads of a statement, and their morsel size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Number of concurrent threads; 1 for the calling thread only.
    pub count: usize,
    /// Approximate rows per morsel. A table with fewer rows does not use a second thread, except
    /// that 1, for tests, splits every table.
    pub morsel_rows: usize,
}

impl Threads {
    /// The calling thread only.
    pub const ONE: Threads = Threads::new(1);

    /// `count` threads, with morsels of the usual size.
    pub const fn new(count: usize) -> Threads {
        Threads { count, morsel_rows: 16 * limits::BLOCK_ROWS }
    }
}
