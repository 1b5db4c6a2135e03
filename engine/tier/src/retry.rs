//! Retries of calls of a blob store that is away: exponential backoff with jitter, in the host's time.

use nacre_host::{Answer, Clock, Entropy};
use nacre_types::{Error, ErrorKind, Result};

/// The first delay, in nanoseconds.
const FIRST_NS: u64 = 50_000_000;
/// The longest one.
const LONGEST_NS: u64 = 10_000_000_000;

/// The delay before the next attempt, after this number of failures: between half of the exponential one and
/// all of it.
pub(crate) fn backoff_ns(failures: u32, entropy: &dyn Entropy) -> u64 {
    let whole = FIRST_NS.saturating_mul(1 << failures.min(16)).min(LONGEST_NS);
    whole / 2 + entropy.next_u64() % (whole / 2)
}

/// Whether the same call may succeed later.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
}

/// How often an answer is asked for again that is not what was asked for.
const WRONG_ANSWERS: u32 = 3;

/// Calls until the blob store answers, or it has been away for this long.
///
/// # Errors
/// The last error: `unavailable` after that time, `corrupt` after some attempts, or any other one at once.
pub(crate) async fn retried<'a, T>(
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    patience_ns: u64,
    mut call: impl FnMut() -> Answer<'a, T>,
) -> Result<T> {
    let until_ns = clock.monotonic_ns().saturating_add(patience_ns);
    let (mut failures, mut wrong) = (0, 0);
    loop {
        match call().await {
            Err(error) if error.kind() == ErrorKind::Corrupt && wrong < WRONG_ANSWERS => wrong += 1,
            Err(error) if is_transient(&error) => {
                let next_ns = clock.monotonic_ns().saturating_add(backoff_ns(failures, entropy));
                if next_ns > until_ns {
                    return Err(error);
                }
                failures += 1;
                clock.sleep_until(next_ns).await;
            }
            answered => return answered,
        }
    }
}
