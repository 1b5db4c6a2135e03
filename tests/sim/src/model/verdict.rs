//! What a statement may see, and the result the model expects.

use crate::model::{Effect, Model, RowId, State, Table, Writes};
use nacredb::{ErrorKind, QueryResult, ResultKind};
use std::collections::BTreeSet;

/// The result of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows as text, sorted.
    Rows(Vec<Vec<String>>),
    /// Number of rows changed.
    Affected(u64),
    /// Nothing to compare.
    Done,
}

impl Answer {
    /// Converts a result of the engine.
    pub fn of(result: &QueryResult) -> Answer {
        match result.kind {
            ResultKind::Query => {
                let mut rows: Vec<Vec<String>> = result
                    .to_rows()
                    .iter()
                    .map(|row| row.iter().map(ToString::to_string).collect())
                    .collect();
                rows.sort();
                Answer::Rows(rows)
            }
            ResultKind::Write => Answer::Affected(result.rows_affected),
            _ => Answer::Done,
        }
    }
}

/// The model's verdict on a statement.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The expected result, if it may succeed.
    pub answer: Option<Answer>,
    /// The expected errors, if it may fail for reasons the model knows.
    pub errors: Vec<ErrorKind>,
    /// The rows it changes.
    pub writes: Writes,
    /// The rows it locks.
    pub locks: BTreeSet<RowId>,
    /// The catalog change, if any.
    pub catalog: Option<Effect>,
}

impl Verdict {
    /// Must return this result.
    pub fn answer(answer: Answer) -> Verdict {
        Verdict {
            answer: Some(answer),
            errors: Vec::new(),
            writes: Writes::new(),
            locks: BTreeSet::new(),
            catalog: None,
        }
    }

    /// Succeeds with nothing to compare.
    pub fn done() -> Verdict {
        Verdict::answer(Answer::Done)
    }

    /// Must return no rows.
    pub fn nothing_found() -> Verdict {
        Verdict::answer(Answer::Rows(Vec::new()))
    }

    /// Must fail with one of these errors.
    pub fn fails(errors: &[ErrorKind]) -> Verdict {
        Verdict { answer: None, errors: errors.to_vec(), ..Verdict::done() }
    }
}

/// What a statement sees.
pub struct Sight<'a> {
    /// The committed states.
    pub model: &'a mut Model,
    /// The snapshot with the transaction's own changes.
    pub view: &'a State,
    /// The commit of the snapshot.
    pub snapshot: u64,
    /// The transaction's own changes.
    pub own: &'a Writes,
    /// Its changes of the catalog.
    pub catalog: &'a [Effect],
}

impl Sight<'_> {
    /// Reads a table or a view.
    pub fn read(&self, name: &'static str) -> Result<Table, ErrorKind> {
        self.view.read(name)
    }

    /// Whether a commit after the snapshot changed the row. The transaction's own row may have a key
    /// that came and went before it.
    pub fn is_changed(&self, row: RowId) -> bool {
        self.model.changed_since(row, self.snapshot) && !self.own.contains_key(&row)
    }
}
