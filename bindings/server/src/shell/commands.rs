//! Backslash commands of the shell.

use super::{Next, Shell};
use crate::database::quoted;
use crate::failure::Outcome;
use crate::terminal::counted;
use nacredb::Error;

const HELP: &str = "  \\d          list the tables
  \\d TABLE    describe the columns of a table
  \\x          turn expanded display (one block of lines per row) on or off
  \\timing     turn the display of execution times on or off
  \\rows N     show at most N rows of each result
  \\q          quit
  \\?          show this help

Statements end with ; and may span several lines. Tab completes words, Ctrl-C cancels the line or the
running statement, Ctrl-D quits. A star in the prompt marks an open transaction.
";

impl Shell<'_> {
    /// Runs a command, given without its backslash.
    pub(super) fn command(&mut self, text: &str) -> Outcome<Next> {
        let mut words = text.trim_end_matches(';').split_whitespace();
        let command = words.next().unwrap_or_default();
        let argument = words.next();
        match (command, argument) {
            ("q" | "quit" | "exit", None) => return Ok(Next::Quit),
            ("?" | "h" | "help", _) => self.out.write_all(HELP.as_bytes())?,
            ("d" | "dt", None) => {
                self.statement("show tables")?;
            }
            ("d", Some(table)) => {
                let table = table.trim_matches('"');
                self.statement(&format!("describe {}", quoted(table)))?;
            }
            ("x", None) => {
                self.settings.expanded ^= true;
                let state = on_off(self.settings.expanded);
                writeln!(self.out, "expanded display is {state}")?;
            }
            ("timing", None) => {
                self.settings.timing ^= true;
                let state = on_off(self.settings.timing);
                writeln!(self.out, "timing is {state}")?;
            }
            ("rows", Some(count)) => match count.parse::<usize>() {
                Ok(rows) if rows > 0 => {
                    self.settings.rows = rows;
                    writeln!(self.out, "showing at most {}", counted(rows as u64, "row"))?;
                }
                _ => self.fail(
                    &Error::syntax("\\rows requires a number of rows greater than 0").into(),
                )?,
            },
            _ => {
                let error =
                    Error::syntax(format!("unknown command or wrong arguments: \\{command}"));
                self.fail(&error.with_hint("\\? lists the commands").into())?;
            }
        }
        Ok(Next::Continue)
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
