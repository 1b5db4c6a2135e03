//! Finds which of many key ranges contain a key: an interval tree stored in a flat array.
//!
//! Ranges are sorted by their lower end. The tree is implicit: the root of a subarray is its middle
//! element, and each root stores the highest upper end in its subarray. If *h* of *n* ranges
//! contain a key, a lookup takes O(log *n* + *h* log *n*) steps, in practice about log *n* + 2 *h*.
//! A range takes 32 bytes.
//!
//! Ends are encoded values ([`nacre_types::key`]), of which eight bytes are stored, starting at the
//! first byte in which any two ends differ; the common prefix is stored once. Truncation preserves
//! order, so no range is missed, but a range may be reported that only the truncated bytes would
//! exclude. The tree does not know about segments.

/// Keys from `low` to `high`, both inclusive.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u64,
    high: u64,
    /// Greatest `high` in the subarray with this root.
    reach: u64,
    item: u32,
}

/// A set of ranges with numbers.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    /// The common prefix of all ends.
    common: Vec<u8>,
    ranges: Vec<Range>,
}

/// A range: its least and greatest key as bytes, and its number.
pub(crate) type Bounds = (Vec<u8>, Vec<u8>, u32);

impl Intervals {
    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.common.len() + self.ranges.len() * size_of::<Range>()
    }

    /// Builds a tree of these ranges.
    pub fn new(bounds: &[Bounds]) -> Intervals {
        let mut common: Option<&[u8]> = None;
        for end in bounds.iter().flat_map(|(low, high, _)| [low, high]) {
            let shared =
                common.map_or(end.len(), |c| c.iter().zip(end).take_while(|(a, b)| a == b).count());
            common = Some(&end[..shared]);
        }
        let common = common.unwrap_or_default().to_vec();
        debug_assert!(
            bounds
                .iter()
                .all(|(low, high, _)| low.starts_with(&common) && high.starts_with(&common)),
            "an end lacks the common prefix"
        );
        let cut = |end: &[u8]| eight(&end[common.len()..]);
        let range = |(low, high, item): &Bounds| Range {
            low: cut(low),
            high: cut(high),
            reach: 0,
            item: *item,
        };
        let mut ranges: Vec<Range> = bounds.iter().map(range).collect();
        ranges.sort_unstable_by_key(|range| (range.low, range.item));
        set_reach(&mut ranges);
        debug_assert!(
            ranges.is_sorted_by_key(|range| range.low)
                && ranges.iter().all(|range| range.high <= range.reach),
            "an interval tree is out of order, or has a range beyond its reach"
        );
        Intervals { common, ranges }
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Visits the numbers of the ranges that may contain a key between two inclusive bounds, in no
    /// particular order. A bound is the whole encoding of a value; `None` is unbounded.
    pub fn overlap(&self, low: Option<&[u8]>, high: Option<&[u8]>, visit: &mut dyn FnMut(u32)) {
        let low = low.map_or(Some(0), |low| match low.strip_prefix(&self.common[..]) {
            Some(rest) => Some(eight(rest)),
            None => (low < &self.common[..]).then_some(0),
        });
        let high = high.map_or(Some(u64::MAX), |high| match high.strip_prefix(&self.common[..]) {
            Some(rest) => Some(eight(rest)),
            None => (high > &self.common[..]).then_some(u64::MAX),
        });
        if let (Some(low), Some(high)) = (low, high) {
            overlap(&self.ranges, low, high, visit);
        }
    }

    /// Visits the numbers of the ranges that may contain a key.
    pub fn stab(&self, key: &[u8], visit: &mut dyn FnMut(u32)) {
        self.overlap(Some(key), Some(key), visit);
    }

    /// The average number of ranges that contain a range's lower end: 1 if none overlap, all if all
    /// do.
    pub fn depth(&self) -> f64 {
        let mut highs: Vec<u64> = self.ranges.iter().map(|range| range.high).collect();
        highs.sort_unstable();
        // The ranges that begin at or before a key, minus those that end before it.
        let begun = |key: u64| self.ranges.partition_point(|range| range.low <= key);
        let ended = |key: u64| highs.partition_point(|high| *high < key);
        let sum: usize =
            self.ranges.iter().map(|range| begun(range.low).saturating_sub(ended(range.low))).sum();
        let depth = sum as f64 / self.ranges.len().max(1) as f64;
        debug_assert!(
            depth >= 1.0 || self.ranges.is_empty() || self.ranges.iter().any(|r| r.high < r.low),
            "a range is in {depth} ranges, and so not in itself"
        );
        depth
    }
}

/// The first eight bytes as an integer with the same order.
fn eight(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

fn set_reach(ranges: &mut [Range]) -> u64 {
    let middle = ranges.len() / 2;
    let (left, rest) = ranges.split_at_mut(middle);
    let Some((root, right)) = rest.split_first_mut() else { return 0 };
    root.reach = root.high.max(set_reach(left)).max(set_reach(right));
    root.reach
}

fn overlap(mut ranges: &[Range], low: u64, high: u64, visit: &mut dyn FnMut(u32)) {
    loop {
        let middle = ranges.len() / 2;
        let Some(root) = ranges.get(middle).filter(|root| root.reach >= low) else { return };
        overlap(&ranges[..middle], low, high, visit);
        if root.low > high {
            return;
        }
        if root.high >= low {
            visit(root.item);
        }
        ranges = &ranges[middle + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(intervals: &Intervals, key: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        intervals.stab(key, &mut |item| found.push(item));
        found.sort_unstable();
        found
    }

    #[test]
    fn random_ranges_are_found_as_by_looking_at_all() {
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..200 {
            let span = [10, 300, 1 << 30][round % 3];
            let bounds: Vec<Bounds> = (0..next(70) as u32)
                .map(|item| {
                    let (a, b) = (next(span), next(span));
                    let bytes = |n: u64| [b"key:".as_slice(), &n.to_be_bytes()].concat();
                    (bytes(a.min(b)), bytes(a.max(b)), item)
                })
                .collect();
            let intervals = Intervals::new(&bounds);
            for _ in 0..200 {
                let key = [b"key:".as_slice(), &next(span + 2).to_be_bytes()].concat();
                let inside = bounds.iter().filter(|(low, high, _)| *low <= key && key <= *high);
                assert_eq!(
                    found(&intervals, &key),
                    inside.map(|(_, _, item)| *item).collect::<Vec<_>>()
                );
                let (a, b) = (next(span + 2), next(span + 2));
                let end = |n: u64| {
                    [[b"key:", b"kay:", b"kez:"][round % 3].as_slice(), &n.to_be_bytes()].concat()
                };
                let (from, to) = (end(a.min(b)), end(a.max(b)));
                for (from, to) in
                    [(Some(&from), Some(&to)), (Some(&from), None), (None, Some(&to)), (None, None)]
                {
                    let is_met = |(low, high, _): &&Bounds| {
                        from.is_none_or(|from| high >= from) && to.is_none_or(|to| low <= to)
                    };
                    let expected: Vec<u32> =
                        bounds.iter().filter(is_met).map(|(_, _, item)| *item).collect();
                    let mut met = Vec::new();
                    intervals.overlap(from.map(|b| &b[..]), to.map(|b| &b[..]), &mut |item| {
                        met.push(item)
                    });
                    met.sort_unstable();
                    assert_eq!(met, expected);
                }
            }
            let depth: usize = bounds.iter().map(|(low, _, _)| found(&intervals, low).len()).sum();
            assert!((intervals.depth() - depth as f64 / bounds.len().max(1) as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_cut_off_is_never_missed() {
        let bounds = [
            (b"abcdefghijklm1".to_vec(), b"abcdefghijklm4".to_vec(), 0),
            (b"a".to_vec(), b"ab".to_vec(), 1),
        ];
        let intervals = Intervals::new(&bounds);
        assert_eq!(found(&intervals, b"abcdefghijklm3"), [0]);
        // These differ only after the stored eight bytes.
        assert_eq!(found(&intervals, b"abcdefghijklm5"), [0]);
        assert_eq!(found(&intervals, b"aa"), [1]);
        assert_eq!(found(&intervals, b"b"), []);
        assert_eq!(found(&intervals, b""), []);
        assert_eq!(found(&Intervals::default(), b"a"), []);
    }

    #[test]
    fn few_looks_where_ranges_do_not_overlap() {
        let bytes = |n: u64| n.to_be_bytes().to_vec();
        let bounds: Vec<Bounds> =
            (0..1_000).map(|n| (bytes(n * 10), bytes(n * 10 + 8), n as u32)).collect();
        let intervals = Intervals::new(&bounds);
        assert_eq!(intervals.depth(), 1.0);
        assert_eq!(found(&intervals, &bytes(5_005)), [500]);
        assert_eq!(found(&intervals, &bytes(5_009)), []);
    }

    /// A damaged footer may contain such a range.
    #[test]
    fn a_range_that_ends_before_it_begins_holds_nothing() {
        let bounds: Vec<Bounds> =
            vec![(vec![5], vec![3], 0), (vec![9], vec![4], 1), (vec![1], vec![2], 2)];
        let intervals = Intervals::new(&bounds);
        assert!(intervals.depth() < 1.0);
        assert_eq!(found(&intervals, &[5]), []);
        assert_eq!(found(&intervals, &[1]), [2]);
    }
}
