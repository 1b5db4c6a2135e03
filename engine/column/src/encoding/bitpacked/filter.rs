//! Filtering packed differences: ranges are moved by the reference instead of every value, and a
//! sub-block whose frame lies inside or outside of them is not unpacked at all.

use super::{BitPacked, Integer, LANES_32, LANES_64, NARROW, SUB_ROWS};
use crate::Bitmap;
use crate::kernel::predicate::Range;
use crate::kernel::spans::Spans;
use crate::pack::unpack;
use nacre_types::Result;

impl BitPacked<'_> {
    /// Appends a bit for every row of a range: whether its value is in one of the ranges.
    pub(crate) fn filter_as<T: Integer>(
        &self,
        ranges: &[Range],
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let end = start + len;
        let mut at = start;
        while at < end {
            let index = at / SUB_ROWS;
            let sub = self.sub::<T>(index)?;
            let (from, to) = (at % SUB_ROWS, sub.rows.min(end - index * SUB_ROWS));
            let origin = sub.reference.number();
            let greatest = u64::MAX.checked_shr(64 - sub.width).unwrap_or(0);
            let frame = (origin, origin.saturating_add(greatest as i128));
            if sub.width <= NARROW {
                let spans = Spans::<u32>::new(ranges, frame, origin);
                match spans.same_for_all() {
                    Some(answer) => out.extend_run(answer, to - from),
                    None => {
                        let mut put = Cut::new(from, to, LANES_32, out);
                        unpack::<u32, LANES_32>(
                            sub.words,
                            sub.width,
                            from / LANES_32,
                            to.div_ceil(LANES_32),
                            |group| {
                                put.group(spans.test(&group));
                            },
                        );
                    }
                }
            } else {
                let spans = Spans::<u64>::new(ranges, frame, origin);
                match spans.same_for_all() {
                    Some(answer) => out.extend_run(answer, to - from),
                    None => {
                        let mut put = Cut::new(from, to, LANES_64, out);
                        unpack::<u64, LANES_64>(
                            sub.words,
                            sub.width,
                            from / LANES_64,
                            to.div_ceil(LANES_64),
                            |group| {
                                put.group(spans.test(&group));
                            },
                        );
                    }
                }
            }
            at += to - from;
        }
        Ok(())
    }
}

/// Bits of whole groups, of which only rows `from..to` are asked for.
struct Cut<'a> {
    skip: usize,
    left: usize,
    lanes: usize,
    out: &'a mut Bitmap,
}

impl<'a> Cut<'a> {
    fn new(from: usize, to: usize, lanes: usize, out: &'a mut Bitmap) -> Cut<'a> {
        Cut { skip: from % lanes, left: to - from, lanes, out }
    }

    #[inline(always)]
    fn group(&mut self, bits: u64) {
        let count = (self.lanes - self.skip).min(self.left);
        self.out.extend_bits(bits >> self.skip, count);
        self.left -= count;
        self.skip = 0;
    }
}
