//! Counts looks at partitions and segments, so that tests can state what an operation costs without
//! measuring time. Nothing is counted outside tests.

#[cfg(test)]
std::thread_local! {
    static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a look at one partition or segment.
#[inline]
pub(crate) fn add() {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
}

/// The looks of this thread since the last call.
#[cfg(test)]
pub(crate) fn take() -> usize {
    VISITS.take()
}
