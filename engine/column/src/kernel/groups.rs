//! Kernels over the groups of rows. A table has the group of each value from its low end on, and a number
//! that stands for none.

/// The group of each value in `groups`. Returns whether all have one; else `groups` is not to be used.
///
/// ```
/// # use nacre_column::kernel::groups_of;
/// let mut groups = Vec::new();
/// assert!(groups_of(&[11, 10, 11], 10, &[0, 1], u32::MAX, &mut groups));
/// assert_eq!(groups, [1, 0, 1]);
/// assert!(!groups_of(&[9], 10, &[0, 1], u32::MAX, &mut groups));
/// ```
pub fn groups_of(
    values: &[i64],
    low: i64,
    table: &[u32],
    none: u32,
    groups: &mut Vec<u32>,
) -> bool {
    groups.clear();
    let mut has_none = false;
    groups.extend(values.iter().map(|value| {
        // In 64 bits: the distance may not fit in a `usize`.
        let distance = value.wrapping_sub(low) as u64;
        let group = match distance < table.len() as u64 {
            true => table[distance as usize],
            false => none,
        };
        has_none |= group == none;
        group
    }));
    debug_assert_eq!(has_none, groups.contains(&none), "rows of no group");
    !has_none
}

/// Counts the rows of each group.
///
/// ```
/// # use nacre_column::kernel::count_by_group;
/// let mut counts = [10, 20];
/// count_by_group(&[0, 1, 1], &mut counts);
/// assert_eq!(counts, [11, 22]);
/// ```
pub fn count_by_group(groups: &[u32], counts: &mut [i64]) {
    for group in groups {
        counts[*group as usize] += 1;
    }
}

/// Adds numbers to a sum, in their order. Returns whether it did not become infinite by finite numbers.
///
/// ```
/// # use nacre_column::kernel::sum_floats;
/// let mut sum = 0.5;
/// assert!(sum_floats(&[1.0, 2.0], &mut sum));
/// assert_eq!(sum, 3.5);
/// assert!(!sum_floats(&[f64::MAX, f64::MAX], &mut sum));
/// ```
pub fn sum_floats(values: &[f64], sum: &mut f64) -> bool {
    let mut overflows = false;
    for value in values {
        let before = *sum;
        *sum = before + value;
        overflows |= sum.is_infinite() & before.is_finite() & value.is_finite();
    }
    !overflows
}

/// Adds the value of each row to the sum of its group, in the order of the rows, and counts it. Returns whether
/// no sum became infinite by finite numbers.
///
/// ```
/// # use nacre_column::kernel::sum_by_group;
/// let (mut sums, mut counts) = ([0.5, 0.0], [1, 0]);
/// assert!(sum_by_group(&[0, 1, 0], &[1.0, 2.0, 3.0], &mut sums, &mut counts));
/// assert_eq!((sums, counts), ([4.5, 2.0], [3, 1]));
/// assert!(!sum_by_group(&[1, 1], &[f64::MAX, f64::MAX], &mut sums, &mut counts));
/// ```
pub fn sum_by_group(groups: &[u32], values: &[f64], sums: &mut [f64], counts: &mut [u64]) -> bool {
    debug_assert_eq!(groups.len(), values.len(), "groups of other rows");
    debug_assert_eq!(sums.len(), counts.len(), "sums and counts of as many groups");
    let mut overflows = false;
    for (group, value) in groups.iter().zip(values) {
        let group = *group as usize;
        let before = sums[group];
        let sum = before + value;
        overflows |= sum.is_infinite() & before.is_finite() & value.is_finite();
        sums[group] = sum;
        counts[group] += 1;
    }
    !overflows
}
