//! Finds the keys that two sorted files share: one of a load, and a segment of the table.
//!
//! Both files are walked once, block by block in parallel, unless one has far more keys than the
//! other in the overlapping range; then each key of the smaller file is searched for in the larger.
//! So a large load decodes existing keys instead of searching for each, which takes a hundred times
//! as long per key. Keys with a null never match.

use crate::layout::sorted_keys::SortedKeys;
use crate::load::key_walk::{Block, KeyWalk};
use nacre_types::{Result, Value, invariant, limits};
use std::ops::Range;

/// Integers that can be walked in the time of one search.
const INTEGERS_A_SEARCH: usize = 128;
/// Other keys that can be walked in the time of one search.
const KEYS_A_SEARCH: usize = 24;
/// In a walk, keys of a list are skipped by searches if there are this many for one of the other.
const SPARSE: usize = 16;

/// Whether looking `few` keys up one by one among `many` others is faster than walking both.
pub(crate) fn is_few(keys: &SortedKeys<'_>, few: usize, many: usize) -> bool {
    few * if keys.is_integer() { INTEGERS_A_SEARCH } else { KEYS_A_SEARCH } < many
}

/// Where the key ranges of two files overlap, as positions in each; `None` if they do not.
pub(crate) fn overlap(
    old: &SortedKeys<'_>,
    new: &SortedKeys<'_>,
) -> Result<Option<(Range<usize>, Range<usize>)>> {
    if old.len() == 0 || new.len() == 0 {
        return Ok(None);
    }
    let (first, last) = (new.at(0)?, new.at(new.len() - 1)?);
    let olds = old.between(&first, &last)?;
    if olds.is_empty() {
        return Ok(None);
    }
    let news = new.between(&old.at(olds.start)?, &old.at(olds.end - 1)?)?;
    debug_assert!(news.end <= new.len(), "keys up to {} of {}", news.end, new.len());
    debug_assert!(olds.end <= old.len(), "keys up to {} of {}", olds.end, old.len());
    Ok((!news.is_empty()).then_some((olds, news)))
}

/// A search for the keys without nulls that two files share, in steps. A key may occur several times in the
/// old file, and once in the new one.
pub(crate) enum CommonKeys {
    /// Few keys of the new file are left to look up in the old one.
    FewNew(Range<usize>),
    /// Few keys of the old file are left to look up in the new one.
    FewOld(Range<usize>),
    /// Both are walked, the old one and the new one.
    Walk(Box<(KeyWalk, KeyWalk)>),
}

impl CommonKeys {
    /// Begins to search two files.
    pub fn new(old: &SortedKeys<'_>, new: &SortedKeys<'_>) -> Result<CommonKeys> {
        let Some((olds, news)) = overlap(old, new)? else { return Ok(CommonKeys::FewNew(0..0)) };
        debug_assert!(!olds.is_empty() && !news.is_empty(), "{olds:?} and {news:?} do not overlap");
        if is_few(new, news.len(), olds.len()) {
            return Ok(CommonKeys::FewNew(news));
        }
        if is_few(old, olds.len(), news.len()) {
            return Ok(CommonKeys::FewOld(olds));
        }
        let as_integers = old.is_integer() && new.is_integer();
        let of_old = KeyWalk::new(old, olds, as_integers);
        let of_new = KeyWalk::new(new, news, as_integers);
        Ok(CommonKeys::Walk(Box::new((of_old, of_new))))
    }

    /// Looks at about `some` keys, and calls `found(old position, new position)` for each that is in both,
    /// in order. Returns whether there are more. Can be called again, with the same files, after a read
    /// of absent bytes or an error of `found`, and may then find keys again.
    pub fn step(
        &mut self,
        old: &SortedKeys<'_>,
        new: &SortedKeys<'_>,
        some: usize,
        found: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<bool> {
        debug_assert!(some > 0, "a step looks at no keys");
        match self {
            CommonKeys::FewNew(left) => {
                look_up(left, some, new, old, &mut |at, place| found(place, at))
            }
            CommonKeys::FewOld(left) => look_up(left, some, old, new, found),
            CommonKeys::Walk(walks) => {
                let (of_old, of_new) = &mut **walks;
                for _ in 0..some.div_ceil(limits::BLOCK_ROWS) {
                    if !(of_old.fill(old)? && of_new.fill(new)?) {
                        return Ok(false);
                    }
                    walk_blocks(of_old, of_new, found)?;
                }
                Ok(true)
            }
        }
    }
}

/// Looks up some of the keys that are left of a file in another, and calls `found` with the positions in
/// both. Returns whether there are more.
fn look_up(
    left: &mut Range<usize>,
    some: usize,
    few: &SortedKeys<'_>,
    many: &SortedKeys<'_>,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<bool> {
    debug_assert!(left.end <= few.len(), "{left:?} of {} keys are looked up", few.len());
    let stop = left.start.saturating_add(some.div_ceil(KEYS_A_SEARCH)).min(left.end);
    while left.start < stop {
        let (at, key) = (left.start, few.at(left.start)?);
        if !key.iter().any(Value::is_null) {
            many.equal(&key)?.try_for_each(|place| found(at, place))?;
        }
        left.start += 1;
    }
    Ok(left.start < left.end)
}

/// Walks the current blocks of two files to the end of one.
fn walk_blocks(
    of_old: &mut KeyWalk,
    of_new: &mut KeyWalk,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let (old_start, new_start) = (of_old.start, of_new.start);
    debug_assert!(!of_old.is_at_end() && !of_new.is_at_end(), "a block without keys is walked");
    match (&of_old.block, &of_new.block) {
        (Block::Integers(a), Block::Integers(b)) => {
            (of_old.at, of_new.at) = side_by_side(
                (a.len(), of_old.at),
                (b.len(), of_new.at),
                |i| a[i],
                |j| b[j],
                &mut |i, j| found(old_start + i, new_start + j),
            )?;
        }
        (Block::Encoded(a), Block::Encoded(b)) => {
            let (i, j) = ((a.rows.len(), of_old.at), (b.rows.len(), of_new.at));
            let ends = side_by_side(i, j, |i| a.key(i), |j| b.key(j), &mut |i, j| {
                found(old_start + a.rows[i] as usize, new_start + b.rows[j] as usize)
            })?;
            (of_old.at, of_new.at) = ends;
        }
        _ => invariant!(false, "one file's keys are walked as integers, the other's are not"),
    }
    Ok(())
}

/// Walks two sorted lists, given as lengths and starting positions, to the end of one. Returns the
/// positions reached.
#[inline]
fn side_by_side<T: Ord>(
    (a_len, mut i): (usize, usize),
    (b_len, mut j): (usize, usize),
    a: impl Fn(usize) -> T,
    b: impl Fn(usize) -> T,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<(usize, usize)> {
    debug_assert!(i <= a_len && j <= b_len, "a walk from {i} of {a_len} and {j} of {b_len}");
    if i == a_len || j == b_len {
        return Ok((i, j));
    }
    // How many keys of each list are not beyond the end of the other.
    let (a_last, b_last) = (a(a_len - 1), b(b_len - 1));
    let a_many = skip(i, a_len, |at| a(at) <= b_last) - i;
    let b_many = skip(j, b_len, |at| b(at) <= a_last) - j;
    let (skips_a, skips_b) = (b_many * SPARSE < a_many, a_many * SPARSE < b_many);
    loop {
        if skips_a {
            let key = b(j);
            i = skip(i, a_len, |at| a(at) < key);
        } else if skips_b {
            let key = a(i);
            j = skip(j, b_len, |at| b(at) < key);
        }
        if i == a_len || j == b_len {
            break;
        }
        let order = a(i).cmp(&b(j));
        if order.is_eq() {
            found(i, j)?;
        }
        // The branch would be unpredictable, so advance without one.
        i += usize::from(order.is_le());
        j += usize::from(order.is_gt());
        if i == a_len || j == b_len {
            break;
        }
    }
    debug_assert!(
        (i == a_len && j <= b_len) || (i < a_len && j == b_len),
        "a walk ends at {i} of {a_len} and {j} of {b_len}"
    );
    Ok((i, j))
}

/// The first position from `start` on that is not passed, or `end`. Those that are passed come
/// first. Looks at twice the logarithm of their number.
#[inline]
fn skip(start: usize, end: usize, is_passed: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (start, 1);
    while low + step <= end && is_passed(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = (low + step - 1).min(end);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_passed(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    debug_assert!(start <= low && low <= end, "position {low} of {start} to {end}");
    low
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nacre_testing::Random;

    /// Lists of all densities, in pieces as blocks come, against looking at every pair.
    #[test]
    fn common_keys_are_found_whatever_the_lengths() {
        let mut random = Random::new(1);
        for round in 0..400 {
            let span = 1 + random.below(2_000) as i64;
            let mut list = |per_mille: u64| -> Vec<i64> {
                (0..span).filter(|_| random.below(1_000) < per_mille).collect()
            };
            let densities = [2, 20, 300, 1_000];
            let mut a = list(densities[round % 4]);
            let b = list(densities[round / 4 % 4]);
            // An old file may have a key several times.
            a = a.iter().flat_map(|key| vec![*key; 1 + (key % 5 == 0) as usize]).collect();
            let mut expected = Vec::new();
            for (i, key) in a.iter().enumerate() {
                expected.extend(b.binary_search(key).ok().map(|j| (i, j)));
            }
            let mut found = Vec::new();
            let (mut i, mut j) = (0, 0);
            while i < a.len() && j < b.len() {
                let end = |at: usize, len: usize| len.min(at / 64 * 64 + 64);
                let (a_end, b_end) = (end(i, a.len()), end(j, b.len()));
                let mut meet = |i, j| {
                    found.push((i, j));
                    Ok(())
                };
                (i, j) =
                    side_by_side((a_end, i), (b_end, j), |i| a[i], |j| b[j], &mut meet).unwrap();
            }
            assert_eq!(found, expected, "round {round}");
        }
    }
}
