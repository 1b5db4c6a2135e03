//! Filters whole groups of lanes of which only some rows are wanted.

use crate::Bitmap;

/// Appends the bits of whole groups of lanes, of which only rows `from..to` are wanted.
pub(super) struct Groups<'a> {
    skip: usize,
    left: usize,
    lanes: usize,
    out: &'a mut Bitmap,
}

impl<'a> Groups<'a> {
    /// Starts at the group that contains row `from`.
    pub(super) fn new(from: usize, to: usize, lanes: usize, out: &'a mut Bitmap) -> Groups<'a> {
        debug_assert!(from < to && lanes <= 64, "rows {from}..{to} in groups of {lanes}");
        Groups { skip: from % lanes, left: to - from, lanes, out }
    }

    /// Appends the wanted bits of the next group.
    #[inline(always)]
    pub(super) fn push(&mut self, bits: u64) {
        debug_assert!(self.left > 0, "a group of lanes after the last wanted row");
        let count = (self.lanes - self.skip).min(self.left);
        self.out.extend_bits(bits >> self.skip, count);
        self.left -= count;
        self.skip = 0;
    }
}
