//! What `{:?}` needs to know of characters, without the standard library's tables of Unicode. In the
//! module, these functions take the place of its own (`tools/divide/cut.txt`).

use std::hint::black_box;

/// Whether a character is shown as it is, and not by its number.
fn is_shown(char: char) -> bool {
    !matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Whether a character is shown by its number, because it would change the one before it.
fn joins_previous(_: char) -> bool {
    false
}

/// Keeps the functions in a module in which nothing calls them before it is cut.
pub(crate) fn keep() {
    black_box(is_shown as fn(char) -> bool);
    black_box(joins_previous as fn(char) -> bool);
}
