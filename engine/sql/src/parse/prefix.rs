//! What an expression begins with: a literal, a name, a call, a sign, parentheses or a word such as `CASE`.
//!
//! The parser's own function tries each word as a type, as a word with a syntax of its own and as a name, one after
//! the other, and knows those words of all databases. Here the next token decides.

use super::data_type::{begins_type, data_type, named};
use super::refusal::{is_word, keyword};
use sqlparser::ast::{
    Array, CastKind, Expr, Ident, ObjectName, TypedString, UnaryOperator, ValueWithSpan,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

type Parse<T> = Result<T, ParserError>;

/// The precedence of a sign, between `^` and parts of JSON (`dialect`).
pub(super) const SIGN: u8 = 43;

/// Parses what an expression begins with. Stands for the parser's `parse_prefix` in WebAssembly
/// (`tools/divide/cut.txt`).
#[inline(never)]
pub(super) fn prefix(parser: &mut Parser) -> Parse<Expr> {
    match parser.peek_token_ref().token {
        Token::Word(_) if may_be_typed(parser) => typed_literal(parser),
        Token::Word(_) => word(parser),
        Token::LParen => parenthesized(parser),
        Token::Minus => sign(parser, UnaryOperator::Minus),
        Token::Plus => sign(parser, UnaryOperator::Plus),
        Token::Tilde => sign(parser, UnaryOperator::BitwiseNot),
        Token::LBracket => {
            parser.next_token();
            parser.parse_array_expr(false)
        }
        Token::LBrace => braces(parser),
        Token::Number(..) | Token::Colon | Token::AtSign => value(parser),
        ref token if is_text(token) => value(parser),
        _ => no_expression(parser),
    }
}

#[cold]
#[inline(never)]
fn no_expression(parser: &mut Parser) -> Parse<Expr> {
    let token = parser.next_token();
    parser.expected("an expression", token)
}

#[inline(never)]
fn value(parser: &mut Parser) -> Parse<Expr> {
    parser.parse_value().map(Expr::Value)
}

/// Whether a token may be the text of a typed literal.
fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Placeholder(_)
    )
}

/// Parses a prefix operator and its operand.
#[inline(never)]
fn sign(parser: &mut Parser, op: UnaryOperator) -> Parse<Expr> {
    parser.next_token();
    Ok(Expr::UnaryOp { op, expr: Box::new(parser.parse_subexpr(SIGN)?) })
}

/// Parses what begins with a word. Here and below, frames are small: expressions nest as deep as the stack allows.
#[inline(never)]
fn word(parser: &mut Parser) -> Parse<Expr> {
    let [word, next] = parser.peek_tokens_ref();
    let calls = next.token == Token::LParen;
    match keyword(&word.token) {
        Keyword::TRUE | Keyword::FALSE | Keyword::NULL => value(parser),
        Keyword::SUBSTR | Keyword::SUBSTRING if calls => parser.parse_substring(),
        Keyword::POSITION if calls && !is_position_in(parser) => name(parser),
        Keyword::CASE if ends_expression(&next.token) => name(parser),
        Keyword::CURRENT_TIMESTAMP
        | Keyword::CURRENT_TIME
        | Keyword::CURRENT_DATE
        | Keyword::LOCALTIME
        | Keyword::LOCALTIMESTAMP => now(parser),
        Keyword::ARRAY if calls || next.token == Token::LBracket => array(parser),
        keyword @ (Keyword::NOT | Keyword::EXISTS | Keyword::INTERVAL | Keyword::CASE) => {
            special(parser, keyword)
        }
        keyword if calls && CALLS.contains(&keyword) => special(parser, keyword),
        _ => name(parser),
    }
}

/// Words whose arguments have a syntax of their own.
const CALLS: [Keyword; 11] = [
    Keyword::CAST,
    Keyword::CEIL,
    Keyword::CONVERT,
    Keyword::EXTRACT,
    Keyword::FLOOR,
    Keyword::OVERLAY,
    Keyword::POSITION,
    Keyword::SAFE_CAST,
    Keyword::TRIM,
    Keyword::TRY_CAST,
    Keyword::TRY_CONVERT,
];

/// Parses what begins with a word that has a syntax of its own.
#[inline(never)]
fn special(parser: &mut Parser, keyword: Keyword) -> Parse<Expr> {
    parser.advance_token();
    match keyword {
        Keyword::NOT => parser.parse_not(),
        Keyword::EXISTS => parser.parse_exists_expr(false),
        Keyword::INTERVAL => parser.parse_interval(),
        Keyword::CASE => parser.parse_case_expr(),
        Keyword::CAST => converted_as(parser, CastKind::Cast),
        Keyword::TRY_CAST => converted_as(parser, CastKind::TryCast),
        Keyword::SAFE_CAST => converted_as(parser, CastKind::SafeCast),
        Keyword::CONVERT => converted(parser, false),
        Keyword::TRY_CONVERT => converted(parser, true),
        Keyword::EXTRACT => parser.parse_extract_expr(),
        Keyword::CEIL => parser.parse_ceil_floor_expr(true),
        Keyword::FLOOR => parser.parse_ceil_floor_expr(false),
        Keyword::OVERLAY => parser.parse_overlay_expr(),
        Keyword::POSITION => {
            let name = Ident::with_span(parser.get_current_token().span, "position");
            parser.parse_position_expr(name)
        }
        _ => parser.parse_trim_expr(),
    }
}

/// Parses a name, or a call.
#[inline(never)]
fn name(parser: &mut Parser) -> Parse<Expr> {
    let is_text = is_text(&parser.peek_nth_token_ref(1).token);
    let name = identifier(parser)?;
    if parser.peek_token_ref().token == Token::LParen {
        return parser.parse_function(ObjectName::from(vec![name]));
    }
    // A character set of MySQL, such as `_utf8'text'`.
    if is_text && name.quote_style.is_none() && name.value.starts_with('_') {
        return introduced(parser, name);
    }
    Ok(Expr::Identifier(name))
}

/// Takes the next word, whatever its keyword.
fn identifier(parser: &mut Parser) -> Parse<Ident> {
    let TokenWithSpan { token, span } = parser.next_token();
    match token {
        Token::Word(word) => Ok(Ident { value: word.value, quote_style: word.quote_style, span }),
        token => parser.expected("an expression", TokenWithSpan { token, span }),
    }
}

#[inline(never)]
fn introduced(parser: &mut Parser, prefix: Ident) -> Parse<Expr> {
    Ok(Expr::Prefixed { prefix, value: Box::new(value(parser)?) })
}

/// Parses `CURRENT_TIMESTAMP` and the like, with parentheses or without.
#[inline(never)]
fn now(parser: &mut Parser) -> Parse<Expr> {
    let name = identifier(parser)?;
    parser.parse_time_functions(ObjectName::from(vec![name]))
}

/// Parses `ARRAY[…]` or `ARRAY(query)`.
#[inline(never)]
fn array(parser: &mut Parser) -> Parse<Expr> {
    parser.advance_token();
    if parser.consume_token(&Token::LBracket) {
        return parser.parse_array_expr(true);
    }
    parser.expect_token(&Token::LParen)?;
    parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Array(Array { elem: Vec::new(), named: true }))
}

/// Whether an expression ends in front of a token, so that the word before it is a name.
fn ends_expression(token: &Token) -> bool {
    matches!(token, Token::Comma | Token::RParen | Token::Period | Token::SemiColon | Token::EOF)
        || keyword(token) == Keyword::FROM
}

/// Parses `(value AS type)`.
#[inline(never)]
fn converted_as(parser: &mut Parser, kind: CastKind) -> Parse<Expr> {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword_is(Keyword::AS)?;
    let data_type = data_type(parser)?;
    let format = parser.parse_optional_cast_format()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Cast { kind, expr, data_type, format })
}

/// Parses `(value, type [CHARACTER SET name])` or `(value USING name)`.
#[inline(never)]
fn converted(parser: &mut Parser, is_try: bool) -> Parse<Expr> {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    let (mut to, mut charset) = (None, None);
    if parser.parse_keyword(Keyword::USING) {
        charset = Some(parser.parse_object_name(false)?);
    } else {
        parser.expect_token(&Token::Comma)?;
        to = Some(data_type(parser)?);
        if parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET]) {
            charset = Some(parser.parse_object_name(false)?);
        }
    }
    parser.expect_token(&Token::RParen)?;
    let (target_before_value, styles) = (false, Vec::new());
    Ok(Expr::Convert { is_try, expr, data_type: to, charset, target_before_value, styles })
}

/// Whether what comes next may be `type 'text'`, by its first three tokens.
fn may_be_typed(parser: &Parser) -> bool {
    let [first, second, third] = parser.peek_tokens_ref();
    let continues = match &second.token {
        Token::LParen => matches!(third.token, Token::Number(..)),
        // A second word of a type, or a word behind it.
        Token::Word(_) => !matches!(third.token, Token::Comma | Token::RParen),
        token => is_text(token),
    };
    continues
        && matches!(&first.token, Token::Word(word)
            if word.keyword != Keyword::INTERVAL && begins_type(word))
}

/// Parses `type 'text'`, or what else begins with a word.
#[inline(never)]
fn typed_literal(parser: &mut Parser) -> Parse<Expr> {
    let literal = parser.maybe_parse(|parser| {
        let data_type = data_type(parser)?;
        match is_text(&parser.peek_token_ref().token) {
            true => Ok(typed(data_type, parser.parse_value()?, false)),
            // It is not shown.
            false => Err(ParserError::ParserError(String::new())),
        }
    })?;
    literal.map_or_else(|| word(parser), Ok)
}

fn typed(
    data_type: sqlparser::ast::DataType,
    value: ValueWithSpan,
    uses_odbc_syntax: bool,
) -> Expr {
    Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax })
}

/// Whether the parentheses that come next have an `IN` that is not in further ones.
fn is_position_in(parser: &Parser) -> bool {
    let mut depth = 0usize;
    for at in 0.. {
        match &parser.peek_nth_token_ref(at).token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            Token::EOF | Token::SemiColon => break,
            token if depth == 1 && keyword(token) == Keyword::IN => return true,
            _ => {}
        }
    }
    false
}

/// Parses `(query)`, `(value)` or a row of several values.
#[inline(never)]
fn parenthesized(parser: &mut Parser) -> Parse<Expr> {
    parser.next_token();
    let is_query =
        matches!(keyword(&parser.peek_token_ref().token), Keyword::SELECT | Keyword::WITH);
    let expr = match is_query {
        true => Expr::Subquery(parser.parse_query()?),
        false => {
            let mut values = parser.parse_comma_separated(Parser::parse_expr)?;
            match values.len() {
                1 => Expr::Nested(Box::new(values.remove(0))),
                _ => Expr::Tuple(values),
            }
        }
    };
    parser.expect_token(&Token::RParen)?;
    Ok(expr)
}

/// Parses ODBC's `{d 'date'}`, `{t 'time'}`, `{ts 'timestamp'}` and `{fn call}`.
#[inline(never)]
fn braces(parser: &mut Parser) -> Parse<Expr> {
    const NAMES: [(&str, &str); 3] = [("d", "DATE"), ("t", "TIME"), ("ts", "TIMESTAMP")];
    parser.next_token();
    let token = parser.next_token();
    let expr = if keyword(&token.token) == Keyword::FN {
        let name = parser.parse_object_name(false)?;
        parser.parse_function(name)?
    } else {
        match NAMES.iter().find(|(short, _)| is_word(&token.token, short)) {
            Some((_, name)) => typed(named((*name).into()), parser.parse_value()?, true),
            None => return parser.expected("an expression", token),
        }
    };
    parser.expect_token(&Token::RBrace)?;
    Ok(expr)
}
