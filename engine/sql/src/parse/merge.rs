//! `MERGE`, in the forms of PostgreSQL and DuckDB. The parser's own function is not used: it lacks
//! `ERROR` and `BY NAME`, and what only it reaches is not part of the WebAssembly module.
//!
//! The syntax tree has no place for some of these. `UPDATE BY NAME` has a `delete_predicate`, `ERROR`
//! is an `UPDATE` with the message as its `update_predicate`, and `INSERT BY NAME` is an `INSERT ROW`.
//! `USING (a, b)` is written out as equalities.

use super::refusal::{Parse, Refusal, keyword};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr,
    MergeInsertKind, MergeUpdateExpr, MergeUpdateKind, ObjectNamePart, OutputClause, Parens,
    SelectItem, Statement, TableFactor, Value, Values,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Parses `[INTO] table USING source {ON condition | USING (columns)} WHEN …`, after `MERGE`.
pub(super) fn merge(parser: &mut Parser) -> Parse<Statement> {
    let into = parser.parse_keyword(Keyword::INTO);
    let table = parser.parse_table_factor()?;
    parser.expect_keyword_is(Keyword::USING)?;
    let source = parser.parse_table_factor()?;
    let on = if parser.parse_keyword(Keyword::USING) {
        same_columns(parser, &table, &source)?
    } else {
        parser.expect_keyword_is(Keyword::ON)?;
        parser.parse_expr()?
    };
    let mut clauses = Vec::new();
    while parser.parse_keyword(Keyword::WHEN) {
        clauses.push(clause(parser)?);
    }
    if clauses.is_empty() {
        let next = parser.peek_token_ref().clone();
        return Ok(parser.expected("WHEN MATCHED or WHEN NOT MATCHED", next)?);
    }
    let output = match parser.parse_keyword(Keyword::RETURNING) {
        true => Some(OutputClause::Returning {
            returning_token: AttachedToken::empty(),
            select_items: returned(parser.parse_comma_separated(Parser::parse_select_item)?),
        }),
        false => None,
    };
    Ok(Statement::Merge(Merge {
        merge_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        into,
        table,
        source,
        on: Box::new(on),
        clauses,
        output,
    }))
}

/// Parses the columns of `USING`, which both tables have.
fn same_columns(parser: &mut Parser, table: &TableFactor, source: &TableFactor) -> Parse<Expr> {
    let columns = parser.parse_parenthesized_column_list(IsOptional::Mandatory, false)?;
    let (Some(left), Some(right)) = (shown(table), shown(source)) else {
        return Err(Refusal::Unsupported(
            "MERGE … USING (columns) of a source without a name".into(),
        ));
    };
    let equal = |column: Ident| Expr::BinaryOp {
        left: Box::new(Expr::CompoundIdentifier(vec![left.clone(), column.clone()])),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::CompoundIdentifier(vec![right.clone(), column])),
    };
    let both = |all, next| Expr::BinaryOp {
        left: Box::new(all),
        op: BinaryOperator::And,
        right: Box::new(next),
    };
    let all = columns.into_iter().map(equal).reduce(both);
    all.ok_or_else(|| ParserError::ParserError("USING names no column".into()).into())
}

/// The name of a table in a statement.
fn shown(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Some(ident.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Parses `[NOT] MATCHED [BY {SOURCE | TARGET}] [AND condition] THEN action`, after `WHEN`.
fn clause(parser: &mut Parser) -> Parse<MergeClause> {
    let not = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword_is(Keyword::MATCHED)?;
    let clause_kind = if !not {
        MergeClauseKind::Matched
    } else if parser.parse_keywords(&[Keyword::BY, Keyword::SOURCE]) {
        MergeClauseKind::NotMatchedBySource
    } else if parser.parse_keywords(&[Keyword::BY, Keyword::TARGET]) {
        MergeClauseKind::NotMatchedByTarget
    } else {
        MergeClauseKind::NotMatched
    };
    let predicate = match parser.parse_keyword(Keyword::AND) {
        true => Some(parser.parse_expr()?),
        false => None,
    };
    parser.expect_keyword_is(Keyword::THEN)?;
    let action = action(parser)?;
    Ok(MergeClause { when_token: AttachedToken::empty(), clause_kind, predicate, action })
}

fn action(parser: &mut Parser) -> Parse<MergeAction> {
    let first = parser.next_token();
    match keyword(&first.token) {
        Keyword::INSERT => Ok(MergeAction::Insert(insert(parser)?)),
        Keyword::UPDATE => Ok(MergeAction::Update(update(parser)?)),
        Keyword::DELETE => Ok(MergeAction::Delete { delete_token: AttachedToken::empty() }),
        Keyword::DO => {
            parser.expect_keyword_is(Keyword::NOTHING)?;
            Ok(MergeAction::DoNothing {
                do_token: AttachedToken::empty(),
                nothing_token: AttachedToken::empty(),
            })
        }
        Keyword::ERROR => Ok(MergeAction::Update(MergeUpdateExpr {
            update_token: AttachedToken::empty(),
            kind: MergeUpdateKind::Set(Vec::new()),
            update_predicate: Some(match ends_action(&parser.peek_token_ref().token) {
                true => Expr::value(Value::Null),
                false => parser.parse_expr()?,
            }),
            delete_predicate: None,
        })),
        _ => Ok(parser.expected("INSERT, UPDATE, DELETE, DO NOTHING or ERROR after THEN", first)?),
    }
}

/// Whether an action has ended.
fn ends_action(token: &Token) -> bool {
    matches!(token, Token::EOF | Token::SemiColon)
        || matches!(keyword(token), Keyword::WHEN | Keyword::RETURNING)
}

/// Parses `[BY {NAME | POSITION}] [*]`; whether it is by name.
fn by_name(parser: &mut Parser) -> Parse<bool> {
    let mut is_by_name = false;
    if parser.parse_keyword(Keyword::BY) {
        is_by_name = parser.parse_keyword(Keyword::NAME);
        if !is_by_name {
            parser.expect_keyword_is(Keyword::POSITION)?;
        }
    }
    let _ = parser.consume_token(&Token::Mul);
    Ok(is_by_name)
}

fn update(parser: &mut Parser) -> Parse<MergeUpdateExpr> {
    let (mut kind, mut is_by_name) = (MergeUpdateKind::Wildcard, false);
    if !parser.parse_keyword(Keyword::SET) {
        is_by_name = by_name(parser)?;
    } else if !parser.consume_token(&Token::Mul) {
        kind = MergeUpdateKind::Set(parser.parse_comma_separated(Parser::parse_assignment)?);
    }
    Ok(MergeUpdateExpr {
        update_token: AttachedToken::empty(),
        kind,
        update_predicate: None,
        delete_predicate: is_by_name.then(|| Expr::value(Value::Null)),
    })
}

fn insert(parser: &mut Parser) -> Parse<MergeInsertExpr> {
    let mut columns = Vec::new();
    if parser.peek_token_ref().token == Token::LParen {
        let names = parser.parse_parenthesized_column_list(IsOptional::Mandatory, false)?;
        columns.extend(names.into_iter().map(|name| vec![name].into()));
    }
    let rows =
        |rows| MergeInsertKind::Values(Values { explicit_row: false, value_keyword: false, rows });
    let kind = if parser.parse_keywords(&[Keyword::DEFAULT, Keyword::VALUES]) {
        rows(Vec::new())
    } else if parser.parse_keyword(Keyword::VALUES) {
        parser.expect_token(&Token::LParen)?;
        let content = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        rows(vec![Parens::with_empty_span(content)])
    } else if by_name(parser)? {
        MergeInsertKind::Row
    } else {
        MergeInsertKind::Wildcard
    };
    Ok(MergeInsertExpr {
        insert_token: AttachedToken::empty(),
        columns,
        kind_token: AttachedToken::empty(),
        kind,
        insert_predicate: None,
    })
}

/// The items of `RETURNING`, with PostgreSQL's `merge_action()` as the column that it stands for.
fn returned(mut items: Vec<SelectItem>) -> Vec<SelectItem> {
    for item in &mut items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && let Expr::Function(call) = expr
            && let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice()
            && name.value.eq_ignore_ascii_case("merge_action")
        {
            *expr = Expr::Identifier(name.clone());
        }
    }
    items
}
