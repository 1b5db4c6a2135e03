//! `CREATE TABLE`. The parser's own function reads the clauses of all databases behind the columns, in 26 KB of code;
//! those are refused here by their first words.

use super::columns::columns;
use super::refusal::{Parse, Refusal, keyword};
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{
    CreateTable, CreateTableLike, CreateTableLikeDefaults, CreateTableLikeKind, CreateTableOptions,
    OnCommit, Query, WithData,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// First words of clauses of other databases, in front of the columns or behind them, and their names.
const FOREIGN_CLAUSES: &[(&[Keyword], &str)] = &[
    (&[Keyword::PARTITION, Keyword::OF], "PARTITION OF"),
    (&[Keyword::PARTITION, Keyword::BY], "PARTITION BY"),
    (&[Keyword::PARTITIONED, Keyword::BY], "PARTITIONED BY"),
    (&[Keyword::ON, Keyword::CLUSTER], "ON CLUSTER"),
    (&[Keyword::CLONE], "CREATE TABLE … CLONE"),
    (&[Keyword::CLUSTERED, Keyword::BY], "CLUSTERED BY"),
    (&[Keyword::CLUSTER, Keyword::BY], "CLUSTER BY"),
    (&[Keyword::ROW, Keyword::FORMAT], "ROW FORMAT or STORED AS"),
    (&[Keyword::STORED, Keyword::AS], "ROW FORMAT or STORED AS"),
    (&[Keyword::LOCATION], "STORED AS or LOCATION"),
    (&[Keyword::INHERITS], "INHERITS"),
    (&[Keyword::TBLPROPERTIES], "TBLPROPERTIES"),
    (&[Keyword::OPTIONS], "OPTIONS (…) of a table"),
    (&[Keyword::PRIMARY, Keyword::KEY], "PRIMARY KEY behind the columns"),
    (&[Keyword::ORDER, Keyword::BY], "ORDER BY of a table"),
    (&[Keyword::BACKUP], "BACKUP"),
    (&[Keyword::DISTSTYLE], "DISTSTYLE or DISTKEY"),
    (&[Keyword::DISTKEY], "DISTSTYLE or DISTKEY"),
    (&[Keyword::SORTKEY], "SORTKEY"),
];

/// Parses what follows `CREATE TABLE`: `[IF NOT EXISTS] name [LIKE other | (definitions)] [options]
/// [[AS] query [WITH [NO] DATA]]`.
pub(super) fn create_table(parser: &mut Parser) -> Parse<CreateTable> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    // It is large: each of its parts is set where it is.
    let mut table = CreateTableBuilder::new(parser.parse_object_name(false)?).build();
    table.if_not_exists = if_not_exists;
    refuse_clauses(parser)?;
    table.like = like(parser)?;
    (table.columns, table.constraints) = columns(parser)?;
    table.without_rowid = parser.parse_keywords(&[Keyword::WITHOUT, Keyword::ROWID]);
    refuse_clauses(parser)?;
    if parser.peek_keyword(Keyword::WITH) && parser.peek_nth_token_ref(1).token == Token::LParen {
        return Err(Refusal::Unsupported("WITH (…) of a table".into()));
    }
    let options = parser.parse_plain_options()?;
    if !options.is_empty() {
        table.table_options = CreateTableOptions::Plain(options);
    }
    refuse_clauses(parser)?;
    table.on_commit = on_commit(parser)?;
    table.strict = parser.parse_keyword(Keyword::STRICT);
    table.query = query(parser)?;
    if table.query.is_some() {
        table.with_data = with_data(parser)?;
    }
    Ok(table)
}

fn refuse_clauses(parser: &mut Parser) -> Parse<()> {
    match FOREIGN_CLAUSES.iter().find(|(words, _)| parser.parse_keywords(words)) {
        Some((_, name)) => Err(Refusal::Unsupported((*name).into())),
        None => Ok(()),
    }
}

/// Parses `LIKE table` or `(LIKE table [{INCLUDING | EXCLUDING} DEFAULTS])`.
fn like(parser: &mut Parser) -> Parse<Option<CreateTableLikeKind>> {
    let is_like = |token: &Token| matches!(keyword(token), Keyword::LIKE | Keyword::ILIKE);
    if is_like(&parser.peek_token_ref().token) {
        parser.next_token();
        let name = parser.parse_object_name(false)?;
        return Ok(Some(CreateTableLikeKind::Plain(CreateTableLike { name, defaults: None })));
    }
    if parser.peek_token_ref().token != Token::LParen
        || keyword(&parser.peek_nth_token_ref(1).token) != Keyword::LIKE
    {
        return Ok(None);
    }
    parser.next_token();
    parser.next_token();
    let name = parser.parse_object_name(false)?;
    let defaults = if parser.parse_keywords(&[Keyword::INCLUDING, Keyword::DEFAULTS]) {
        Some(CreateTableLikeDefaults::Including)
    } else if parser.parse_keywords(&[Keyword::EXCLUDING, Keyword::DEFAULTS]) {
        Some(CreateTableLikeDefaults::Excluding)
    } else {
        None
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Some(CreateTableLikeKind::Parenthesized(CreateTableLike { name, defaults })))
}

fn on_commit(parser: &mut Parser) -> Parse<Option<OnCommit>> {
    if !parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
        return Ok(None);
    }
    match parser.parse_keywords(&[Keyword::PRESERVE, Keyword::ROWS]) {
        true => Ok(Some(OnCommit::PreserveRows)),
        false => Err(Refusal::Unsupported("ON COMMIT".into())),
    }
}

fn query(parser: &mut Parser) -> Parse<Option<Box<Query>>> {
    if parser.parse_keyword(Keyword::AS) || parser.peek_keyword(Keyword::SELECT) {
        return Ok(Some(parser.parse_query()?));
    }
    Ok(None)
}

/// Parses `WITH [NO] DATA [AND [NO] STATISTICS]`.
fn with_data(parser: &mut Parser) -> Parse<Option<WithData>> {
    let data = if parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]) {
        true
    } else if parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]) {
        false
    } else {
        return Ok(None);
    };
    if parser.parse_keyword(Keyword::AND) {
        return Err(Refusal::Unsupported("WITH DATA AND STATISTICS".into()));
    }
    Ok(Some(WithData { data, statistics: None }))
}
