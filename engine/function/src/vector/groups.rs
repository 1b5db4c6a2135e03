//! The group of each row.

/// The group of each row.
#[derive(Clone, Copy)]
pub enum Groups<'a> {
    /// All rows belong to group 0.
    One,
    /// Indexed by row position.
    Each(&'a [u32]),
}

impl Groups<'_> {
    /// The group of a row.
    #[inline]
    pub fn of(self, row: usize) -> usize {
        match self {
            Groups::One => 0,
            Groups::Each(groups) => groups[row] as usize,
        }
    }
}
