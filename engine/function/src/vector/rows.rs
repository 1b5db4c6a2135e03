//! The rows of vectors to compute.

/// The rows to compute, of vectors of equal length.
#[derive(Clone, Copy)]
pub struct ActiveRows<'a> {
    /// Length of the vectors.
    pub len: usize,
    /// Ascending positions; `None` selects all rows.
    pub selection: Option<&'a [u32]>,
}

impl<'a> ActiveRows<'a> {
    /// All of `len` rows.
    #[inline]
    pub fn all(len: usize) -> ActiveRows<'static> {
        ActiveRows { len, selection: None }
    }

    /// Vectors of the same length, restricted to these rows.
    #[inline]
    pub fn narrowed(self, selection: &'a [u32]) -> ActiveRows<'a> {
        debug_assert!(
            selection.last().is_none_or(|row| (*row as usize) < self.len),
            "a selection stays inside its {} rows",
            self.len
        );
        ActiveRows { len: self.len, selection: Some(selection) }
    }

    /// Number of rows to compute.
    #[inline]
    pub fn count(self) -> usize {
        self.selection.map_or(self.len, <[u32]>::len)
    }

    /// Whether there is nothing to compute.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.count() == 0
    }

    /// The positions, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let count = self.count();
        let selection = self.selection;
        (0..count).map(move |i| selection.map_or(i, |s| s[i] as usize))
    }

    /// The positions as a selection.
    pub fn to_selection(self) -> Vec<u32> {
        self.selection.map_or_else(|| (0..self.len as u32).collect(), <[u32]>::to_vec)
    }

    /// Whether computing every row is cheaper than picking the selected ones. Only for loops that
    /// cannot fail: values at unselected rows are unspecified.
    #[inline]
    pub fn is_dense(self) -> bool {
        self.selection.is_none_or(|s| s.len() * 4 >= self.len)
    }
}
