//! The tokens of a text and their places in it, to change single words of the text.

use super::tokenize;
use nacre_types::Result;
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// The tokens of a text, without those between words, each with its bytes in the text.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>> {
    let (tokens, mut lines) = tokenize(text, &[])?;
    let placed = tokens.into_iter().map(|t| {
        let start = lines.offset(t.span.start);
        (t.token, start..lines.offset(t.span.end))
    });
    Ok(placed.collect())
}
