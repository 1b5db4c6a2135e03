//! How a statement is spread over threads.

use nacre_types::limits;

/// Threads of a statement, and the size of what each takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Threads that work at once; 1 for the caller's alone.
    pub count: usize,
    /// Rows of a morsel, roughly. A table of fewer rows does not use a second thread, except that 1,
    /// for tests, spreads every table.
    pub morsel_rows: usize,
}

impl Threads {
    /// The caller's alone.
    pub const ONE: Threads = Threads::new(1);

    /// `count` threads, with morsels of the usual size.
    pub const fn new(count: usize) -> Threads {
        Threads { count, morsel_rows: 16 * limits::BLOCK_ROWS }
    }
}
