//! Failures of a command and their report on standard error: error kind, message, hint, and for SQL
//! the line with a caret under the error position.

use crate::terminal;
use nacredb::{Error, Position};
use std::io::{self, Write};
use std::process::ExitCode;
use unicode_width::UnicodeWidthStr;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// An error of the engine, a file or the input. `sql` is the text that the error position
    /// refers to.
    Error { error: Error, sql: Option<String> },
    /// Problems that have already been printed, by `check` or by a script.
    Unsound,
    /// An invalid combination of arguments.
    Usage(String),
    /// The reader closed standard output; there is nothing to report.
    BrokenPipe,
}

/// Result of a command or a part of one.
pub type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error { error, sql: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Error::io(error.to_string()).into(),
        }
    }
}

impl Failure {
    /// Wraps an engine error together with the SQL text it refers to.
    pub fn in_sql(error: Error, sql: &str) -> Failure {
        Failure::Error { error, sql: Some(sql.to_owned()) }
    }

    /// Prints the failure and returns the exit code: 0 for success, 1 for failure, 2 for wrong
    /// usage.
    pub fn report(&self) -> ExitCode {
        let mut out = io::stderr().lock();
        // Ignore write errors: standard error may be closed.
        let code = match self {
            Failure::Error { error, sql } => {
                let _ = out.write_all(render(error, sql.as_deref()).as_bytes());
                1
            }
            Failure::Usage(message) => {
                let _ = writeln!(
                    out,
                    "{} {message}\n\nFor more information, try '--help'.",
                    terminal::red("error:")
                );
                2
            }
            Failure::Unsound => 1,
            Failure::BrokenPipe => 0,
        };
        ExitCode::from(code)
    }
}

/// Converts an I/O error about a path.
pub fn file_error(path: &std::path::Path, error: &io::Error) -> Error {
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{}: no such file", path.display())),
        io::ErrorKind::AlreadyExists => Error::already_exists(message),
        _ => Error::io(message),
    }
}

/// Formats the whole report of an error, with a final newline. Replaces control characters, which
/// may come from files and tables, so that they do not reach the terminal.
pub fn render(error: &Error, sql: Option<&str>) -> String {
    let visible = |text: &str| -> String {
        text.chars()
            .map(|c| if matches!(c, '\n' | '\t') { c } else { terminal::visible(c) })
            .collect()
    };
    let head = format!("error[{}]:", error.kind().name());
    let mut out = format!("{} {}\n", terminal::red(&head), visible(error.message()));
    match (error.position(), sql) {
        (Some(position), Some(sql)) => out.push_str(&excerpt(sql, position)),
        (Some(position), None) => {
            out.push_str(&format!("  at line {}, column {}\n", position.line, position.column));
        }
        _ => {}
    }
    if let Some(hint) = error.hint() {
        out.push_str(&format!("{} {}\n", terminal::bold("hint:"), visible(hint)));
    }
    out
}

/// Formats the line of an error position with a caret below it. Cuts a long line to the part around
/// the position.
fn excerpt(sql: &str, position: Position) -> String {
    const BEFORE: usize = 60;
    const AFTER: usize = 40;
    let Some(line) = sql.lines().nth(position.line.saturating_sub(1) as usize) else {
        return String::new();
    };
    let column = position.column.saturating_sub(1) as usize;
    let skip = column.saturating_sub(BEFORE);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let before: String = line.chars().skip(skip).take(column - skip).map(visible).collect();
    let after: String = line.chars().skip(column).take(AFTER).map(visible).collect();
    let left = if skip > 0 { "…" } else { "" };
    let right = if line.chars().count() > column + AFTER { "…" } else { "" };
    let number = position.line.to_string();
    let gutter = " ".repeat(number.len());
    let pad = " ".repeat(left.width() + before.width());
    format!(
        "{gutter} |\n{number} | {left}{before}{after}{right}\n{gutter} | {pad}{}\n",
        terminal::red("^")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_marks_the_error_position() {
        let error = Error::not_found("no table lineitm")
            .at(Some(Position { line: 2, column: 6 }))
            .with_hint("did you mean lineitem?");
        let text = render(&error, Some("select *\nfrom lineitm"));
        assert_eq!(
            text,
            "error[not_found]: no table lineitm\n  |\n2 | from lineitm\n  |      ^\nhint: did you mean lineitem?\n"
        );
    }

    #[test]
    fn caret_aligns_in_wide_text_and_long_lines() {
        let error = Error::syntax("x").at(Some(Position { line: 1, column: 3 }));
        assert_eq!(render(&error, Some("日本x")), "error[syntax]: x\n  |\n1 | 日本x\n  |     ^\n");
        let sql = format!("select {}x", "1 + ".repeat(100));
        let error = Error::syntax("x").at(Some(Position { line: 1, column: 408 }));
        let text = render(&error, Some(&sql));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].ends_with("1 + x"), "{text}");
        assert_eq!(lines[2].chars().count(), lines[3].chars().count());
    }

    #[test]
    fn control_characters_in_messages_are_replaced() {
        let error =
            Error::constraint("key (a\u{1b}]0;x\u{7}\r\u{9b}2J)\n\tb").with_hint("not \u{1b}[31m");
        let text = "error[constraint]: key (a\u{fffd}]0;x\u{fffd}␍\u{fffd}2J)\n\tb\nhint: not \u{fffd}[31m\n";
        assert_eq!(render(&error, None), text);
    }

    #[test]
    fn a_position_outside_the_text_has_no_excerpt() {
        let error = Error::syntax("x").at(Some(Position { line: 9, column: 9 }));
        assert_eq!(render(&error, Some("a")), "error[syntax]: x\n");
    }
}
