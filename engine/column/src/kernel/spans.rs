//! Tests many numbers of one width against the ranges of a predicate, 64 at a time, into bits.
//!
//! A range is a low end and a span: `value - low <= span`, unsigned and wrapping, is one
//! subtraction and one comparison for both signed and unsigned numbers.

use super::predicate::Range;
use crate::Bitmap;
use crate::pack::test_bits;

/// An unsigned integer of some width.
pub(crate) trait Number: Copy + Ord {
    /// The low bits of a number.
    fn cut(value: i128) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Number for $number {
            #[inline(always)]
            fn cut(value: i128) -> Self {
                value as $number
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}
number!(u32, u64, u128);

/// Maximum number of spans tested one by one; more are binary-searched.
const FEW: usize = 4;

/// Ranges prepared for testing.
pub(crate) struct Spans<U> {
    spans: Vec<(U, U)>,
    /// Whether numbers outside all spans pass instead of those inside.
    invert: bool,
}

impl<U: Number> Spans<U> {
    /// Prepares ranges for numbers in `min..=max` stored relative to `origin`.
    pub(crate) fn new(ranges: &[Range], (min, max): Range, origin: i128) -> Spans<U> {
        debug_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "ranges overlap");
        debug_assert!(min <= max, "numbers from {min} to {max}");
        debug_assert!(
            size_of::<U>() == size_of::<u128>() || (max - min) as u128 >> (8 * size_of::<U>()) == 0,
            "numbers from {min} to {max} in {} bytes",
            size_of::<U>()
        );
        let clipped = |&(low, high): &Range| {
            Some((low.max(min), high.min(max))).filter(|(low, high)| low <= high)
        };
        let mut inside: Vec<Range> = ranges.iter().filter_map(clipped).collect();
        // If both ends pass, there are fewer gaps than ranges.
        let invert = matches!((inside.first(), inside.last()), (Some(a), Some(b)) if a.0 == min && b.1 == max);
        if invert {
            // Adjacent ranges have no gap.
            let gap = |pair: &[Range]| {
                Some((pair[0].1 + 1, pair[1].0 - 1)).filter(|(low, high)| low <= high)
            };
            inside = inside.windows(2).filter_map(gap).collect();
        }
        let span =
            |(low, high): Range| (U::cut(low.wrapping_sub(origin)), U::cut(high.wrapping_sub(low)));
        let mut spans: Vec<(U, U)> = inside.into_iter().map(span).collect();
        if spans.len() > FEW {
            spans.sort_unstable();
        }
        Spans { spans, invert }
    }

    /// The result if it is the same for every number.
    pub(crate) fn same_for_all(&self) -> Option<bool> {
        self.spans.is_empty().then_some(self.invert)
    }

    /// Which of up to 64 numbers pass.
    #[inline(always)]
    pub(crate) fn test<const N: usize>(&self, values: &[U; N]) -> u64 {
        const { assert!(N > 0 && N <= 64, "bits of a group") };
        let bits = match &self.spans[..] {
            [] => 0,
            &[(low, span)] => test_bits(values, |v: U| v.minus(low) <= span),
            few if few.len() <= FEW => few.iter().fold(0, |bits, &(low, span)| {
                bits | test_bits(values, |v: U| v.minus(low) <= span)
            }),
            many => test_bits(values, |v: U| {
                // A number before the first span may lie in the last one, which may wrap around.
                let at = many.partition_point(|span| span.0 <= v);
                many[..at].last().or(many.last()).is_some_and(|&(low, span)| v.minus(low) <= span)
            }),
        };
        if self.invert { !bits & (u64::MAX >> (64 - N)) } else { bits }
    }

    /// Appends a bit for every value.
    #[inline(always)]
    pub(crate) fn filter<T: Copy>(&self, values: &[T], number: impl Fn(T) -> U, out: &mut Bitmap) {
        if let Some(answer) = self.same_for_all() {
            out.extend_run(answer, values.len());
            return;
        }
        let before = out.len();
        let (groups, rest) = values.as_chunks::<64>();
        let mut numbers = [U::cut(0); 64];
        for group in groups {
            numbers.iter_mut().zip(group).for_each(|(to, from)| *to = number(*from));
            out.extend_bits(self.test(&numbers), 64);
        }
        if !rest.is_empty() {
            numbers.iter_mut().zip(rest).for_each(|(to, from)| *to = number(*from));
            out.extend_bits(self.test(&numbers), rest.len());
        }
        debug_assert_eq!(out.len(), before + values.len(), "bits of filtered numbers");
    }
}
