//! JSON text (RFC 8259): a reader of its tokens, a writer, and the normal form of values.
//!
//! A JSON value is text in its *normal form*: no blanks; keys in the order given, of equal keys the
//! last value at the place of the first; in strings only the escapes that JSON demands, and those of
//! lone surrogates; numbers as they are written. Text becomes a value only by [`normal`]. Nothing
//! here is recursive: how deep a value is costs no stack.

mod normal;
mod string;
#[cfg(test)]
mod tests;
mod tokens;
mod writer;

pub use normal::{is_normal, normal};
pub use string::{put_quoted, quoted, unquoted};
pub use tokens::{Token, Tokens};
pub use writer::Writer;

use crate::Result;

/// Returns an error with SQLSTATE `22032` and the byte offset if the text is not one JSON value, or
/// `limit` if it has more than [`MAX_JSON_DEPTH`](crate::limits::MAX_JSON_DEPTH) levels.
pub fn check(text: &str) -> Result<()> {
    let mut tokens = Tokens::new(text);
    while tokens.next()?.is_some() {}
    Ok(())
}
