//! Statements by their first words: calls the parser's function for each kind that is supported.
//!
//! `Parser::parse_statement` must not be reachable: it accepts the statements of all databases, and
//! costs a browser 50 KB of compressed code. Statements of other databases are recognised by name,
//! so that the error says what is not supported.

use super::alter::alter_table;
use super::create_table::create_table;
use super::merge::merge;
use super::refusal::{Parse, Refusal, is_word, keyword, upper};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Delete, DescribeAlias, Expr, Ident, ObjectName, ObjectNamePart, ObjectType, Query, Set,
    SetExpr, Statement, Value, WaitForStatement, WaitForType, With,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// Kinds of objects that other databases create, alter or drop.
const FOREIGN_OBJECTS: &[Keyword] = &[
    Keyword::AGGREGATE,
    Keyword::COLLATION,
    Keyword::CONNECTOR,
    Keyword::CONSTRAINT,
    Keyword::DATABASE,
    Keyword::DOMAIN,
    Keyword::EXTENSION,
    Keyword::EXTERNAL,
    Keyword::FUNCTION,
    Keyword::ICEBERG,
    Keyword::INDEX,
    Keyword::MACRO,
    Keyword::MATERIALIZED,
    Keyword::OPERATOR,
    Keyword::POLICY,
    Keyword::PROCEDURE,
    Keyword::ROLE,
    Keyword::SCHEMA,
    Keyword::SECRET,
    Keyword::SEQUENCE,
    Keyword::SERVER,
    Keyword::SNAPSHOT,
    Keyword::STAGE,
    Keyword::STREAM,
    Keyword::TEXT,
    Keyword::TRIGGER,
    Keyword::TYPE,
    Keyword::USER,
    Keyword::VIEW,
    Keyword::VIRTUAL,
    Keyword::WAREHOUSE,
];

/// First words of statements of other databases.
const FOREIGN_STATEMENTS: &[Keyword] = &[
    Keyword::ANALYZE,
    Keyword::ASSERT,
    Keyword::ATTACH,
    Keyword::CACHE,
    Keyword::CALL,
    Keyword::CASE,
    Keyword::CLOSE,
    Keyword::COMMENT,
    Keyword::COPY,
    Keyword::DECLARE,
    Keyword::DENY,
    Keyword::DETACH,
    Keyword::DISCARD,
    Keyword::EXEC,
    Keyword::EXPORT,
    Keyword::FETCH,
    Keyword::FLUSH,
    Keyword::GRANT,
    Keyword::IF,
    Keyword::INSTALL,
    Keyword::KILL,
    Keyword::LISTEN,
    Keyword::LOAD,
    Keyword::LOCK,
    Keyword::MSCK,
    Keyword::NOTIFY,
    Keyword::OPEN,
    Keyword::PREPARE,
    Keyword::PRINT,
    Keyword::RAISE,
    Keyword::RAISERROR,
    Keyword::RENAME,
    Keyword::RESET,
    Keyword::RETURN,
    Keyword::REVOKE,
    Keyword::THROW,
    Keyword::UNCACHE,
    Keyword::UNLISTEN,
    Keyword::UNLOAD,
    Keyword::USE,
    Keyword::VACUUM,
    Keyword::WAITFOR,
    Keyword::WHILE,
];

/// Parses one statement, up to the separator or whatever else follows it.
pub(super) fn statement(parser: &mut Parser) -> Parse<Statement> {
    if let Some(statement) = deleted_from(parser) {
        return Ok(statement?);
    }
    if starts_profile(parser) {
        parser.next_token();
        return explained(parser, true);
    }
    let first = parser.next_token();
    match keyword(&first.token) {
        Keyword::WITH if has_merge(parser) => merge_with(parser),
        Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM => query(parser),
        Keyword::INSERT => Ok(parser.parse_insert(first)?),
        Keyword::REPLACE => Ok(parser.parse_replace(first)?),
        Keyword::UPDATE => Ok(parser.parse_update(first)?),
        Keyword::DELETE => Ok(parser.parse_delete(first)?),
        Keyword::CREATE => create(parser),
        Keyword::DROP => drop_objects(parser),
        Keyword::ALTER => alter(parser),
        Keyword::TRUNCATE => Ok(parser.parse_truncate()?.into()),
        Keyword::OPTIMIZE => Ok(optimize_table(parser)?),
        Keyword::SHOW => Ok(parser.parse_show()?),
        Keyword::SET => set(parser),
        Keyword::PRAGMA => Ok(pragma(parser)?),
        Keyword::LOCK | Keyword::UNLOCK if parser.parse_keyword(Keyword::TABLES) => {
            Ok(lock_tables(parser, keyword(&first.token)))
        }
        Keyword::EXPLAIN | Keyword::DESCRIBE | Keyword::DESC => explain(parser),
        Keyword::START => Ok(parser.parse_start_transaction()?),
        Keyword::BEGIN => Ok(parser.parse_begin()?),
        Keyword::COMMIT => Ok(parser.parse_commit()?),
        Keyword::END => Ok(parser.parse_end()?),
        Keyword::ROLLBACK => Ok(parser.parse_rollback()?),
        Keyword::ABORT => Ok(parser.parse_abort()?),
        Keyword::SAVEPOINT => Ok(parser.parse_savepoint()?),
        Keyword::RELEASE => Ok(parser.parse_release()?),
        Keyword::EXECUTE => execute(parser),
        Keyword::DEALLOCATE => {
            let prepare = parser.parse_keyword(Keyword::PREPARE);
            Ok(Statement::Deallocate { name: parser.parse_identifier()?, prepare })
        }
        Keyword::RENAME => Err(Refusal::Unsupported("RENAME TABLE".into())),
        other if FOREIGN_STATEMENTS.contains(&other) => Err(Refusal::Unsupported(upper(&first))),
        // No keyword any more (`free_names`).
        _ if is_word(&first.token, "merge") => merge(parser),
        _ if is_word(&first.token, "wait") => Ok(wait_for(parser)?),
        _ if first.token == Token::LParen => query(parser),
        _ => Ok(parser.expected("an SQL statement", first)?),
    }
}

/// Whether tokens begin with `PREPARE name`.
pub(super) fn begins_prepare(tokens: &[TokenWithSpan]) -> bool {
    match tokens {
        [prepare, name, ..] => {
            keyword(&prepare.token) == Keyword::PREPARE && matches!(name.token, Token::Word(_))
        }
        _ => false,
    }
}

/// Parses `PREPARE name AS`, if that comes next. Returns the name, and where the statement begins.
pub(super) fn prepare(parser: &mut Parser) -> Parse<Option<(String, Location)>> {
    if keyword(&parser.peek_token_ref().token) != Keyword::PREPARE {
        return Ok(None);
    }
    parser.next_token();
    let name = parser.parse_identifier()?.value;
    if parser.peek_token_ref().token == Token::LParen {
        return Err(Refusal::Unsupported("PREPARE with types of parameters".into()));
    }
    if keyword(&parser.peek_token_ref().token) == Keyword::FROM {
        return Err(Refusal::Unsupported("PREPARE … FROM".into()));
    }
    parser.expect_keyword_is(Keyword::AS)?;
    let first = parser.peek_token_ref();
    match first.token {
        Token::EOF | Token::SemiColon => {
            let first = first.clone();
            Ok(parser.expected("a statement after AS", first)?)
        }
        _ => Ok(Some((name, first.span.start))),
    }
}

/// Parses `EXECUTE name [(value, …)]`, whose first word was taken.
fn execute(parser: &mut Parser) -> Parse<Statement> {
    if keyword(&parser.peek_token_ref().token) == Keyword::IMMEDIATE {
        return Err(Refusal::Unsupported("EXECUTE IMMEDIATE".into()));
    }
    let name = ObjectName::from(vec![parser.parse_identifier()?]);
    let mut parameters = Vec::new();
    let has_parentheses = parser.consume_token(&Token::LParen);
    if has_parentheses && !parser.consume_token(&Token::RParen) {
        parameters = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
    }
    if keyword(&parser.peek_token_ref().token) == Keyword::USING {
        return Err(Refusal::Unsupported("EXECUTE … USING".into()));
    }
    Ok(Statement::Execute {
        name: Some(name),
        parameters,
        has_parentheses,
        immediate: false,
        into: Vec::new(),
        using: Vec::new(),
        output: false,
        default: false,
    })
}

/// Parses a query whose first token was taken.
fn query(parser: &mut Parser) -> Parse<Statement> {
    parser.prev_token();
    Ok(parser.parse_query()?.into())
}

/// Whether the statement has the word `MERGE` where a `WITH` ends. Looks at each token once.
fn has_merge(parser: &Parser) -> bool {
    let mut depth = 0usize;
    let mut before = &Token::EOF;
    for at in parser.index().. {
        let token = &parser.token_at(at).token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::EOF | Token::SemiColon => break,
            Token::Whitespace(_) => continue,
            _ if depth == 0 && keyword(token) == Keyword::INTO && is_word(before, "merge") => {
                return true;
            }
            _ => {}
        }
        before = token;
    }
    false
}

/// Parses `WITH name AS (…), … MERGE …`, whose first word was taken.
fn merge_with(parser: &mut Parser) -> Parse<Statement> {
    let with = With {
        with_token: AttachedToken(parser.get_current_token().clone()),
        recursive: parser.parse_keyword(Keyword::RECURSIVE),
        cte_tables: parser.parse_comma_separated(Parser::parse_cte)?,
    };
    // The word that was looked for.
    parser.next_token();
    let query = Query {
        with: Some(with),
        body: Box::new(SetExpr::Merge(merge(parser)?)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    Ok(Statement::Query(Box::new(query)))
}

/// Refuses an object of a kind that other databases have, such as `CREATE SEQUENCE`.
fn refuse_object(parser: &mut Parser, verb: &str) -> Parse<Statement> {
    let kind = parser.next_token();
    if FOREIGN_OBJECTS.contains(&keyword(&kind.token)) {
        return Err(Refusal::Unsupported(format!("{verb} {}", upper(&kind))));
    }
    Ok(parser.expected(&format!("TABLE, VIEW or INDEX after {verb}"), kind)?)
}

/// Parses `CREATE TABLE`, `CREATE VIEW` or `CREATE INDEX`. The binder refuses what a modifier asks
/// for.
fn create(parser: &mut Parser) -> Parse<Statement> {
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let or_alter = parser.parse_keywords(&[Keyword::OR, Keyword::ALTER]);
    let global = parser
        .parse_one_of_keywords(&[Keyword::LOCAL, Keyword::GLOBAL])
        .map(|scope| scope == Keyword::GLOBAL);
    let transient = parser.parse_keyword(Keyword::TRANSIENT);
    let temporary = parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]).is_some();
    let volatile = parser.parse_keyword(Keyword::VOLATILE);
    let unlogged = parser.parse_keyword(Keyword::UNLOGGED);
    if parser.parse_keyword(Keyword::TABLE) {
        let mut table = create_table(parser)?;
        (table.or_replace, table.temporary, table.unlogged) = (or_replace, temporary, unlogged);
        (table.global, table.transient, table.volatile) = (global, transient, volatile);
        return Ok(table.into());
    }
    match keyword(&parser.peek_token_ref().token) {
        Keyword::VIEW | Keyword::MATERIALIZED | Keyword::SECURE => {
            Ok(parser.parse_create_view(or_alter, or_replace, temporary, None)?.into())
        }
        Keyword::ALGORITHM | Keyword::DEFINER | Keyword::SQL => {
            Err(Refusal::Unsupported("this form of CREATE VIEW".into()))
        }
        Keyword::INDEX | Keyword::UNIQUE if or_replace => {
            Err(Refusal::Unsupported("CREATE OR REPLACE INDEX".into()))
        }
        Keyword::INDEX | Keyword::UNIQUE => {
            let unique = parser.parse_keyword(Keyword::UNIQUE);
            parser.expect_keyword_is(Keyword::INDEX)?;
            Ok(parser.parse_create_index(unique)?.into())
        }
        _ => refuse_object(parser, "CREATE"),
    }
}

/// Parses `DROP [TEMPORARY] {TABLE | VIEW | INDEX} [IF EXISTS] name, … [CASCADE | RESTRICT] [ON
/// table]`.
fn drop_objects(parser: &mut Parser) -> Parse<Statement> {
    let temporary = parser.parse_keyword(Keyword::TEMPORARY);
    let kinds = [Keyword::TABLE, Keyword::VIEW, Keyword::INDEX];
    let object_type = match parser.parse_one_of_keywords(&kinds) {
        Some(Keyword::TABLE) => ObjectType::Table,
        Some(Keyword::VIEW) => ObjectType::View,
        Some(_) => ObjectType::Index,
        None => return refuse_object(parser, "DROP"),
    };
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    let cascade = parser.parse_keyword(Keyword::CASCADE);
    let restrict = !cascade && parser.parse_keyword(Keyword::RESTRICT);
    let purge = parser.parse_keyword(Keyword::PURGE);
    let on = parser.parse_keyword(Keyword::ON);
    let table = on.then(|| parser.parse_object_name(false)).transpose()?;
    if temporary && object_type == ObjectType::Index {
        return Err(Refusal::Unsupported("DROP TEMPORARY INDEX".into()));
    }
    if table.is_some() && object_type != ObjectType::Index {
        return Err(Refusal::Unsupported("DROP … ON of anything but an index".into()));
    }
    Ok(Statement::Drop {
        object_type,
        if_exists,
        names,
        cascade,
        restrict,
        purge,
        temporary,
        table,
    })
}

fn alter(parser: &mut Parser) -> Parse<Statement> {
    if parser.parse_keyword(Keyword::TABLE) {
        return alter_table(parser);
    }
    refuse_object(parser, "ALTER")
}

/// Parses `SET [SESSION | LOCAL | GLOBAL] name {= | TO} value, …`.
fn set(parser: &mut Parser) -> Parse<Statement> {
    use sqlparser::ast::ContextModifier as Scope;
    let scopes = [Keyword::SESSION, Keyword::LOCAL, Keyword::GLOBAL];
    let scope = parser.parse_one_of_keywords(&scopes).map(|word| match word {
        Keyword::LOCAL => Scope::Local,
        Keyword::GLOBAL => Scope::Global,
        _ => Scope::Session,
    });
    // MySQL's `SET NAMES utf8mb4`, and PostgreSQL's `SET TIME ZONE 'UTC'`.
    let name = match () {
        () if parser.parse_keyword(Keyword::NAMES) => Some("names"),
        () if parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) => Some("time_zone"),
        () => None,
    };
    if let Some(name) = name {
        let variable = ObjectName::from(vec![Ident::new(name)]);
        let values = vec![parser.parse_expr()?];
        return Ok(Set::SingleAssignment { scope, hivevar: false, variable, values }.into());
    }
    let [_, after] = parser.peek_tokens_ref();
    let assigns = matches!(after.token, Token::Eq | Token::Period | Token::EOF | Token::SemiColon)
        || keyword(&after.token) == Keyword::TO;
    if !assigns {
        return Err(Refusal::Unsupported("this form of SET".into()));
    }
    let variable = parser.parse_object_name(false)?;
    if !parser.consume_token(&Token::Eq) {
        parser.expect_keyword_is(Keyword::TO)?;
    }
    let values = parser.parse_comma_separated(Parser::parse_expr)?;
    Ok(Set::SingleAssignment { scope, hivevar: false, variable, values }.into())
}

/// Parses MySQL's `LOCK TABLES t WRITE, …` or `UNLOCK TABLES`, whose words were taken. Dumps have them around the rows
/// of each table.
fn lock_tables(parser: &mut Parser, verb: Keyword) -> Statement {
    if verb == Keyword::UNLOCK {
        return Statement::UnlockTables;
    }
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        parser.next_token();
    }
    Statement::LockTables { tables: Vec::new() }
}

/// Parses SQLite's `PRAGMA [schema.]name [= value | (value)]`, whose first word was taken. A value may be a name.
fn pragma(parser: &mut Parser) -> Result<Statement, ParserError> {
    let name = parser.parse_object_name(false)?;
    let is_eq = parser.consume_token(&Token::Eq);
    let in_parentheses = !is_eq && parser.consume_token(&Token::LParen);
    let mut value = None;
    if is_eq || in_parentheses {
        let minus = parser.consume_token(&Token::Minus);
        let token = parser.next_token();
        value = Some(match token.token {
            Token::Word(word) => Value::SingleQuotedString(word.value),
            Token::SingleQuotedString(text) => Value::SingleQuotedString(text),
            Token::Number(number, _) if minus => Value::Number(format!("-{number}"), false),
            Token::Number(number, _) => Value::Number(number, false),
            _ => return parser.expected("a value of a pragma", token),
        });
    }
    if in_parentheses {
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Statement::Pragma { name, value: value.map(|value| value.with_empty_span()), is_eq })
}

/// Parses what follows `EXPLAIN`, `DESCRIBE` or `DESC`: `[QUERY PLAN | ANALYZE] [VERBOSE]
/// statement`, or the name of a table. Reports syntax errors of the inner statement as they are.
fn explain(parser: &mut Parser) -> Parse<Statement> {
    if names_table(parser) {
        return Ok(Statement::ExplainTable {
            describe_alias: DescribeAlias::Describe,
            hive_format: None,
            has_table_keyword: false,
            table_name: parser.parse_object_name(false)?,
        });
    }
    let analyze = !parser.parse_keywords(&[Keyword::QUERY, Keyword::PLAN])
        && parser.parse_keyword(Keyword::ANALYZE);
    if parser.parse_keyword(Keyword::VERBOSE) {
        return Err(Refusal::Unsupported("EXPLAIN VERBOSE".into()));
    }
    let [word, option] = parser.peek_tokens_ref();
    let options = [Keyword::ANALYZE, Keyword::FORMAT, Keyword::VERBOSE];
    if keyword(&word.token) == Keyword::FORMAT {
        return Err(Refusal::Unsupported("EXPLAIN FORMAT".into()));
    }
    if word.token == Token::LParen && options.contains(&keyword(&option.token)) {
        return Err(Refusal::Unsupported("EXPLAIN with options".into()));
    }
    explained(parser, analyze)
}

/// Whether a name comes next, and no statement. Only statements about transactions have one word.
fn names_table(parser: &Parser) -> bool {
    let [word, after] = parser.peek_tokens_ref();
    let ends = matches!(after.token, Token::EOF | Token::SemiColon);
    let is_statement = matches!(
        keyword(&word.token),
        Keyword::BEGIN | Keyword::COMMIT | Keyword::END | Keyword::ROLLBACK | Keyword::ABORT
    );
    after.token == Token::Period || ends && !is_statement
}

fn explained(parser: &mut Parser, analyze: bool) -> Parse<Statement> {
    let explains = matches!(
        keyword(&parser.peek_token_ref().token),
        Keyword::EXPLAIN | Keyword::DESCRIBE | Keyword::DESC
    );
    if explains || starts_profile(parser) {
        let message = "EXPLAIN and PROFILE cannot be nested".to_string();
        return Err(Refusal::Syntax(ParserError::ParserError(message)));
    }
    Ok(Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        verbose: false,
        query_plan: false,
        estimate: false,
        statement: Box::new(statement(parser)?),
        format: None,
        options: None,
    })
}

/// Whether `PROFILE statement` comes next, which is `EXPLAIN ANALYZE`.
fn starts_profile(parser: &Parser) -> bool {
    is_word(&parser.peek_token_ref().token, "profile")
}

/// Parses MySQL's `DELETE t FROM t JOIN u …`, if that comes next.
fn deleted_from(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let [delete, table, from] = parser.peek_tokens_ref();
    let is_form = keyword(&delete.token) == Keyword::DELETE
        && keyword(&table.token) != Keyword::FROM
        && keyword(&from.token) == Keyword::FROM;
    let Token::Word(word) = &table.token else { return None };
    if !is_form {
        return None;
    }
    let table = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(word.value.clone()))]);
    let token = parser.next_token();
    parser.next_token();
    Some(parser.parse_delete(token).map(|statement| match statement {
        Statement::Delete(delete) => Statement::Delete(Delete { tables: vec![table], ..delete }),
        other => other,
    }))
}

/// Parses `WAIT FOR POSITION n [TIMEOUT seconds]`, whose first word was taken. The syntax tree has both as a tuple.
fn wait_for(parser: &mut Parser) -> Result<Statement, ParserError> {
    parser.expect_keyword_is(Keyword::FOR)?;
    if !take_word(parser, "position") {
        return parser.expected("POSITION after WAIT FOR", parser.peek_token());
    }
    let mut values = vec![parser.parse_expr()?];
    if take_word(parser, "timeout") {
        values.push(parser.parse_expr()?);
    }
    let (wait_type, expr) = (WaitForType::Delay, Expr::Tuple(values));
    Ok(Statement::WaitFor(WaitForStatement { wait_type, expr }))
}

/// Parses `OPTIMIZE TABLE t [FULL | FLUSH | WARM BLOB CACHE …]`. The syntax tree represents `FULL` as `FINAL`, and
/// `WARM` by the columns to warm, as those of a `ZORDER`; all if there are none. The index is the cluster.
fn optimize_table(parser: &mut Parser) -> Result<Statement, ParserError> {
    let has_table_keyword = parser.parse_keyword(Keyword::TABLE);
    let name = parser.parse_object_name(false)?;
    let include_final = parser.parse_keyword(Keyword::FULL);
    let (mut on_cluster, mut predicate, mut zorder) = (None, None, None);
    if !include_final && take_word(parser, "flush") {
    } else if !include_final && take_word(parser, "warm") {
        for word in ["blob", "cache"] {
            if !take_word(parser, word) {
                return parser.expected("BLOB CACHE after WARM", parser.peek_token());
            }
        }
        let mut columns = Vec::new();
        if parser.parse_keyword(Keyword::FOR) {
            if parser.parse_keyword(Keyword::INDEX) {
                on_cluster = Some(parser.parse_identifier()?);
            } else if parser.parse_keyword(Keyword::COLUMN) {
                parser.expect_token(&Token::LParen)?;
                columns = parser.parse_comma_separated(Parser::parse_expr)?;
                parser.expect_token(&Token::RParen)?;
            } else {
                return parser.expected("INDEX or COLUMN after FOR", parser.peek_token());
            }
        }
        if parser.parse_keyword(Keyword::WHERE) {
            predicate = Some(parser.parse_expr()?);
        }
        zorder = Some(columns);
    }
    Ok(Statement::OptimizeTable {
        name,
        has_table_keyword,
        on_cluster,
        partition: None,
        include_final,
        deduplicate: None,
        predicate,
        zorder,
    })
}

/// Takes the next token if it is this word, without quotes.
fn take_word(parser: &mut Parser, word: &str) -> bool {
    let is_next = is_word(&parser.peek_token_ref().token, word);
    if is_next {
        parser.next_token();
    }
    is_next
}
