//! [`invariant!`](crate::invariant!): an assertion that holds in every build.
//!
//! A broken invariant is a bug in this process, not damage to stored bytes: it crashes before it can
//! be stored or returned to a caller. Damage is an [`Error`](crate::Error) of kind `corrupt`. On a
//! path that runs once per row, use `debug_assert!`, which tests, the simulator and the fuzzers have
//! switched on.

use std::fmt;

/// Crashes with a sentence when a condition that only a bug can break is false.
///
/// ```
/// let (rows, deleted) = (10, 3);
/// nacre_types::invariant!(deleted <= rows, "{deleted} deleted rows in a segment of {rows}");
/// ```
///
/// # Panics
/// When the condition is false.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $sentence:literal $($values:tt)*) => {
        if !$condition {
            #[cfg(not(target_family = "wasm"))]
            $crate::invariant::broken(format_args!($sentence $($values)*));
            // To print values takes as much code as the sentences. They are only type-checked here.
            #[cfg(target_family = "wasm")]
            {
                let _ = || {
                    let _ = format_args!($sentence $($values)*);
                };
                $crate::invariant::broken(format_args!("{}", $sentence));
            }
        }
    };
}

/// The crash of [`invariant!`](crate::invariant!), out of line so that the check stays one branch.
///
/// # Panics
/// Always.
#[cold]
#[inline(never)]
#[track_caller]
#[allow(clippy::panic, reason = "the one place where a broken invariant ends the process")]
pub fn broken(sentence: fmt::Arguments<'_>) -> ! {
    panic!("broken invariant: {sentence}")
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "broken invariant: 3 deleted rows in a segment of 2")]
    fn a_broken_invariant_crashes_with_its_sentence() {
        let (rows, deleted) = (2, 3);
        crate::invariant!(deleted <= rows, "{deleted} deleted rows in a segment of {rows}");
    }
}
