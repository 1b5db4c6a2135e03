//! Extensions of the line editor: input validation, and completion of the word at the cursor.

use crate::database::{self, quoted};
use crate::scan;
use nacredb::Session;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

/// SQL keywords offered as completions.
const KEYWORDS: &[&str] = &[
    "alter",
    "and",
    "as",
    "asc",
    "begin",
    "between",
    "bigint",
    "boolean",
    "by",
    "case",
    "cast",
    "commit",
    "count",
    "create",
    "cross",
    "date",
    "decimal",
    "default",
    "delete",
    "desc",
    "describe",
    "distinct",
    "double",
    "drop",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "extract",
    "false",
    "from",
    "full",
    "group",
    "having",
    "if",
    "in",
    "inner",
    "insert",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "json",
    "key",
    "left",
    "like",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "optimize",
    "or",
    "order",
    "outer",
    "primary",
    "right",
    "rollback",
    "select",
    "set",
    "show",
    "sum",
    "table",
    "tables",
    "text",
    "then",
    "timestamp",
    "true",
    "union",
    "unique",
    "update",
    "using",
    "values",
    "varchar",
    "when",
    "where",
    "with",
];

const COMMANDS: &[&str] = &["\\d", "\\x", "\\timing", "\\rows", "\\q", "\\?"];

/// Names of tables and columns as of the last refresh.
#[derive(Default)]
pub struct Names(Vec<String>);

impl Names {
    /// Reads the names again. Completion is a convenience: names that cannot be read are omitted.
    pub fn refresh(&mut self, session: &mut Session) {
        let mut names = Vec::new();
        let Ok(tables) = database::execute(session, "show tables", &[]) else { return };
        for row in 0..tables.rows() {
            let Some(table) = tables.row(row).first().map(ToString::to_string) else { continue };
            let probe = format!("select * from {} limit 0", quoted(&table));
            if let Ok(result) = database::execute(session, &probe, &[]) {
                names.extend(result.columns.into_iter().map(|c| c.name));
            }
            names.push(table);
        }
        names.sort();
        names.dedup();
        self.0 = names;
    }
}

/// Completion and validation for the line editor.
#[derive(Default)]
pub struct ShellHelper {
    words: Vec<String>,
}

impl ShellHelper {
    /// Sets the names offered as completions.
    pub fn set_names(&mut self, names: &Names) {
        self.words.clone_from(&names.0);
    }
}

/// Returns the start of the word before the cursor and its completions.
fn complete(line: &str, at: usize, names: &[String]) -> (usize, Vec<String>) {
    let before = line.get(..at).unwrap_or(line);
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut start = before
        .rfind(|c: char| !in_word(c))
        .map_or(0, |p| p + before[p..].chars().next().map_or(1, char::len_utf8));
    if before.trim_start().starts_with('\\') && !before.trim_start().contains(' ') {
        start = before.find('\\').unwrap_or(0);
        let word = &before[start..];
        return (
            start,
            COMMANDS.iter().filter(|c| c.starts_with(word)).map(|c| (*c).into()).collect(),
        );
    }
    let word = &before[start..];
    if word.is_empty() {
        return (at, Vec::new());
    }
    let begins = |candidate: &str| {
        candidate.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
            && candidate.len() > word.len()
    };
    // Complete a keyword in the case of its first letters.
    let upper = word.chars().all(|c| !c.is_lowercase());
    let mut found: Vec<String> = names.iter().filter(|name| begins(name)).cloned().collect();
    found.extend(
        KEYWORDS
            .iter()
            .filter(|k| begins(k))
            .map(|k| if upper { k.to_ascii_uppercase() } else { (*k).to_owned() }),
    );
    found.sort();
    found.dedup();
    (start, found)
}

impl Completer for ShellHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line, at, &self.words))
    }
}

impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let done = text.trim_start().starts_with('\\') || scan::statements(text).1;
        Ok(if done { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for ShellHelper {
    type Hint = String;
}

impl Highlighter for ShellHelper {}

impl Helper for ShellHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let names = ["lineitem".to_owned(), "l_tax".to_owned(), "Orders".to_owned()];
        complete(line, line.len(), &names).1
    }

    #[test]
    fn completes_keywords_names_and_commands() {
        assert_eq!(found("sel"), ["select"]);
        assert_eq!(found("SEL"), ["SELECT"]);
        assert_eq!(found("select * from line"), ["lineitem"]);
        assert_eq!(found("select * from ord"), ["Orders", "order"]);
        assert_eq!(found("select t.l_"), ["l_tax"]);
        assert_eq!(found("\\ti"), ["\\timing"]);
        assert_eq!(found("\\d line"), ["lineitem"]);
        assert_eq!(found("select "), Vec::<String>::new());
        assert_eq!(found("é"), Vec::<String>::new());
    }

    #[test]
    fn word_start_is_a_byte_offset() {
        assert_eq!(complete("select é,li", 12, &[]).0, 10);
    }
}
