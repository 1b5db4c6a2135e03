//! `ALTER TABLE`. The parser's own function reads the changes of all databases, and costs a browser
//! 7 KB of compressed code; changes that the binder refuses are recognised here by their first word.

use super::columns;
use super::data_type::data_type;
use super::refusal::{Parse, Refusal, keyword, upper};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterColumnOperation as ColumnChange, AlterTable, AlterTableOperation as Change, ColumnDef,
    DropBehavior, MySQLColumnPosition, RenameTableNameKind, Statement,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// First words of changes that other databases make.
const FOREIGN_CHANGES: &[Keyword] = &[
    Keyword::ALGORITHM,
    Keyword::ATTACH,
    Keyword::CHANGE,
    Keyword::CLEAR,
    Keyword::CLUSTER,
    Keyword::DETACH,
    Keyword::DISABLE,
    Keyword::ENABLE,
    Keyword::FORCE,
    Keyword::FREEZE,
    Keyword::LOCK,
    Keyword::MATERIALIZE,
    Keyword::NO,
    Keyword::OWNER,
    Keyword::PARTITION,
    Keyword::REPLICA,
    Keyword::RESUME,
    Keyword::SET,
    Keyword::SUSPEND,
    Keyword::SWAP,
    Keyword::UNFREEZE,
    Keyword::VALIDATE,
];

/// Parses what follows `ALTER TABLE`: `[IF EXISTS] name change, …`.
pub(super) fn alter_table(parser: &mut Parser) -> Parse<Statement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    if parser.parse_keyword(Keyword::ONLY) {
        return Err(this_form());
    }
    let name = parser.parse_object_name(false)?;
    if parser.parse_keywords(&[Keyword::ON, Keyword::CLUSTER]) {
        return Err(this_form());
    }
    let mut operations = vec![change(parser)?];
    while parser.consume_token(&Token::Comma) {
        operations.push(change(parser)?);
    }
    let sets_location = [Keyword::SET, Keyword::LOCATION];
    if parser.peek_keyword(Keyword::LOCATION) || parser.parse_keywords(&sets_location) {
        return Err(this_form());
    }
    let end_token = AttachedToken(parser.get_current_token().clone());
    Ok(AlterTable {
        name,
        if_exists,
        only: false,
        operations,
        location: None,
        on_cluster: None,
        table_type: None,
        end_token,
    }
    .into())
}

fn this_form() -> Refusal {
    Refusal::Unsupported("this form of ALTER TABLE".into())
}

fn refused(change: &str) -> Refusal {
    Refusal::Unsupported(format!("ALTER TABLE … {change}"))
}

fn change(parser: &mut Parser) -> Parse<Change> {
    let first = parser.next_token();
    match keyword(&first.token) {
        Keyword::ADD => add(parser),
        Keyword::DROP => dropped(parser),
        Keyword::RENAME => rename(parser),
        Keyword::ALTER => column(parser),
        Keyword::MODIFY => modified(parser),
        Keyword::AUTO_INCREMENT => {
            let equals = parser.consume_token(&Token::Eq);
            Ok(Change::AutoIncrement { equals, value: parser.parse_number_value()? })
        }
        other if FOREIGN_CHANGES.contains(&other) => Err(refused(&upper(&first))),
        _ => Ok(parser.expected("ADD, DROP, RENAME or ALTER after ALTER TABLE", first)?),
    }
}

/// Parses `ADD constraint` or `ADD [COLUMN] [IF NOT EXISTS] definition [FIRST | AFTER column]`.
fn add(parser: &mut Parser) -> Parse<Change> {
    if let Some(constraint) = parser.parse_optional_table_constraint()? {
        let not_valid = parser.parse_keywords(&[Keyword::NOT, Keyword::VALID]);
        return Ok(Change::AddConstraint { constraint, not_valid });
    }
    let absent = [Keyword::IF, Keyword::NOT, Keyword::EXISTS];
    let is_absent = parser.parse_keywords(&absent);
    let next = parser.peek_token_ref().clone();
    if matches!(keyword(&next.token), Keyword::PARTITION | Keyword::PROJECTION) {
        return Err(refused(&format!("ADD {}", upper(&next))));
    }
    let column_keyword = parser.parse_keyword(Keyword::COLUMN);
    let if_not_exists = parser.parse_keywords(&absent) || is_absent;
    let column_def = columns::column(parser)?;
    let column_position = place(parser)?;
    Ok(Change::AddColumn { column_keyword, if_not_exists, column_def, column_position })
}

/// Parses what follows `DROP`: `INDEX name`, `CONSTRAINT [IF EXISTS] name` or `[COLUMN] [IF EXISTS]
/// name`.
fn dropped(parser: &mut Parser) -> Parse<Change> {
    let exists = [Keyword::IF, Keyword::EXISTS];
    let foreign = [
        &[Keyword::PARTITION][..],
        &[Keyword::IF, Keyword::EXISTS, Keyword::PARTITION],
        &[Keyword::PROJECTION],
    ];
    if foreign.iter().any(|words| parser.parse_keywords(words)) {
        return Err(refused("DROP PARTITION"));
    }
    if parser.parse_keywords(&[Keyword::CLUSTERING, Keyword::KEY]) {
        return Err(refused("DROP CLUSTERING KEY"));
    }
    if parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
        return Err(refused("DROP PRIMARY KEY"));
    }
    if parser.parse_keywords(&[Keyword::FOREIGN, Keyword::KEY]) {
        return Ok(Change::DropForeignKey {
            name: parser.parse_identifier()?,
            drop_behavior: None,
        });
    }
    if parser.parse_keyword(Keyword::INDEX) {
        return Ok(Change::DropIndex { name: parser.parse_identifier()? });
    }
    if parser.parse_keyword(Keyword::CONSTRAINT) {
        let if_exists = parser.parse_keywords(&exists);
        let name = parser.parse_identifier()?;
        return Ok(Change::DropConstraint { if_exists, name, drop_behavior: behavior(parser) });
    }
    let has_column_keyword = parser.parse_keyword(Keyword::COLUMN);
    let if_exists = parser.parse_keywords(&exists);
    let column_names = vec![parser.parse_identifier()?];
    let drop_behavior = behavior(parser);
    Ok(Change::DropColumn { has_column_keyword, column_names, if_exists, drop_behavior })
}

fn behavior(parser: &mut Parser) -> Option<DropBehavior> {
    match parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT])? {
        Keyword::CASCADE => Some(DropBehavior::Cascade),
        _ => Some(DropBehavior::Restrict),
    }
}

/// Parses what follows `RENAME`: `{TO | AS} table` or `[COLUMN] name TO name`.
fn rename(parser: &mut Parser) -> Parse<Change> {
    if parser.parse_one_of_keywords(&[Keyword::TO, Keyword::AS]).is_some() {
        let table_name = RenameTableNameKind::To(parser.parse_object_name(false)?);
        return Ok(Change::RenameTable { table_name });
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let old_column_name = parser.parse_identifier()?;
    parser.expect_keyword_is(Keyword::TO)?;
    let new_column_name = parser.parse_identifier()?;
    Ok(Change::RenameColumn { old_column_name, new_column_name })
}

/// Parses what follows `MODIFY`: `[COLUMN] definition [FIRST | AFTER column]`.
fn modified(parser: &mut Parser) -> Parse<Change> {
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let ColumnDef { name: col_name, data_type, options } = columns::column(parser)?;
    let options = options.into_iter().map(|named| named.option).collect();
    Ok(Change::ModifyColumn { col_name, data_type, options, column_position: place(parser)? })
}

/// Parses `FIRST` or `AFTER column`, if that comes next.
fn place(parser: &mut Parser) -> Parse<Option<MySQLColumnPosition>> {
    if parser.parse_keyword(Keyword::FIRST) {
        return Ok(Some(MySQLColumnPosition::First));
    }
    match parser.parse_keyword(Keyword::AFTER) {
        true => Ok(Some(MySQLColumnPosition::After(parser.parse_identifier()?))),
        false => Ok(None),
    }
}

/// Parses what follows `ALTER`: `[COLUMN] name change`.
fn column(parser: &mut Parser) -> Parse<Change> {
    if parser.peek_keyword(Keyword::SORTKEY) {
        return Err(refused("ALTER SORTKEY"));
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let column_name = parser.parse_identifier()?;
    let op = if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        ColumnChange::SetNotNull
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::NOT, Keyword::NULL]) {
        ColumnChange::DropNotNull
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::DEFAULT]) {
        ColumnChange::SetDefault { value: parser.parse_expr()? }
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::DEFAULT]) {
        ColumnChange::DropDefault
    } else if parser.parse_keyword(Keyword::TYPE)
        || parser.parse_keywords(&[Keyword::SET, Keyword::DATA, Keyword::TYPE])
    {
        let data_type = data_type(parser)?;
        let using = match parser.parse_keyword(Keyword::USING) {
            true => Some(parser.parse_expr()?),
            false => None,
        };
        ColumnChange::SetDataType { data_type, using, had_set: false }
    } else if parser.parse_keywords(&[Keyword::ADD, Keyword::GENERATED]) {
        return Err(Refusal::Unsupported("ALTER COLUMN … ADD GENERATED".into()));
    } else {
        let next = parser.peek_token_ref().clone();
        return Ok(parser.expected("SET or DROP of NOT NULL or DEFAULT after ALTER COLUMN", next)?);
    };
    Ok(Change::AlterColumn { column_name, op })
}
