//! Types. The parser's own function knows those of all databases, in 27 KB of code; here a type is the text that names
//! it, in the syntax tree a name of one word, and `type_names` says what it means.

use crate::type_names::meaning;
use sqlparser::ast::{DataType, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};
use std::fmt;
use std::hint::black_box;

/// Words that belong to a type behind another word.
const SECOND_WORDS: &[(Keyword, &[Keyword])] = &[
    (Keyword::DOUBLE, &[Keyword::PRECISION]),
    (Keyword::CHARACTER, &[Keyword::VARYING]),
    (Keyword::CHAR, &[Keyword::VARYING]),
    (Keyword::BIT, &[Keyword::VARYING]),
    (Keyword::SIGNED, &[Keyword::INTEGER]),
    (Keyword::UNSIGNED, &[Keyword::INTEGER]),
];

/// Words that belong to a type behind its numbers.
const LAST_WORDS: &[&[Keyword]] = &[
    &[Keyword::WITH, Keyword::TIME, Keyword::ZONE],
    &[Keyword::WITHOUT, Keyword::TIME, Keyword::ZONE],
    &[Keyword::UNSIGNED],
];

/// Parses a type. Stands for the parser's `parse_data_type` in WebAssembly (`tools/divide/cut.txt`).
#[inline(never)]
pub(crate) fn data_type(parser: &mut Parser) -> Result<DataType, ParserError> {
    let first = parser.next_token();
    let Token::Word(word) = &first.token else {
        return parser.expected("a data type name", first);
    };
    if parser.peek_token_ref().token == Token::Period {
        parser.prev_token();
        return Ok(DataType::Custom(parser.parse_object_name(false)?, Vec::new()));
    }
    let is_known = begins_type(word);
    let mut name = match is_known {
        true => word.value.to_ascii_uppercase(),
        false => word.to_string(),
    };
    let second = SECOND_WORDS.iter().filter(|(first, _)| *first == word.keyword);
    for (_, words) in second {
        append(parser, words, &mut name);
    }
    if parser.consume_token(&Token::LParen) {
        name.push('(');
        arguments(parser, &mut name)?;
        name.push(')');
    }
    if is_known {
        LAST_WORDS.iter().for_each(|words| append(parser, words, &mut name));
        let _ = parser.parse_keyword(Keyword::SIGNED);
    }
    append(parser, &[Keyword::ARRAY], &mut name);
    Ok(named(name))
}

/// A type in the syntax tree.
pub(super) fn named(name: String) -> DataType {
    DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new())
}

/// Writes a type of the syntax tree, which is a name, or `KEY` and columns. Stands for its `Display` in WebAssembly.
fn write_type(data_type: &DataType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let DataType::Custom(name, columns) = data_type else { return Ok(()) };
    write!(f, "{name}")?;
    match columns.is_empty() {
        true => Ok(()),
        false => write!(f, "({})", columns.join(", ")),
    }
}

/// Keeps the function in a module in which nothing calls it before it is cut.
pub(super) fn keep() {
    black_box(write_type as fn(&DataType, &mut fmt::Formatter<'_>) -> fmt::Result);
}

/// Whether a type may begin with a word.
pub(super) fn begins_type(word: &Word) -> bool {
    word.quote_style.is_none() && meaning(&word.value).is_some()
}

/// Takes words if they come next, and adds them to a name.
fn append(parser: &mut Parser, words: &[Keyword], name: &mut String) {
    if parser.parse_keywords(words) {
        for word in words {
            name.push(' ');
            name.push_str(&word.to_string());
        }
    }
}

/// Parses what is in the parentheses of a type, the closing one included, and adds its text to a name.
fn arguments(parser: &mut Parser, name: &mut String) -> Result<(), ParserError> {
    let mut depth = 0usize;
    loop {
        let token = parser.next_token();
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Ok(()),
            Token::RParen => depth -= 1,
            Token::EOF | Token::SemiColon => return parser.expected(")", token),
            _ => {}
        }
        let is_word = matches!(token.token, Token::Word(_));
        if is_word && !name.ends_with(['(', ',']) {
            name.push(' ');
        }
        name.push_str(&token.token.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::data_type;
    use crate::bind::expression::types;
    use crate::parse::dialect::NacreDialect;
    use sqlparser::parser::Parser;

    /// The parser's own function reads types where no code of this crate does, but in WebAssembly.
    #[test]
    fn types_mean_what_the_parser_reads() {
        let texts = [
            "int",
            "Integer",
            "int(11)",
            "bigint(20) unsigned",
            "tinyint(1)",
            "smallint signed",
            "mediumint unsigned",
            "int8 unsigned",
            "uint64",
            "hugeint",
            "signed",
            "unsigned integer",
            "float",
            "float(24)",
            "float(25)",
            "double",
            "double precision",
            "real",
            "decimal",
            "numeric(10)",
            "decimal(38, 10)",
            "dec(4,2)",
            "char",
            "char(3)",
            "character varying(7)",
            "varchar",
            "varchar(10)",
            "varchar(10 characters)",
            "varchar(9 octets)",
            "nvarchar(3)",
            "text",
            "longtext",
            "string",
            "clob(5)",
            "binary",
            "binary(16)",
            "varbinary(4)",
            "blob",
            "blob(9)",
            "bytea",
            "date",
            "time",
            "time(3)",
            "time without time zone",
            "time with time zone",
            "timetz",
            "datetime",
            "datetime(6)",
            "timestamp",
            "timestamp(3) without time zone",
            "timestamp(7)",
            "timestamptz",
            "timestamp with time zone",
            "timestamp_ms",
            "boolean",
            "bool",
            "json",
            "jsonb",
            "interval",
            "uuid",
            "enum('a', 'b')",
            "serial",
            "geometry",
            "int array",
            "bit(3)",
            "decimal(39)",
            "varchar(0)",
            "decimal(2,3)",
        ];
        for text in texts {
            let parser = |text: &str| Parser::new(&NacreDialect).try_with_sql(text).unwrap();
            let ours = data_type(&mut parser(text)).unwrap();
            let theirs = parser(text).parse_data_type().unwrap();
            let meaning = |ast| types::data_type(ast).map_err(|error| error.kind());
            assert_eq!(meaning(&ours), meaning(&theirs), "{text}: {ours} and {theirs}");
            let text = ours.to_string();
            assert_eq!(data_type(&mut parser(&text)).unwrap(), ours);
        }
        for text in ["3", "'int'", "decimal(1", "varchar(3;", ""] {
            assert!(
                data_type(&mut Parser::new(&NacreDialect).try_with_sql(text).unwrap()).is_err()
            );
        }
    }
}
