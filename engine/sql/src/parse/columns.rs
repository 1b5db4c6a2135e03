//! Definitions of columns, in `CREATE TABLE` and `ALTER TABLE`.

use super::data_type::data_type;
use super::refusal::keyword;
use sqlparser::ast::{ColumnDef, ColumnOptionDef, DataType, ObjectName, TableConstraint};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

type Parse<T> = Result<T, ParserError>;

/// Parses `(column or constraint, …)`, if that comes next. A comma may be behind the last one.
pub(super) fn columns(parser: &mut Parser) -> Parse<(Vec<ColumnDef>, Vec<TableConstraint>)> {
    let (mut columns, mut constraints) = (Vec::new(), Vec::new());
    if !parser.consume_token(&Token::LParen) {
        return Ok((columns, constraints));
    }
    while !parser.consume_token(&Token::RParen) {
        if let Some(constraint) = parser.parse_optional_table_constraint()? {
            constraints.push(constraint);
        } else if matches!(parser.peek_token_ref().token, Token::Word(_)) {
            columns.push(column(parser)?);
        } else {
            let next = parser.next_token();
            return parser.expected("column name or constraint definition", next);
        }
        if !parser.consume_token(&Token::Comma) && parser.peek_token_ref().token != Token::RParen {
            let next = parser.next_token();
            return parser.expected("',' or ')' after column definition", next);
        }
    }
    Ok((columns, constraints))
}

/// Parses `name type [option …]`.
pub(super) fn column(parser: &mut Parser) -> Parse<ColumnDef> {
    let name = parser.parse_identifier()?;
    let data_type = column_type(parser)?;
    let mut options = Vec::new();
    loop {
        let constraint = match parser.parse_keyword(Keyword::CONSTRAINT) {
            true => Some(parser.parse_identifier()?),
            false => None,
        };
        match parser.parse_optional_column_option()? {
            Some(option) => options.push(ColumnOptionDef { name: constraint, option }),
            None if constraint.is_some() => {
                let next = parser.next_token();
                return parser.expected("constraint details after CONSTRAINT <name>", next);
            }
            None => return Ok(ColumnDef { name, data_type, options }),
        }
    }
}

/// Parses a type, or the columns of `SHARD KEY (…)`, which are in the syntax tree as a column `SHARD` of a type
/// `KEY`.
fn column_type(parser: &mut Parser) -> Parse<DataType> {
    let [key, next] = parser.peek_tokens_ref();
    if keyword(&key.token) != Keyword::KEY || next.token != Token::LParen {
        return data_type(parser);
    }
    let name = ObjectName::from(vec![parser.parse_identifier()?]);
    let columns = parser.parse_optional_type_modifiers()?.unwrap_or_default();
    Ok(DataType::Custom(name, columns))
}
