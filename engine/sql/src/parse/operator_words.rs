//! Operators that are words: `DIV`, `GLOB` and `NOT GLOB`. They become tokens of their own before
//! parsing. The parser leaves such words to the dialect, which it shows the left operand without
//! giving it away: the dialect would have to copy it, and the code that copies every syntax tree
//! would be in the WebAssembly module.
//!
//! They are names where no operand is before or after them.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The operators of patterns as the parser hands them to the binder.
pub(crate) const GLOB: &str = "GLOB";
pub(crate) const NOT_GLOB: &str = "NOT GLOB";

/// Words that no operator follows: a `div` or `glob` after them is a name.
const NO_OPERANDS: &[Keyword] = &[
    Keyword::ADD,
    Keyword::ALL,
    Keyword::AND,
    Keyword::ANY,
    Keyword::AS,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::CASE,
    Keyword::COLUMN,
    Keyword::CONSTRAINT,
    Keyword::DISTINCT,
    Keyword::ELSE,
    Keyword::ESCAPE,
    Keyword::EXECUTE,
    Keyword::EXISTS,
    Keyword::FROM,
    Keyword::HAVING,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::INDEX,
    Keyword::INTO,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::LIKE,
    Keyword::LIMIT,
    Keyword::NOT,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::OR,
    Keyword::OVER,
    Keyword::RECURSIVE,
    Keyword::REFERENCES,
    Keyword::REGEXP,
    Keyword::RETURNING,
    Keyword::RLIKE,
    Keyword::SELECT,
    Keyword::SET,
    Keyword::SOME,
    Keyword::TABLE,
    Keyword::THEN,
    Keyword::TO,
    Keyword::UPDATE,
    Keyword::USING,
    Keyword::VALUES,
    Keyword::VIEW,
    Keyword::WHEN,
    Keyword::WHERE,
    Keyword::WITH,
    Keyword::XOR,
];

/// Words that continue a statement after an expression or the alias of a table.
const CONTINUATIONS: &[Keyword] = &[
    Keyword::AND,
    Keyword::AS,
    Keyword::ASC,
    Keyword::BETWEEN,
    Keyword::CROSS,
    Keyword::DESC,
    Keyword::ELSE,
    Keyword::END,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::FULL,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::INNER,
    Keyword::INTERSECT,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::LIKE,
    Keyword::LIMIT,
    Keyword::NATURAL,
    Keyword::NULLS,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::REGEXP,
    Keyword::RETURNING,
    Keyword::RLIKE,
    Keyword::SELECT,
    Keyword::SET,
    Keyword::THEN,
    Keyword::UNION,
    Keyword::USING,
    Keyword::VALUES,
    Keyword::WHEN,
    Keyword::WHERE,
    Keyword::WINDOW,
    Keyword::XOR,
];

/// The operator with which the tokens begin, and the number of its words.
pub(super) fn operator(
    before: Option<&TokenWithSpan>,
    tokens: &[TokenWithSpan],
) -> Option<(Token, usize)> {
    if let Some(operator) = json_operator(before, tokens) {
        return Some(operator);
    }
    let custom = |name: &str| Token::CustomBinaryOperator(name.into());
    let (token, words) = match (keyword(tokens, 0), keyword(tokens, 1)) {
        (Keyword::DIV, _) => (Token::DuckIntDiv, 1),
        (Keyword::GLOB, _) => (custom(GLOB), 1),
        (Keyword::NOT, Keyword::GLOB) => (custom(NOT_GLOB), 2),
        _ => return None,
    };
    (ends_operand(&before?.token) && begins_operand(&tokens[words..])).then_some((token, words))
}

/// PostgreSQL's `?`, `?|` and `?&`: a parameter, unless it stands between an operand and a text or
/// a parameter.
fn json_operator(
    before: Option<&TokenWithSpan>,
    tokens: &[TokenWithSpan],
) -> Option<(Token, usize)> {
    let token = |at: usize| tokens.get(at).map(|t| &t.token);
    if !matches!(token(0), Some(Token::Placeholder(text)) if text == "?") {
        return None;
    }
    let touches = tokens.get(1).is_some_and(|next| tokens[0].span.end == next.span.start);
    let (operator, words) = match token(1) {
        Some(Token::Pipe) if touches => (Token::QuestionPipe, 2),
        Some(Token::Ampersand) if touches => (Token::QuestionAnd, 2),
        _ => (Token::Question, 1),
    };
    let is_text =
        matches!(token(words), Some(Token::SingleQuotedString(_) | Token::Placeholder(_)));
    (is_text && ends_operand(&before?.token)).then_some((operator, words))
}

fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => !NO_OPERANDS.contains(&word.keyword),
        Token::RParen | Token::RBracket => true,
        other => is_literal(other),
    }
}

fn begins_operand(tokens: &[TokenWithSpan]) -> bool {
    match tokens.first().map(|first| &first.token) {
        // `left(s, 2)` is a call, `LEFT JOIN` is none.
        Some(Token::Word(word)) if matches!(word.keyword, Keyword::LEFT | Keyword::RIGHT) => {
            tokens.get(1).is_some_and(|next| next.token == Token::LParen)
        }
        Some(Token::Word(word)) => !CONTINUATIONS.contains(&word.keyword),
        Some(Token::LParen | Token::Plus | Token::Minus | Token::Tilde) => true,
        Some(other) => is_literal(other),
        None => false,
    }
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Colon
    )
}

fn keyword(tokens: &[TokenWithSpan], at: usize) -> Keyword {
    match tokens.get(at).map(|t| &t.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}
