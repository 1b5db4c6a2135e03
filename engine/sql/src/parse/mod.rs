//! Parser: turns SQL text into syntax trees, with the text and the parameters of each statement.
//!
//! Invariants: text, nesting and operator chains are bounded before the recursive parser sees them,
//! so that no input can overflow the stack. Parameters in any syntax reach the binder as `$n`.
//! Cutting rows out of a text ([`literal_rows`]) never changes a result; errors are of the whole text.

mod alter;
mod columns;
mod create_table;
mod data_type;
mod dialect;
mod errors;
mod keyword_names;
pub(crate) mod literal_rows;
mod merge;
pub(crate) mod operator_words;
mod prefix;
mod refusal;
pub(crate) mod spelling;
mod statement;
pub(crate) mod tokens;

use dialect::{NacreDialect, free_names};
pub(crate) use errors::position;
use errors::{MAX_NESTING, MAX_RECURSION, nesting_error, shown, syntax_error};
use literal_rows::{Cut, LiteralRows};
use nacre_types::invariant::broken;
use nacre_types::{Error, Result, limits};
use refusal::Refusal;
use sqlparser::ast::{Expr, Query, SetExpr, Statement, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Whitespace};
use std::sync::Arc;

/// Maximum parser stack for nested calls and subqueries, beyond that of plain nesting, in units of
/// about 4 KiB.
const MAX_WEIGHT: u32 = 80;
/// Maximum number of operators in a chain such as `a + b + c …`, not counting `AND` and `OR`.
const MAX_CHAIN: u32 = 400;
/// Maximum number of `AND`s and `OR`s in a chain.
const MAX_LOGICAL_CHAIN: u32 = 6_000;
/// Maximum number of parameters in one SQL text.
const MAX_PARAMETERS: usize = 65_535;

/// What is known of a statement after parsing.
#[derive(Debug)]
enum Tree {
    Statement(Box<Statement>),
    /// The name of a known statement that is not supported. Statements before it run.
    Unsupported(String),
    /// `PREPARE name AS`, and where in the text the statement begins that gets the name. It is
    /// parsed when the `PREPARE` runs, with parameters of its own.
    Prepare {
        name: String,
        from: usize,
    },
}

/// One parsed statement.
#[derive(Debug)]
pub struct Parsed {
    tree: Tree,
    text: String,
    parameter_names: Arc<[Option<String>]>,
    /// Rows of an insert after the first, which are in the text but not in the tree.
    literal_rows: Option<LiteralRows>,
}

impl Parsed {
    /// Returns the syntax tree, or an error for a known statement that is not supported.
    pub(crate) fn statement(&self) -> Result<&Statement> {
        match &self.tree {
            Tree::Statement(statement) => Ok(statement),
            Tree::Unsupported(name) => Err(Error::unsupported(format!("{name} is not supported"))),
            Tree::Prepare { .. } => Err(Error::unsupported("PREPARE here is not supported")),
        }
    }

    /// The name and the text of a statement that a `PREPARE` names.
    pub(crate) fn named_statement(&self) -> Option<(&str, &str)> {
        let Tree::Prepare { name, from } = &self.tree else { return None };
        Some((name, self.text.get(*from..).unwrap_or_default()))
    }

    /// Whether it runs a statement that a `PREPARE` has named.
    pub fn is_execute(&self) -> bool {
        matches!(&self.tree, Tree::Statement(s) if matches!(**s, Statement::Execute { .. }))
    }

    pub(crate) fn literal_rows(&self) -> Option<&LiteralRows> {
        self.literal_rows.as_ref()
    }

    /// The text of the statement, without the semicolon.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One entry per parameter, in order of position: the name of `:name`, `None` for `?` and `$n`.
    /// Positions are numbered across all statements of one SQL text, and every statement lists all
    /// of them.
    pub fn parameter_names(&self) -> &[Option<String>] {
        &self.parameter_names
    }

    /// Whether the statement commits or rolls back the whole transaction: `COMMIT`, `END`,
    /// `ROLLBACK` or `ABORT`. `ROLLBACK TO SAVEPOINT` does not.
    fn ends_transaction(&self) -> bool {
        matches!(
            self.statement(),
            Ok(Statement::Commit { .. } | Statement::Rollback { savepoint: None, .. })
        )
    }
}

/// Takes long operator chains, which are left-deep trees, apart in a loop: dropping them
/// recursively could overflow the stack.
impl Drop for Parsed {
    fn drop(&mut self) {
        let Tree::Statement(statement) = &mut self.tree else { return };
        match statement.as_mut() {
            Statement::Query(query) => {
                if let SetExpr::Select(select) = query.body.as_mut() {
                    dismantle(&mut select.selection);
                }
            }
            Statement::Update(update) => dismantle(&mut update.selection),
            Statement::Delete(delete) => dismantle(&mut delete.selection),
            _ => {}
        }
    }
}

fn dismantle(root: &mut Option<Expr>) {
    let mut next = root.take();
    while let Some(Expr::BinaryOp { left, .. }) = next {
        next = Some(*left);
    }
}

/// Parses an SQL text with any number of statements.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    if sql.len() > limits::MAX_SQL_BYTES {
        return Err(Error::limit(format!(
            "SQL text is longer than {} bytes",
            limits::MAX_SQL_BYTES
        )));
    }
    let cuts = literal_rows::find(sql);
    if !cuts.is_empty()
        && let Ok(Some(parsed)) = parse_without(sql, &cuts)
    {
        return Ok(parsed);
    }
    parse_whole(sql)
}

/// Whether a statement of an SQL text commits or rolls back the whole transaction. A text that does
/// not parse runs no statement, so it ends no transaction.
pub fn ends_transaction(sql: &str) -> bool {
    may_end_transaction(sql)
        && parse(sql).is_ok_and(|statements| statements.iter().any(Parsed::ends_transaction))
}

/// Whether a text contains the first word of a statement that may end a transaction. Most texts do
/// not, and need no parsing.
fn may_end_transaction(sql: &str) -> bool {
    let bytes = sql.as_bytes();
    let starts_with = |at: usize, word: &str| {
        bytes.get(at..at + word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
    };
    (0..bytes.len()).any(|at| match bytes[at].to_ascii_lowercase() {
        b'c' => starts_with(at, "commit"),
        b'e' => starts_with(at, "end"),
        b'a' => starts_with(at, "abort"),
        b'r' => starts_with(at, "rollback"),
        _ => false,
    })
}

/// Like [`parse`], without cutting rows out.
pub(crate) fn parse_whole(sql: &str) -> Result<Vec<Parsed>> {
    let Some(parsed) = parse_without(sql, &[])? else {
        broken(format_args!("a text without cuts has one that does not fit"))
    };
    Ok(parsed)
}

/// Parses a text without its cuts. Returns `None` if a cut does not directly follow the first row
/// of an insert whose source is nothing but rows.
fn parse_without(sql: &str, cuts: &[Cut]) -> Result<Option<Vec<Parsed>>> {
    let (tokens, mut lines) = tokenize(sql, cuts)?;
    check_chains(&tokens)?;
    let mut tokens = spelling::spelled(tokens).map_err(|(error, at)| error.at(position(at)))?;
    let foreign = free_names(&mut tokens);
    let parameter_names: Arc<[Option<String>]> = number_parameters(&mut tokens)?.into();
    let ends: Vec<Location> = tokens.iter().map(|t| t.span.end).collect();
    let mut parser = Parser::new(&NacreDialect)
        .with_recursion_limit(MAX_RECURSION)
        .with_tokens_with_locations(tokens);
    let mut cuts = cuts.iter();
    let mut next_cut = cuts.next();
    let mut parsed = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        let start = parser.peek_token_ref();
        if start.token == Token::EOF {
            return Ok(next_cut.is_none().then_some(parsed));
        }
        let (start, index) = (start.span.start, parser.index());
        let mut named_at = None;
        let taken = match (statement::prepare(&mut parser), foreign.get(&index)) {
            (Ok(None), Some(name)) => Err(Refusal::Unsupported((*name).into())),
            (Ok(None), None) => statement::statement(&mut parser),
            (Ok(Some((name, at))), _) => {
                named_at = Some((name, at));
                skip_statement(&mut parser);
                Err(Refusal::Unsupported("PREPARE".into()))
            }
            (Err(refusal), _) => Err(refusal),
        };
        let mut tree = match taken {
            Ok(statement) => Tree::Statement(Box::new(statement)),
            Err(Refusal::Unsupported(name)) => {
                skip_statement(&mut parser);
                Tree::Unsupported(name)
            }
            Err(Refusal::Syntax(error)) => {
                return Err(syntax_error(error, start, ends[ends.len() - 1]));
            }
        };
        // The parser may have gone past the last token to see that nothing follows.
        let end = ends[(parser.index() - 1).min(ends.len() - 1)];
        let after = parser.peek_token_ref();
        if !matches!(after.token, Token::SemiColon | Token::EOF) {
            let message = format!("unexpected {} after the statement", shown(&after.token));
            return Err(Error::syntax(message).at(position(after.span.start)));
        }
        let from = lines.offset(start);
        if let Some((name, at)) = named_at {
            tree = Tree::Prepare { name, from: lines.offset(at) - from };
        }
        let (mut rows, mut least) = (None, from);
        if let Some(cut) = next_cut
            && let Some(row) = end_of_first_row(&tree)
            && lines.offset(row) == cut.start
        {
            rows = Some(LiteralRows::new(cut.start - from..cut.end - from, start));
            least = cut.end;
            next_cut = cuts.next();
        }
        let to = lines.offset(end).max(least);
        let text = sql[from..to].trim_end().to_string();
        parsed.push(Parsed {
            tree,
            text,
            parameter_names: parameter_names.clone(),
            literal_rows: rows,
        });
    }
}

/// Skips the tokens up to the separator.
fn skip_statement(parser: &mut Parser) {
    while !matches!(parser.peek_token_ref().token, Token::SemiColon | Token::EOF) {
        parser.next_token();
    }
}

/// Returns the end of the first row of an `INSERT … VALUES`.
fn end_of_first_row(tree: &Tree) -> Option<Location> {
    let Tree::Statement(statement) = tree else { return None };
    let Statement::Insert(insert) = statement.as_ref() else { return None };
    let query = insert.source.as_deref().filter(|query| is_rows_only(query))?;
    let SetExpr::Values(values) = query.body.as_ref() else { return None };
    Some(values.rows.first()?.closing_token.0.span.end)
}

/// Whether a query consists of its body alone.
pub(crate) fn is_rows_only(query: &Query) -> bool {
    is_plain(query) && query.limit_clause.is_none()
}

/// Whether a query consists of its body and `LIMIT`.
pub(crate) fn is_plain(query: &Query) -> bool {
    // Every field is named, so that one the parser adds is not overlooked.
    let Query {
        with,
        body: _,
        order_by,
        limit_clause: _,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    with.is_none()
        && order_by.is_none()
        && fetch.is_none()
        && locks.is_empty()
        && for_clause.is_none()
        && settings.is_none()
        && format_clause.is_none()
        && pipe_operators.is_empty()
}

/// Tokenises the text between the cuts. Locations are those in the whole text.
fn tokenize<'a>(sql: &'a str, cuts: &[Cut]) -> Result<(Vec<TokenWithSpan>, Lines<'a>)> {
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    let mut known = vec![(Location::new(1, 1), 0)];
    for to in cuts.iter().map(|cut| cut.start).chain([sql.len()]) {
        let (base, from) = known[known.len() - 1];
        let shift = |at: Location| match at.line {
            1 => Location::new(base.line, base.column + at.column - 1),
            line => Location::new(base.line + line - 1, at.column),
        };
        let span = |t: &TokenWithSpan| Span::new(shift(t.span.start), shift(t.span.end));
        Tokenizer::new(&NacreDialect, &sql[from..to])
            .tokenize_with_location_into_buf_with_mapper(&mut tokens, |t| TokenWithSpan {
                span: span(&t),
                ..t
            })
            .map_err(|e| Error::syntax(e.message).at(position(shift(e.location))))?;
        if let Some(cut) = cuts.get(known.len() - 1) {
            let mut place = tokens.last().map_or(base, |t| t.span.end);
            sql[cut.clone()].chars().for_each(|char| place = literal_rows::after(place, char));
            known.push((place, cut.end));
        }
    }
    tokens.retain(|t| !matches!(t.token, Token::Whitespace(_)));
    Ok((tokens, Lines { sql, location: Location::new(1, 1), offset: 0, known: known.into_iter() }))
}

/// Bounds the nesting and the length of operator chains, which become left-deep trees.
fn check_chains(tokens: &[TokenWithSpan]) -> Result<()> {
    // One entry per open parenthesis or CASE: the number of operators and of logical operators
    // since the last separator, and whether it is a CASE.
    let mut levels: Vec<(u32, u32, bool)> = vec![(0, 0, false)];
    let mut weights: Vec<u32> = Vec::new();
    let mut weight = 0;
    for (at, t) in tokens.iter().enumerate() {
        let Some(top) = levels.last_mut() else { return Ok(()) };
        match &t.token {
            Token::LParen | Token::LBracket => {
                top.0 += 1;
                let own =
                    open_weight(at.checked_sub(1).and_then(|b| tokens.get(b)), tokens.get(at + 1));
                weight += own;
                if levels.len() > MAX_NESTING || weight > MAX_WEIGHT {
                    return Err(nesting_error(t.span.start));
                }
                weights.push(own);
                levels.push((0, 0, false));
            }
            Token::RParen | Token::RBracket => {
                while levels.len() > 1 && levels.pop().is_some_and(|l| l.2) {}
                weight -= weights.pop().unwrap_or(0);
            }
            Token::Comma => {
                (top.0, top.1) = (0, 0);
            }
            Token::SemiColon => {
                levels = vec![(0, 0, false)];
                weights.clear();
                weight = 0;
            }
            Token::Word(w) => match w.keyword {
                Keyword::CASE => {
                    if levels.len() > MAX_NESTING {
                        return Err(nesting_error(t.span.start));
                    }
                    levels.push((0, 0, true));
                }
                Keyword::END
                    if top.2 => {
                        levels.pop();
                    }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if top.2 => (top.0, top.1) = (0, 0),
                Keyword::AND | Keyword::OR | Keyword::XOR => {
                    top.0 = 0;
                    top.1 += 1;
                }
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                    top.0 += 1;
                }
                Keyword::IS | Keyword::LIKE | Keyword::ILIKE | Keyword::IN | Keyword::BETWEEN | Keyword::DIV => {
                    top.0 += 1
                }
                Keyword::NOT | Keyword::COLLATE | Keyword::AT | Keyword::NOTNULL => top.0 += 1,
                Keyword::JOIN | Keyword::FROM | Keyword::WHERE | Keyword::ON | Keyword::SELECT
                    // A new clause resets the count, except in chains of `UNION SELECT`.
                    if w.keyword != Keyword::SELECT && w.keyword != Keyword::FROM && w.keyword != Keyword::WHERE => {
                        top.0 = 0;
                    }
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::Colon
            | Token::EOF => {}
            _ => top.0 += 1,
        }
        if let Some(top) = levels.last()
            && (top.0 > MAX_CHAIN || top.1 > MAX_LOGICAL_CHAIN)
        {
            return Err(Error::limit(format!(
                "expression is too long: at most {MAX_CHAIN} operators, or {MAX_LOGICAL_CHAIN} ANDs and ORs, in a row"
            ))
            .at(position(t.span.start)));
        }
    }
    Ok(())
}

/// Parser stack for an open parenthesis beyond that of plain nesting, in units of [`MAX_WEIGHT`]:
/// subqueries and calls have large frames.
fn open_weight(before: Option<&TokenWithSpan>, after: Option<&TokenWithSpan>) -> u32 {
    use Keyword as K;
    let keyword = |t: Option<&TokenWithSpan>| match t.map(|t| &t.token) {
        Some(Token::Word(w)) => Some(w.keyword),
        _ => None,
    };
    match (keyword(before), keyword(after)) {
        (_, Some(K::SELECT | K::WITH | K::VALUES | K::FROM | K::TABLE))
        | (Some(K::FROM | K::JOIN), _) => 3,
        (
            Some(
                K::AND
                | K::OR
                | K::NOT
                | K::IN
                | K::ON
                | K::WHERE
                | K::HAVING
                | K::BETWEEN
                | K::LIKE,
            ),
            _,
        ) => 0,
        (
            Some(K::WHEN | K::THEN | K::ELSE | K::CASE | K::BY | K::SELECT | K::VALUES | K::AS),
            _,
        ) => 0,
        (Some(_), _) => 2,
        (None, _) => 0,
    }
}

/// Whether the last token is a text: what a colon separates from it is the value of a key.
fn follows_text(tokens: &[TokenWithSpan]) -> bool {
    matches!(tokens.last().map(|t| &t.token), Some(Token::SingleQuotedString(_)))
}

/// Rewrites `?`, `$n` and `:name` to `$n`. Returns one entry per parameter, with the name of
/// `:name`.
fn number_parameters(tokens: &mut [TokenWithSpan]) -> Result<Vec<Option<String>>> {
    let mut names: Vec<Option<String>> = Vec::new();
    let mut style: Option<char> = None;
    let mut at = 0;
    while at < tokens.len() {
        let place = tokens[at].span.start;
        if (at == 0 || tokens[at - 1].token == Token::SemiColon)
            && statement::begins_prepare(&tokens[at..])
        {
            while at < tokens.len() && tokens[at].token != Token::SemiColon {
                at += 1;
            }
            continue;
        }
        let named = match (&tokens[at].token, tokens.get(at + 1)) {
            (Token::Colon, Some(TokenWithSpan { token: Token::Word(w), span }))
                if span.start == tokens[at].span.end && !follows_text(&tokens[..at]) =>
            {
                Some(w.value.clone())
            }
            _ => None,
        };
        let (kind, index) = if let Some(name) = named {
            tokens[at + 1].token = Token::Whitespace(Whitespace::Space);
            let known = names.iter().position(|n| n.as_deref() == Some(name.as_str()));
            let index = known.unwrap_or_else(|| {
                names.push(Some(name));
                names.len() - 1
            });
            (':', index)
        } else if let Token::Placeholder(text) = &tokens[at].token {
            if text == "?" {
                names.push(None);
                ('?', names.len() - 1)
            } else {
                let number = text.get(1..).and_then(|t| t.parse::<usize>().ok()).unwrap_or(0);
                if number == 0 || number > MAX_PARAMETERS {
                    return Err(Error::syntax(format!(
                        "{text} is not a valid parameter; write ?, $1 or :name"
                    ))
                    .at(position(place)));
                }
                if names.len() < number {
                    names.resize(number, None);
                }
                ('$', number - 1)
            }
        } else {
            at += 1;
            continue;
        };
        if style.is_some_and(|s| s != kind) {
            return Err(Error::syntax("parameters must all be written ?, all $n or all :name")
                .at(position(place)));
        }
        if names.len() > MAX_PARAMETERS {
            return Err(
                Error::limit(format!("more than {MAX_PARAMETERS} parameters")).at(position(place))
            );
        }
        style = Some(kind);
        tokens[at].token = Token::Placeholder(format!("${}", index + 1));
        at += 1;
    }
    Ok(names)
}

/// Returns the zero-based position of a placeholder made by [`number_parameters`].
pub(crate) fn placeholder_index(value: &Value) -> Option<usize> {
    match value {
        Value::Placeholder(text) => text.get(1..)?.parse::<usize>().ok()?.checked_sub(1),
        _ => None,
    }
}

/// Converts locations to byte offsets; they must be requested in ascending order.
struct Lines<'a> {
    sql: &'a str,
    /// Location and byte offset reached so far.
    location: Location,
    offset: usize,
    /// Locations after the cuts with their offsets, ascending; the walk jumps to them.
    known: std::vec::IntoIter<(Location, usize)>,
}

impl Lines<'_> {
    fn offset(&mut self, to: Location) -> usize {
        while let Some((location, offset)) =
            self.known.as_slice().first().copied().filter(|(known, _)| *known <= to)
        {
            (self.location, self.offset) = (location, offset);
            self.known.next();
        }
        for char in self.sql[self.offset..].chars() {
            if self.location >= to {
                break;
            }
            self.location = literal_rows::after(self.location, char);
            self.offset += char.len_utf8();
        }
        self.offset
    }
}
