//! Names of keywords by the parser's list of them.
//!
//! The parser's `Display` of keywords has a branch for each of 1,100, which are 65 KB of code, and its
//! `Debug` two tables of their own. In the WebAssembly module, [`write_keyword`] takes its place (`tools/divide/cut.txt`).

use sqlparser::keywords::{ALL_KEYWORDS, Keyword};
use std::fmt;
use std::hint::black_box;

/// Writes the name of a keyword, as its `Display` does, and its `Debug` but for END-EXEC.
fn write_keyword(keyword: &Keyword, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // `NoKeyword` is the first variant, and not in the list.
    let name = (*keyword as usize).checked_sub(1).and_then(|at| ALL_KEYWORDS.get(at));
    f.write_str(name.unwrap_or(&"NoKeyword"))
}

/// Keeps the function in a module in which nothing calls it before it is cut, and those of letters.
pub(super) fn keep() {
    nacre_types::letters::keep();
    black_box(write_keyword as fn(&Keyword, &mut fmt::Formatter<'_>) -> fmt::Result);
}

#[cfg(test)]
mod tests {
    use super::write_keyword;
    use sqlparser::keywords::{ALL_KEYWORDS_INDEX, Keyword};
    use std::fmt;

    struct Named<'k>(&'k Keyword);

    impl fmt::Display for Named<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_keyword(self.0, f)
        }
    }

    #[test]
    fn names_are_those_of_display() {
        for keyword in [Keyword::NoKeyword].iter().chain(ALL_KEYWORDS_INDEX) {
            assert_eq!(Named(keyword).to_string(), keyword.to_string());
            // `Debug` writes `END_EXEC` for END-EXEC, which is the only name that is no identifier.
            assert_eq!(Named(keyword).to_string().replace('-', "_"), format!("{keyword:?}"));
        }
    }
}
