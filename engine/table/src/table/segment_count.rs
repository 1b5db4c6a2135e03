//! A count of segments and of their blocks.

/// How many segments there are, and blocks of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCount {
    /// Segments.
    pub segments: usize,
    /// Blocks of rows.
    pub blocks: usize,
}

impl std::ops::AddAssign for SegmentCount {
    fn add_assign(&mut self, other: SegmentCount) {
        self.segments += other.segments;
        self.blocks += other.blocks;
        debug_assert!(
            self.segments > 0 || self.blocks == 0,
            "{} blocks of no segments",
            self.blocks
        );
    }
}
