//! Transcripts: the statements that a target runs and what they answer, one line of JSON for each. Another
//! build of the engine runs the same statements and has to answer alike (`npm run fuzz:wasm`).

use nacre_types::json::put_quoted;
use nacredb::{Error, QueryResult};
use std::cell::RefCell;

thread_local! {
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// The lines of one case, and how many databases it has opened.
#[derive(Default)]
struct Lines {
    text: Vec<String>,
    databases: usize,
}

/// Runs a case, and returns the lines of its statements.
pub fn of(case: impl FnOnce()) -> Vec<String> {
    LINES.with_borrow_mut(|lines| *lines = Some(Lines::default()));
    case();
    LINES.take().unwrap_or_default().text
}

/// Numbers a database of the case.
pub(crate) fn opened() -> usize {
    LINES.with_borrow_mut(|lines| {
        let Some(lines) = lines else { return 0 };
        lines.databases += 1;
        lines.databases
    })
}

/// Notes a statement: `{"db": 1, "sql": …, "rows": [[…]]}` with values as text and null as null, or with
/// `"error"`, the kind of the error, instead of rows.
pub(crate) fn note(database: usize, sql: &str, answer: &Result<QueryResult, Error>) {
    LINES.with_borrow_mut(|lines| {
        let Some(lines) = lines else { return };
        let mut line = format!("{{\"db\":{database},\"sql\":");
        put_quoted(&mut line, sql);
        match answer {
            Ok(result) => rows(&mut line, result),
            Err(error) => {
                line.push_str(",\"error\":");
                put_quoted(&mut line, error.kind().name());
            }
        }
        line.push('}');
        lines.text.push(line);
    });
}

fn rows(line: &mut String, result: &QueryResult) {
    line.push_str(",\"rows\":[");
    for (at, row) in result.to_rows().iter().enumerate() {
        line.push_str(if at > 0 { ",[" } else { "[" });
        for (column, value) in row.iter().enumerate() {
            line.push_str(if column > 0 { "," } else { "" });
            match value.is_null() {
                true => line.push_str("null"),
                false => put_quoted(line, &value.to_string()),
            }
        }
        line.push(']');
    }
    line.push(']');
}
