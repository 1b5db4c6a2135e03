//! The SQL dialect: ANSI quoting plus backticks, with MySQL and PostgreSQL syntax side by side.
//! Only lexical and grammatical choices live here; the binder gives statements their meaning.

use super::operator_words::{GLOB, NOT_GLOB};
use super::prefix::prefix;
use nacre_types::sorted::SortedMap;
use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::any::TypeId;

/// The dialect that the module describes.
#[derive(Debug)]
pub(crate) struct NacreDialect;

impl Dialect for NacreDialect {
    /// Passes as the generic dialect in the parser's own checks, because that accepts most syntax
    /// (`KEY (…)`, `ON DUPLICATE KEY UPDATE`, `//`).
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }
    /// `ON` is no alias because of `INSERT … SELECT a, b ON CONFLICT …`.
    fn is_column_alias(&self, word: &Keyword, _: &mut Parser) -> bool {
        *word != Keyword::ON && !RESERVED_FOR_COLUMN_ALIAS.contains(word)
    }
    fn supports_string_escape_constant(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_in_empty_list(&self) -> bool {
        true
    }
    fn supports_limit_comma(&self) -> bool {
        true
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }
    fn supports_try_convert(&self) -> bool {
        true
    }
    fn supports_create_table_select(&self) -> bool {
        true
    }
    fn supports_data_type_signed_suffix(&self) -> bool {
        true
    }
    fn supports_constraint_keyword_without_name(&self) -> bool {
        true
    }
    fn supports_update_order_by(&self) -> bool {
        true
    }
    fn supports_create_table_like_parenthesized(&self) -> bool {
        true
    }
    fn supports_insert_set(&self) -> bool {
        true
    }
    fn supports_insert_table_alias(&self) -> bool {
        true
    }
    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        true
    }
    fn supports_order_by_all(&self) -> bool {
        true
    }
    fn supports_from_first_select(&self) -> bool {
        true
    }
    fn supports_column_definition_trailing_commas(&self) -> bool {
        true
    }
    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }
    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }
    fn supports_select_wildcard_rename(&self) -> bool {
        true
    }
    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        Some(prefix(parser))
    }

    /// Precedences of MySQL where they differ from the parser's: `XOR` between `AND` and `OR`,
    /// `LIKE` equal to `=`.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Xor => 7,
            Precedence::Like => self.prec_value(Precedence::Eq),
            other => GenericDialect {}.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::ShiftLeft | Token::ShiftRight => Some(Ok(SHIFT)),
            Token::Caret => Some(Ok(CARET)),
            Token::Arrow | Token::LongArrow | Token::HashArrow | Token::HashLongArrow => {
                Some(Ok(PART))
            }
            Token::AtArrow
            | Token::ArrowAt
            | Token::AtQuestion
            | Token::HashMinus
            | Token::Question
            | Token::QuestionPipe
            | Token::QuestionAnd => Some(Ok(self.prec_value(Precedence::Pipe))),
            // What follows a key of `json_object`.
            Token::Colon => Some(Ok(self.prec_unknown())),
            Token::CustomBinaryOperator(name) if name == GLOB || name == NOT_GLOB => {
                Some(Ok(self.prec_value(Precedence::Like)))
            }
            // As an operator, it is no word by now.
            Token::Word(word) if matches!(word.keyword, Keyword::DIV | Keyword::GLOB) => {
                Some(Ok(self.prec_unknown()))
            }
            _ => None,
        }
    }
}

/// Turns keywords into plain names where they do not introduce a construct of their own, so that
/// columns may have such names.
///
/// Clauses of other databases that begin with `PIVOT`, `UNPIVOT`, or with `ALGORITHM` or `LOCK` in
/// `CREATE INDEX`, are not left to the parser. Returns the first of each statement, by the position
/// of the statement's first token.
pub(crate) fn free_names(tokens: &mut [TokenWithSpan]) -> SortedMap<usize, &'static str> {
    let (mut foreign, mut first) = (SortedMap::new(), 0);
    for at in 0..tokens.len() {
        if tokens[at].token == Token::SemiColon {
            first = at + 1;
        }
        let is_online =
            is_online_option(&tokens[at].token) && creates_index(&tokens[first.min(at)..at]);
        if let Some(name) = foreign_clause(tokens, at, is_online) {
            foreign.or_insert_with(first, || name);
        }
        if (is_online || is_free(tokens, at))
            && let Some(TokenWithSpan { token: Token::Word(word), .. }) = tokens.get_mut(at)
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
    foreign
}

/// Whether `CREATE` and `INDEX` are among the first words of a statement, in this order.
fn creates_index(words: &[TokenWithSpan]) -> bool {
    let is = |token: &TokenWithSpan, wanted| matches!(&token.token, Token::Word(word) if word.keyword == wanted);
    let created = words.iter().skip_while(|token| !is(token, Keyword::CREATE));
    created.skip(1).any(|token| is(token, Keyword::INDEX))
}

/// Whether a word says how MySQL creates an index beside writers.
fn is_online_option(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::ALGORITHM | Keyword::LOCK))
}

/// The name of the clause of another database that a word begins: `PIVOT` behind a table.
fn foreign_clause(tokens: &[TokenWithSpan], at: usize, is_online: bool) -> Option<&'static str> {
    let Token::Word(word) = &tokens[at].token else { return None };
    let next = tokens.get(at + 1).map(|token| &token.token)?;
    let next_keyword = match next {
        Token::Word(next) => next.keyword,
        _ => Keyword::NoKeyword,
    };
    let before = at.checked_sub(1).map(|before| &tokens[before].token)?;
    let follows_table = match before {
        Token::Word(table) => table.keyword == Keyword::NoKeyword,
        before => *before == Token::RParen,
    };
    match word.keyword {
        Keyword::PIVOT if follows_table && *next == Token::LParen => Some("PIVOT"),
        Keyword::UNPIVOT
            if follows_table
                && (*next == Token::LParen
                    || matches!(next_keyword, Keyword::INCLUDE | Keyword::EXCLUDE)) =>
        {
            Some("UNPIVOT")
        }
        // The parser would read it as a change of a table.
        _ if is_online
            && *before == Token::RParen
            && matches!(next, Token::Eq | Token::Word(_)) =>
        {
            Some("ALGORITHM or LOCK in CREATE INDEX")
        }
        _ => None,
    }
}

/// Whether the keyword at a position is used as a plain name.
fn is_free(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(TokenWithSpan { token: Token::Word(word), .. }) = tokens.get(at) else { return false };
    let token = |at: usize| tokens.get(at).map_or(&Token::EOF, |t| &t.token);
    let keyword = |at: usize| match token(at) {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let before = at.checked_sub(1);
    let begins = before.is_some_and(|at| matches!(token(at), Token::Comma | Token::LParen));
    match word.keyword {
        // A column definition continues with a type; an index with columns in parentheses, or a
        // name.
        Keyword::KEY | Keyword::INDEX | Keyword::FULLTEXT | Keyword::SPATIAL => {
            let is_type = matches!(token(at + 1), Token::Word(_))
                && !matches!(keyword(at + 1), Keyword::KEY | Keyword::INDEX | Keyword::USING)
                && keyword(at + 2) != Keyword::USING
                && (*token(at + 2) != Token::LParen
                    || matches!(token(at + 3), Token::Number(..) | Token::SingleQuotedString(_)));
            begins && is_type
        }
        // A keyword in `CREATE USER` and the like; otherwise a name, unless called as a function.
        Keyword::USER
        | Keyword::CURRENT_USER
        | Keyword::SESSION_USER
        | Keyword::CURRENT_CATALOG => {
            let about =
                |k| matches!(k, Keyword::CREATE | Keyword::ALTER | Keyword::DROP | Keyword::EXISTS);
            *token(at + 1) != Token::LParen && !before.is_some_and(|at| about(keyword(at)))
        }
        // The parser must not see these: what only it would do with them is cut out of the
        // WebAssembly module (`tools/divide/cut.txt`).
        Keyword::PIVOT | Keyword::UNPIVOT | Keyword::MERGE => true,
        Keyword::TRIM => *token(at + 1) != Token::LParen,
        Keyword::TOP => {
            !matches!(token(at + 1), Token::Number(..) | Token::LParen | Token::Placeholder(_))
        }
        Keyword::INTERVAL => {
            let begins = begins
                || before.is_some_and(|at| matches!(keyword(at), Keyword::SELECT | Keyword::BY));
            let ends = matches!(
                token(at + 1),
                Token::Comma | Token::RParen | Token::SemiColon | Token::EOF
            ) || matches!(
                keyword(at + 1),
                Keyword::FROM
                    | Keyword::AS
                    | Keyword::ASC
                    | Keyword::DESC
                    | Keyword::ORDER
                    | Keyword::HAVING
                    | Keyword::LIMIT
            );
            begins && ends
        }
        _ => false,
    }
}

/// Precedences that the parser does not name: shifts between `+` and `&`, `^` between a sign
/// ([`super::prefix::SIGN`]) and `*`, parts of JSON between a sign and `::`.
const SHIFT: u8 = 25;
const CARET: u8 = 42;
const PART: u8 = 45;

#[cfg(test)]
mod tests {
    use super::NacreDialect;
    use sqlparser::ast::Ident;
    use sqlparser::dialect::{BigQueryDialect, Dialect};
    use std::any::TypeId;

    /// `tools/divide/cut.txt` takes what only such syntax reaches out of the WebAssembly module.
    #[test]
    fn syntax_that_is_cut_out_is_not_read() {
        assert!(!NacreDialect.supports_match_recognize());
        assert!(!NacreDialect.supports_interpolate());
        assert!(!NacreDialect.supports_pipe_operator());
        assert!(!NacreDialect.support_map_literal_syntax());
        assert!(!NacreDialect.supports_dictionary_syntax());
        assert_ne!(NacreDialect.dialect(), TypeId::of::<BigQueryDialect>());
        let identifier = Ident::new("identifier");
        assert!(!NacreDialect.is_identifier_generating_function_name(&identifier, &[]));
    }
}
