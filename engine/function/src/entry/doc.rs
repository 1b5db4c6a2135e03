//! The reference text of an entry. Compiled into tests only, to keep it out of the download size.

/// The syntax of a function, its result, and an example that runs as a test.
#[derive(Clone, Copy)]
pub struct Doc {
    /// The calls, as in `position(a in s), locate(a, s)`.
    #[cfg(any(test, feature = "docs"))]
    pub usage: &'static str,
    /// One sentence.
    #[cfg(any(test, feature = "docs"))]
    pub sentence: &'static str,
    /// The text after `SELECT`.
    #[cfg(any(test, feature = "docs"))]
    pub example: &'static str,
    /// The first value of the example's first row.
    #[cfg(any(test, feature = "docs"))]
    pub result: &'static str,
}

impl Doc {
    /// Reference text, dropped at compile time unless requested.
    #[cfg(any(test, feature = "docs"))]
    pub const fn new(
        usage: &'static str,
        sentence: &'static str,
        example: &'static str,
        result: &'static str,
    ) -> Doc {
        Doc { usage, sentence, example, result }
    }

    /// Reference text, dropped at compile time unless requested.
    #[cfg(not(any(test, feature = "docs")))]
    pub const fn new(_: &str, _: &str, _: &str, _: &str) -> Doc {
        Doc {}
    }
}
