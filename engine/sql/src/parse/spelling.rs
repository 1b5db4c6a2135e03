//! Rewrites tokens before parsing, where the parser knows only one spelling: queries that begin
//! with `FROM`, `TABLE t`, a comma before `FROM`, `AS MATERIALIZED`, grouping sets in a list
//! of grouping sets, `INSERT INTO t (VALUES …)`, `CREATE TABLE t (a) AS …`, strings continued on
//! the next line, and operators that are words. Refuses join words that the parser would take for
//! an alias.
//!
//! A rewrite keeps the positions of the tokens that remain.

use super::operator_words;
use nacre_types::Error;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

/// An error, and where it is.
type Wrong = (Error, Location);

/// The type that stands for none in `CREATE TABLE t (a, b) AS …`, and in the definition of a generated
/// column.
pub(crate) const NO_TYPE: &str = "no_type";

/// Where a query may begin, for the statement and for each open parenthesis.
#[derive(Default)]
struct Level {
    /// Whether a `FROM` may begin a query here.
    queries: bool,
    /// Whether the current query has had a word that a `FROM` belongs to.
    selected: bool,
    /// Whether it is a list of grouping sets.
    sets: bool,
    /// Whether its parentheses are dropped.
    flattened: bool,
    /// Whether it is the list of columns of `CREATE TABLE`.
    columns: bool,
    /// Whether it holds the arguments of a query function of JSON.
    json: bool,
}

/// Rewrites the tokens of a text.
pub(super) fn spelled(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Wrong> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut levels = vec![statement_level(&tokens, 0)];
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let next = keyword(&tokens, at + 1);
        let nested = levels.len() > 1;
        let Some(level) = levels.last_mut() else { break };
        if let Some((operator, words)) = operator_words::operator(out.last(), &tokens[at..]) {
            out.push(TokenWithSpan { token: operator, span: token.span });
            at += words;
            continue;
        }
        match &token.token {
            Token::Number(digits, long) => {
                if let Some(number) = joined(digits, *long, &tokens[at..]) {
                    out.push(number);
                    at += 2;
                    continue;
                }
                refuse_suffix(token, tokens.get(at + 1))?;
            }
            Token::SingleQuotedString(text) => {
                if let Some(TokenWithSpan { token: Token::SingleQuotedString(before), span }) =
                    out.last_mut()
                    && span.end.line < token.span.start.line
                {
                    before.push_str(text);
                    *span = span.union(&token.span);
                    at += 1;
                    continue;
                }
            }
            Token::Comma if next == Keyword::FROM => {
                at += 1;
                continue;
            }
            Token::SemiColon => levels = vec![statement_level(&tokens, at + 1)],
            Token::LParen => {
                let trims = at > 0 && keyword(&tokens, at - 1) == Keyword::TRIM;
                let queries =
                    !trims && matches!(next, Keyword::FROM | Keyword::WITH | Keyword::SELECT);
                let sets = at > 0 && keyword(&tokens, at - 1) == Keyword::SETS;
                if next == Keyword::VALUES && follows_target(&tokens[..at]) {
                    levels.push(Level { flattened: true, ..Level::default() });
                    at += 1;
                    continue;
                }
                if !nested && let Some(end) = end_of_names(&tokens, at) {
                    untyped(&tokens[at..end], &mut out);
                    at = end;
                    continue;
                }
                let columns = !nested && lists_columns(&tokens[..at]);
                let json = at > 0 && queries_json(&tokens[at - 1]);
                levels.push(Level { queries, sets, columns, json, ..Level::default() });
            }
            Token::RParen if nested => {
                let closed = levels.pop();
                if closed.is_some_and(|level| level.flattened) {
                    at += 1;
                    continue;
                }
            }
            Token::Word(_) if level.columns && lacks_type(out.last(), &tokens[at + 1..]) => {
                untyped(&tokens[at..=at], &mut out);
                at += 1;
                continue;
            }
            Token::Word(word) if level.json && begins_clause(word, out.last()) => {
                let clause = format!("{} in a query function of JSON", word.value.to_uppercase());
                return Err(refused(&clause, token));
            }
            Token::Word(word) => match word.keyword {
                Keyword::SELECT | Keyword::DELETE | Keyword::UPDATE => level.selected = true,
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                    level.selected = false;
                }
                Keyword::FROM if level.queries && !level.selected => {
                    level.selected = true;
                    if !selects_later(&tokens[at..]) {
                        let all = [Token::make_keyword("SELECT"), Token::Mul];
                        out.extend(all.map(|all| TokenWithSpan { token: all, span: token.span }));
                    }
                }
                Keyword::TABLE if begins_query(out.last()) && is_word(tokens.get(at + 1)) => {
                    level.selected = true;
                    let from = Token::make_keyword("FROM");
                    let all = [Token::make_keyword("SELECT"), Token::Mul, from];
                    out.extend(all.map(|all| TokenWithSpan { token: all, span: token.span }));
                    at += 1;
                    continue;
                }
                Keyword::GROUPING
                    if level.sets
                        && next == Keyword::SETS
                        && tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen) =>
                {
                    let level = Level { sets: true, flattened: true, ..Level::default() };
                    levels.push(level);
                    at += 3;
                    continue;
                }
                Keyword::AS => {
                    let skipped = match next {
                        Keyword::MATERIALIZED => 1,
                        Keyword::NOT if keyword(&tokens, at + 2) == Keyword::MATERIALIZED => 2,
                        _ => 0,
                    };
                    let opens = tokens.get(at + 1 + skipped);
                    if opens.is_some_and(|t| t.token == Token::LParen) {
                        out.push(token.clone());
                        at += 1 + skipped;
                        continue;
                    }
                }
                // The parser would take these words for an alias of the table.
                Keyword::SET | Keyword::VALUE if follows_target(&tokens[..at]) => {
                    let [alias, name] = [Token::make_keyword("AS"), tokens[at - 1].token.clone()];
                    out.extend([alias, name].map(|t| TokenWithSpan { token: t, span: token.span }));
                }
                // MySQL's key of all elements: `CAST(… AS type ARRAY)`, `CAST(… AS type(n) ARRAY)`.
                Keyword::ARRAY
                    if [2, 5].into_iter().any(|before| {
                        at.checked_sub(before).is_some_and(|at| keyword(&tokens, at) == Keyword::AS)
                    }) && tokens.get(at + 1).is_some_and(|t| t.token == Token::RParen) =>
                {
                    return Err(refused("a key of all elements of an array", token));
                }
                Keyword::ASOF if joins(next) => return Err(refused("ASOF JOIN", token)),
                _ if next == Keyword::JOIN && is_positional(word, out.last()) => {
                    return Err(refused("POSITIONAL JOIN", token));
                }
                _ => {}
            },
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    Ok(out)
}

/// Whether the tokens end with the name of the table that rows are inserted into.
fn follows_target(tokens: &[TokenWithSpan]) -> bool {
    let before = match tokens {
        [.., before, _, dot, _] if dot.token == Token::Period => before,
        [.., before, _] => before,
        _ => return false,
    };
    let words = [Keyword::INTO, Keyword::INSERT, Keyword::REPLACE, Keyword::IGNORE];
    is_word(tokens.last()) && words.iter().any(|word| is_keyword(before, *word))
}

fn is_keyword(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == keyword)
}

/// Whether the list of columns of a `CREATE TABLE` may follow the tokens.
fn lists_columns(tokens: &[TokenWithSpan]) -> bool {
    let table = tokens.iter().rev().take(6).find(|t| !is_name_or_condition(t));
    table.is_some_and(|t| is_keyword(t, Keyword::TABLE))
}

/// Whether a name begins the definition of a generated column without a type.
fn lacks_type(before: Option<&TokenWithSpan>, after: &[TokenWithSpan]) -> bool {
    matches!(before.map(|t| &t.token), Some(Token::Comma | Token::LParen))
        && match after {
            [word, next, ..] if is_keyword(word, Keyword::AS) => next.token == Token::LParen,
            [word, ..] => is_keyword(word, Keyword::GENERATED),
            [] => false,
        }
}

/// The position after the names in parentheses that begin at a position, if these are the columns of
/// `CREATE TABLE t (a, b) AS`.
fn end_of_names(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if !lists_columns(&tokens[..at]) {
        return None;
    }
    let mut end = at + 1;
    loop {
        match (&tokens.get(end)?.token, &tokens.get(end + 1)?.token) {
            (Token::Word(_), Token::Comma) => end += 2,
            (Token::Word(_), Token::RParen) => break,
            _ => return None,
        }
    }
    (keyword(tokens, end + 2) == Keyword::AS).then_some(end + 2)
}

/// Whether a token is part of `[IF NOT EXISTS] name`.
fn is_name_or_condition(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword != Keyword::TABLE)
        || token.token == Token::Period
}

/// Gives each name in parentheses the type that stands for none.
fn untyped(names: &[TokenWithSpan], out: &mut Vec<TokenWithSpan>) {
    for name in names {
        out.push(name.clone());
        if is_word(Some(name)) {
            let none =
                Word { value: NO_TYPE.into(), quote_style: None, keyword: Keyword::NoKeyword };
            out.push(TokenWithSpan { token: Token::Word(none), span: name.span });
        }
    }
}

fn joins(keyword: Keyword) -> bool {
    use Keyword::{ANTI, INNER, JOIN, LEFT, RIGHT, SEMI};
    [JOIN, LEFT, RIGHT, INNER, SEMI, ANTI].contains(&keyword)
}

/// Whether a word before `JOIN` is one that says how to join, and not the name of a table.
fn is_positional(word: &Word, before: Option<&TokenWithSpan>) -> bool {
    let names = [Keyword::FROM, Keyword::JOIN, Keyword::AS, Keyword::UPDATE, Keyword::USING];
    let follows_table = match before.map(|t| &t.token) {
        Some(Token::Word(before)) => !names.contains(&before.keyword),
        before => before == Some(&Token::RParen),
    };
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("positional") && follows_table
}

fn queries_json(token: &TokenWithSpan) -> bool {
    let names = ["json_value", "json_query", "json_exists"];
    matches!(&token.token, Token::Word(word) if names.iter().any(|n| word.value.eq_ignore_ascii_case(n)))
}

/// Whether a word begins a clause of `json_value` and its kin that the parser does not know.
fn begins_clause(word: &Word, before: Option<&TokenWithSpan>) -> bool {
    let clauses = ["on", "with", "without", "passing", "keep", "omit"];
    let follows = !matches!(before.map(|t| &t.token), Some(Token::LParen | Token::Comma));
    follows && clauses.iter().any(|clause| word.value.eq_ignore_ascii_case(clause))
}

#[cold]
fn refused(feature: &str, token: &TokenWithSpan) -> Wrong {
    (Error::unsupported(format!("{feature} is not supported")), token.span.start)
}

fn statement_level(tokens: &[TokenWithSpan], at: usize) -> Level {
    let first = keyword(tokens, at);
    let queries = matches!(
        first,
        Keyword::FROM
            | Keyword::WITH
            | Keyword::SELECT
            | Keyword::INSERT
            | Keyword::CREATE
            | Keyword::EXPLAIN
    );
    Level { queries, ..Level::default() }
}

/// Whether a query, and no statement about tables, may follow a token.
fn begins_query(before: Option<&TokenWithSpan>) -> bool {
    match before.map(|t| &t.token) {
        None | Some(Token::SemiColon | Token::LParen) => true,
        Some(Token::Word(word)) => matches!(
            word.keyword,
            Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::ALL
                | Keyword::DISTINCT
                | Keyword::AS
        ),
        _ => false,
    }
}

fn is_word(token: Option<&TokenWithSpan>) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(_)))
}

fn keyword(tokens: &[TokenWithSpan], at: usize) -> Keyword {
    match tokens.get(at).map(|t| &t.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Whether a query that begins with `FROM` has a `SELECT` of its own.
fn selects_later(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match (&token.token, keyword(tokens, at)) {
            (Token::LParen, _) => depth += 1,
            (Token::RParen, _) if depth == 0 => return false,
            (Token::RParen, _) => depth -= 1,
            (Token::SemiColon, _) => return false,
            (_, Keyword::SELECT) if depth == 0 => return true,
            (_, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS)
                if depth == 0 =>
            {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Returns the number that begins the tokens if it has underscores between digits: `1_000`.
fn joined(digits: &str, long: bool, tokens: &[TokenWithSpan]) -> Option<TokenWithSpan> {
    let [first, second, rest @ ..] = tokens else { return None };
    let Token::Word(word) = &second.token else { return None };
    let groups = word.value.strip_prefix('_').filter(|_| word.quote_style.is_none())?;
    let is_group = |g: &str| !g.is_empty() && g.bytes().all(|b| b.is_ascii_digit());
    let touches = |a: &TokenWithSpan, b: &TokenWithSpan| a.span.end == b.span.start;
    let ends = rest.first().is_none_or(|after| {
        !touches(second, after) || !matches!(after.token, Token::Number(..) | Token::Period)
    });
    let whole = digits.bytes().all(|b| b.is_ascii_digit()) && groups.split('_').all(is_group);
    if !whole || !ends || !touches(first, second) {
        return None;
    }
    let token = Token::Number(format!("{digits}{}", groups.replace('_', "")), long);
    Some(TokenWithSpan { token, span: first.span.union(&second.span) })
}

/// Returns an error for a number that a word directly follows: `1abc` is no number with an alias.
fn refuse_suffix(number: &TokenWithSpan, next: Option<&TokenWithSpan>) -> Result<(), Wrong> {
    match next {
        Some(TokenWithSpan { token: Token::Word(word), span })
            if word.quote_style.is_none() && span.start == number.span.end =>
        {
            let message = format!("{}{} is not a number", number.token, word.value);
            Err((Error::syntax(message), number.span.start))
        }
        _ => Ok(()),
    }
}
