//! `nacre shell`: an interactive SQL prompt. Statements may span lines and end with `;`; commands
//! begin with a backslash. After an error the shell continues.

mod commands;
mod complete;

use crate::args::ShellArgs;
use crate::database::{self, Missing, Stream};
use crate::failure::{Failure, Outcome};
use crate::interrupt::{self, Interruptible};
use crate::output::table::Layout;
use crate::output::{Drawing, Shape};
use crate::scan::{self, Scanner};
use crate::{sql, terminal};
use complete::{Names, ShellHelper};
use nacredb::{Database, Error, ResultKind, Session};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Settings that commands change.
struct Settings {
    timing: bool,
    expanded: bool,
    /// Maximum number of rows shown per result.
    rows: usize,
}

/// One shell over one session.
struct Shell<'a> {
    database: &'a Database,
    session: Session,
    settings: Settings,
    names: Names,
    interactive: bool,
    /// Whether a statement or command has failed; decides the exit code of a script.
    failed: bool,
    /// Whether standard output of a script has been closed by its reader.
    output_closed: bool,
    out: &'a mut dyn Write,
}

/// Whether the shell continues after a command.
#[derive(PartialEq)]
enum Next {
    Continue,
    Quit,
}

/// Runs the command.
pub fn run(args: &ShellArgs, out: &mut dyn Write) -> Outcome {
    let options = database::options_of(&args.url, &args.options)?;
    let database = database::open_to(&args.url, Missing::Create, args.read_only, options)?;
    let outcome = converse(&database, &args.url, out);
    database::close(&database, outcome)
}

fn converse(database: &Database, url: &str, out: &mut dyn Write) -> Outcome {
    let interactive = std::io::stdin().is_terminal();
    let rows = if terminal::stdout_is_terminal() { 1000 } else { usize::MAX };
    let settings = Settings { timing: false, expanded: false, rows };
    let mut shell = Shell {
        database,
        session: database.session(),
        settings,
        names: Names::default(),
        interactive,
        failed: false,
        output_closed: false,
        out,
    };
    if !interactive {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        shell.script(&text)?;
        return if shell.failed { Err(Failure::Unsound) } else { Ok(()) };
    }
    writeln!(shell.out, "nacre {}, {url}. \\? for help, \\q to quit.", env!("CARGO_PKG_VERSION"))?;
    shell.read_lines()
}

impl Shell<'_> {
    fn read_lines(&mut self) -> Outcome {
        let config =
            Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
        let failed = |e: ReadlineError| nacredb::Error::io(format!("terminal: {e}"));
        let mut editor: Editor<ShellHelper, FileHistory> =
            Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(ShellHelper::default()));
        let history = history_file();
        if let Some(path) = &history {
            // The file does not exist on the first run.
            let _ = editor.load_history(path);
        }
        self.names.refresh(&mut self.session);
        interrupt::listen();
        loop {
            if let Some(helper) = editor.helper_mut() {
                helper.set_names(&self.names);
            }
            self.out.flush()?;
            let prompt = if self.session.in_transaction() { "nacre*> " } else { "nacre> " };
            let next = match editor.readline(prompt) {
                Ok(text) => {
                    let text = text.trim();
                    if !text.is_empty() {
                        // History is a convenience: ignore errors.
                        let _ = editor.add_history_entry(text);
                    }
                    self.enter(text)?
                }
                Err(ReadlineError::Interrupted) => Next::Continue,
                Err(ReadlineError::Eof) => Next::Quit,
                Err(error) => return Err(failed(error).into()),
            };
            if next == Next::Quit {
                break;
            }
        }
        if self.session.in_transaction() {
            writeln!(self.out, "open transaction rolled back")?;
        }
        if let Some(path) = &history {
            let _ = editor.save_history(path);
        }
        Ok(())
    }

    /// Runs a script: statements, and commands on lines of their own.
    fn script(&mut self, text: &str) -> Outcome {
        let mut scanner = Scanner::default();
        let mut statements = Vec::new();
        // Range of the text read so far that has not been run.
        let (mut start, mut end) = (0, 0);
        for line in text.split_inclusive('\n') {
            let command = line.trim().strip_prefix('\\').filter(|_| start == end);
            end += line.len();
            if let Some(command) = command {
                match self.command(command) {
                    Ok(Next::Quit) => return Ok(()),
                    Err(Failure::BrokenPipe) => self.output_closed = true,
                    other => _ = other?,
                }
            } else {
                scanner.scan(&text[start..end], &mut statements);
                if !scanner.is_complete() {
                    continue;
                }
                self.run(&statements)?;
                statements.clear();
                scanner = Scanner::default();
            }
            start = end;
        }
        statements.extend(scanner.rest(&text[start..]));
        self.run(&statements)
    }

    fn enter(&mut self, text: &str) -> Outcome<Next> {
        match text.strip_prefix('\\') {
            Some(command) => self.command(command),
            None => self.run(&scan::statements(text).0).map(|()| Next::Continue),
        }
    }

    /// Runs statements up to the first failure.
    fn run(&mut self, statements: &[&str]) -> Outcome {
        for statement in statements {
            match self.statement(statement) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Failure::BrokenPipe) if !self.interactive => self.output_closed = true,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Runs a statement and shows its result or error. Returns whether it succeeded.
    fn statement(&mut self, sql: &str) -> Outcome<bool> {
        if self.output_closed {
            return Err(Error::io(
                "standard output was closed; the remaining statements were not run",
            )
            .into());
        }
        let opening = Interruptible::new(self.session.cancel_flag());
        let refreshed = self.database.refresh().map_err(Failure::from);
        let opened = refreshed.and_then(|_| Stream::open(&mut self.session, sql, &[]));
        drop(opening);
        let kind = opened.and_then(|mut stream| {
            let _reading = Interruptible::new(stream.rows().cancel_flag());
            self.show(&mut stream)?;
            Ok(stream.rows().kind())
        });
        match kind {
            Ok(kind) => {
                if self.interactive && kind == ResultKind::Ddl {
                    self.names.refresh(&mut self.session);
                }
                Ok(true)
            }
            Err(Failure::BrokenPipe) => Err(Failure::BrokenPipe),
            Err(failure) => self.fail(&failure).map(|()| false),
        }
    }

    /// Reports a failure, after flushing the output so that it precedes the report.
    fn fail(&mut self, failure: &Failure) -> Outcome {
        self.failed = true;
        let flushed = self.out.flush();
        failure.report();
        Ok(flushed?)
    }

    /// Draws rows as they arrive, up to the limit. Further rows are not computed.
    fn show(&mut self, stream: &mut Stream) -> Outcome {
        if stream.rows().columns().is_empty() {
            return Ok(writeln!(
                self.out,
                "{}{}",
                sql::outcome_of(stream.rows()),
                self.time(stream)
            )?);
        }
        let shape = if self.settings.expanded { Shape::Blocks } else { Shape::Table };
        let mut drawing = Drawing::new(stream.rows().columns(), shape, Layout::of_stdout());
        let more = loop {
            let left = self.settings.rows - drawing.rows() as usize;
            match stream.next() {
                Ok(Some(_)) if left == 0 => break true,
                Ok(Some(batch)) => {
                    drawing.add(&batch, left, self.out)?;
                    if batch.rows > left {
                        break true;
                    }
                }
                Ok(None) => break false,
                Err(failure) => {
                    if drawing.rows() > 0 {
                        drawing.finish(self.out)?;
                    }
                    return Err(failure);
                }
            }
        };
        drawing.finish(self.out)?;
        let rows = terminal::rows(drawing.rows());
        let time = self.time(stream);
        match more {
            true => Ok(writeln!(self.out, "(first {rows}; use \\rows N to show more{time})")?),
            false => Ok(writeln!(self.out, "({rows}{time})")?),
        }
    }

    /// Formats the execution time, if timing is on.
    fn time(&self, stream: &Stream) -> String {
        if !self.settings.timing {
            return String::new();
        }
        let elapsed = Duration::from_micros(stream.rows().statistics().elapsed_us);
        format!(", {}", terminal::duration(elapsed))
    }
}

/// Returns the path of the history file in the user's state folder (XDG Base Directory
/// Specification).
fn history_file() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let folder = state.join("nacre");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}
