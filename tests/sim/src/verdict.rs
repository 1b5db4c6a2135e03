//! What a statement may see, and what the model says that it must answer.

use crate::model::{Effect, Model, RowId, State, Table, Writes};
use crate::read;
use crate::view::View;
use nacredb::{ErrorKind, QueryResult, ResultKind};
use std::collections::{BTreeMap, BTreeSet};

/// What a statement answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows as text, sorted.
    Rows(Vec<Vec<String>>),
    /// Rows changed.
    Affected(u64),
    /// Nothing to compare.
    Done,
}

impl Answer {
    /// Of a result of the engine.
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

/// What the model says of a statement.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The answer, if it may succeed.
    pub answer: Option<Answer>,
    /// Its errors, if it may fail for reasons that the model knows.
    pub errors: Vec<ErrorKind>,
    /// What it changes.
    pub writes: Writes,
    /// What it locks.
    pub locks: BTreeSet<RowId>,
    /// What becomes of the catalog, if it changes.
    pub catalog: Option<Effect>,
}

impl Verdict {
    /// Must answer this.
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

    /// Answers with no rows.
    pub fn nothing_found() -> Verdict {
        Verdict::answer(Answer::Rows(Vec::new()))
    }

    /// Must fail, in one of these ways.
    pub fn fails(errors: &[ErrorKind]) -> Verdict {
        Verdict { answer: None, errors: errors.to_vec(), ..Verdict::done() }
    }
}

/// What a statement sees.
pub struct Sight<'a> {
    /// The committed states.
    pub model: &'a mut Model,
    /// The snapshot with own changes.
    pub view: &'a State,
    /// The snapshot's commit.
    pub snapshot: u64,
    /// The transaction's own changes.
    pub own: &'a Writes,
    /// The views that there were when the statement began.
    pub views: &'a BTreeMap<&'static str, View>,
}

impl Sight<'_> {
    /// A table or a view.
    pub fn read(&self, name: &'static str) -> Result<Table, ErrorKind> {
        read::read(name, &|name| self.model.seen(self.view, name), self.views)
    }
}
