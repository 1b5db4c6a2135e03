//! Errors of the parser: their sentences, and where in the text they are.

use crate::parse::{data_type, keyword_names};
use nacre_types::{Error, Position};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token};

/// Maximum nesting depth of parentheses.
pub(super) const MAX_NESTING: usize = if cfg!(target_family = "wasm") { 50 } else { 100 };
/// Maximum recursion depth of the parser: a level is a parenthesis, a subquery, a prefix operator,
/// or an operator that binds tighter than the one before it (`a OR b AND (…`). The stack in a
/// browser is smaller than that of a thread.
pub(super) const MAX_RECURSION: usize = if cfg!(target_family = "wasm") { 50 } else { 160 };

/// Converts a parser location to a position; the parser uses line 0 for an unknown location.
pub(crate) fn position(location: Location) -> Option<Position> {
    (location.line > 0)
        .then_some(Position { line: location.line as u32, column: location.column as u32 })
}

/// The name of a token in error messages.
pub(super) fn shown(token: &Token) -> String {
    if *token == Token::EOF { "the end of the input".into() } else { format!("{token}") }
}

/// Converts an error of the parser, whose messages end with ` at Line: l, Column: c`. The position
/// moves from the message to the error.
pub(super) fn syntax_error(error: ParserError, start: Location, last: Location) -> Error {
    keyword_names::keep();
    data_type::keep();
    let message = match error {
        ParserError::RecursionLimitExceeded => return nesting_error(start),
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => m,
    };
    let mut place = position(start);
    let mut text = message.as_str();
    if let Some((head, tail)) = message.rsplit_once(" at Line: ")
        && let Some((line, column)) = tail.split_once(", Column: ")
        && let (Ok(line), Ok(column)) = (line.trim().parse(), column.trim().parse())
    {
        place = Some(Position { line, column });
        text = head;
    }
    let arrays = |at| Error::unsupported("arrays are not supported").at(at);
    let expected = text.strip_prefix("Expected: ").or(text.strip_prefix("Expected "));
    let text = match expected.and_then(|t| t.split_once(", found: ")) {
        Some((expected, "EOF")) => {
            place = position(last);
            format!("expected {expected}, found the end of the input")
        }
        // `int[]` and `a[1]`.
        Some((expected, "[")) if expected.ends_with("column definition") => return arrays(place),
        Some((expected, found)) => format!("expected {expected}, found {found}"),
        None => match text.strip_prefix("No infix parser for token ") {
            Some("LBracket" | "[") => return arrays(place),
            Some(_) => "unknown operator".into(),
            None => not_a_number(text).unwrap_or_else(|| text.to_string()),
        },
    };
    Error::syntax(text).at(place)
}

/// The sentence about something else in place of a length, a precision or a number of seconds.
fn not_a_number(text: &str) -> Option<String> {
    let (found, _) = text.strip_prefix("Could not parse ")?.split_once(" as ")?;
    Some(format!("expected a whole number, found {}", found.trim_matches('\'')))
}

pub(super) fn nesting_error(at: Location) -> Error {
    Error::limit(format!(
        "statement is nested too deeply: the limits are {MAX_NESTING} parentheses, 40 calls or 16 subqueries, and \
         {MAX_RECURSION} levels of operators"
    ))
    .at(position(at))
}
