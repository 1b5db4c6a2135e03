//! Backslash commands.

use super::{Next, Shell};
use crate::database::quoted;
use crate::failure::Outcome;
use crate::terminal::grouped;
use nacredb::Error;

const HELP: &str = "\
  \\d          tables
  \\d TABLE    a table's columns
  \\x          rows as blocks of lines, on or off
  \\timing     time of each statement, on or off
  \\rows N     show at most N rows of a result
  \\q          leave
  \\?          this

Statements end with ; and may span lines. Tab completes, Ctrl-C cancels a line or what runs, Ctrl-D leaves.
A star in the prompt means that a transaction is open.
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
                    writeln!(self.out, "at most {} rows are shown", grouped(rows as u64))?;
                }
                _ => self.fail(&Error::syntax("\\rows takes a number of rows").into())?,
            },
            _ => {
                let error = Error::syntax(format!("no command \\{command} of that form"));
                self.fail(&error.with_hint("\\? lists them").into())?;
            }
        }
        Ok(Next::Continue)
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
