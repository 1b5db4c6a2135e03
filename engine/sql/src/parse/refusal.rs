//! Why a text is not a statement, and the words that say so.

use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The reason why a text is not a statement of this dialect.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The text does not parse.
    Syntax(ParserError),
    /// The name of a known statement that is not supported. Its text is not parsed.
    Unsupported(String),
}

impl From<ParserError> for Refusal {
    fn from(error: ParserError) -> Refusal {
        Refusal::Syntax(error)
    }
}

pub(super) type Parse<T> = std::result::Result<T, Refusal>;

/// The keyword that a token is.
pub(super) fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// A word in capital letters.
pub(super) fn upper(token: &TokenWithSpan) -> String {
    token.token.to_string().to_ascii_uppercase()
}

/// Whether a token is an unquoted word, in any case.
pub(super) fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}
