//! Finds the keys that two sorted files share: one of a load, and a segment of the table.
//!
//! Both files are walked once, block by block in parallel, unless one has far more keys than the
//! other in the overlapping range; then each key of the smaller file is searched for in the larger.
//! So a large load decodes existing keys instead of searching for each, which takes a hundred times
//! as long per key. Keys with a null never match.

use crate::layout::sorted_keys::SortedKeys;
use crate::load::key_walk::{Block, KeyWalk};
use nacre_types::{Result, Value, invariant};
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

/// Calls `found(old position, new position)` for every key without nulls that is in both, in order.
/// A key may occur several times in the old file, and once in the new one.
pub(crate) fn each_common(
    old: &SortedKeys<'_>,
    new: &SortedKeys<'_>,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let Some((olds, news)) = overlap(old, new)? else { return Ok(()) };
    debug_assert!(!olds.is_empty() && !news.is_empty(), "{olds:?} and {news:?} do not overlap");
    if is_few(new, news.len(), olds.len()) {
        for at in news {
            let key = new.at(at)?;
            if !key.iter().any(Value::is_null) {
                old.equal(&key)?.try_for_each(|place| found(place, at))?;
            }
        }
        return Ok(());
    }
    if is_few(old, olds.len(), news.len()) {
        for place in olds {
            let key = old.at(place)?;
            if !key.iter().any(Value::is_null) {
                new.equal(&key)?.try_for_each(|at| found(place, at))?;
            }
        }
        return Ok(());
    }
    let as_integers = old.is_integer() && new.is_integer();
    let mut old = KeyWalk::new(old, olds, as_integers);
    let mut new = KeyWalk::new(new, news, as_integers);
    while old.fill()? && new.fill()? {
        let (old_start, new_start) = (old.start, new.start);
        match (&old.block, &new.block) {
            (Block::Integers(a), Block::Integers(b)) => {
                (old.at, new.at) = side_by_side(
                    (a.len(), old.at),
                    (b.len(), new.at),
                    |i| a[i],
                    |j| b[j],
                    &mut |i, j| found(old_start + i, new_start + j),
                )?;
            }
            (Block::Encoded(a), Block::Encoded(b)) => {
                let (i, j) = ((a.rows.len(), old.at), (b.rows.len(), new.at));
                (old.at, new.at) = side_by_side(i, j, |i| a.key(i), |j| b.key(j), &mut |i, j| {
                    found(old_start + a.rows[i] as usize, new_start + b.rows[j] as usize)
                })?;
            }
            _ => {
                invariant!(false, "one file's keys are walked as integers, the other's are not");
                return Ok(());
            }
        }
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
