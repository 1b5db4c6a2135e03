//! The reference text of an entry. It is compiled into tests only: in the product, it would be in
//! every download.

/// How a function is written, what it answers, and an example that runs as a test.
pub struct Doc {
    /// The calls, as `position(a in s), locate(a, s)`.
    #[cfg(any(test, feature = "docs"))]
    pub usage: &'static str,
    /// One sentence.
    #[cfg(any(test, feature = "docs"))]
    pub sentence: &'static str,
    /// What follows `SELECT`.
    #[cfg(any(test, feature = "docs"))]
    pub example: &'static str,
    /// The first value of the example's first row.
    #[cfg(any(test, feature = "docs"))]
    pub result: &'static str,
}

impl Doc {
    /// Reference text, dropped at compile time unless it is asked for.
    #[cfg(any(test, feature = "docs"))]
    pub const fn new(
        usage: &'static str,
        sentence: &'static str,
        example: &'static str,
        result: &'static str,
    ) -> Doc {
        Doc { usage, sentence, example, result }
    }

    /// Reference text, dropped at compile time unless it is asked for.
    #[cfg(not(any(test, feature = "docs")))]
    pub const fn new(_: &str, _: &str, _: &str, _: &str) -> Doc {
        Doc {}
    }
}
