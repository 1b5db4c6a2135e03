//! How a command ends badly, and what is then written to standard error: the kind, the message,
//! advice, and for SQL the line with a caret under the place.

use crate::terminal;
use nacredb::{Error, Position};
use std::io::{self, Write};
use std::process::ExitCode;
use unicode_width::UnicodeWidthStr;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The engine, a file or the input said no. The SQL text is there when the error has a place in it.
    Error { error: Error, sql: Option<String> },
    /// `check` found something; it has been printed.
    Unsound,
    /// The arguments make no sense together.
    Usage(String),
    /// Whoever read our output has gone; nothing to report.
    BrokenPipe,
}

/// Shorthand for commands.
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
    /// An engine error about this SQL text.
    pub fn in_sql(error: Error, sql: &str) -> Failure {
        Failure::Error { error, sql: Some(sql.to_owned()) }
    }

    /// Tells the user and says how the process ends: 0 done, 1 failed, 2 wrong usage.
    pub fn report(&self) -> ExitCode {
        let mut out = io::stderr().lock();
        // Standard error may be closed; there is nobody left to tell.
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

/// An operating system's error about a path.
pub fn file_error(path: &std::path::Path, error: &io::Error) -> Error {
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{}: no such file", path.display())),
        io::ErrorKind::AlreadyExists => Error::already_exists(message),
        _ => Error::io(message),
    }
}

/// The whole report of an error, ending with a newline. What it quotes of files and tables does not reach the terminal
/// as control characters.
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

/// The line of the place, and a caret below it. Long lines are shown around the place only.
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
    fn caret_stands_under_the_place() {
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
    fn caret_survives_wide_characters_and_long_lines() {
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
    fn messages_do_not_drive_the_terminal() {
        let error =
            Error::constraint("key (a\u{1b}]0;x\u{7}\r\u{9b}2J)\n\tb").with_hint("not \u{1b}[31m");
        let text = "error[constraint]: key (a\u{fffd}]0;x\u{fffd}␍\u{fffd}2J)\n\tb\nhint: not \u{fffd}[31m\n";
        assert_eq!(render(&error, None), text);
    }

    #[test]
    fn a_place_outside_the_text_is_harmless() {
        let error = Error::syntax("x").at(Some(Position { line: 9, column: 9 }));
        assert_eq!(render(&error, Some("a")), "error[syntax]: x\n");
    }
}
