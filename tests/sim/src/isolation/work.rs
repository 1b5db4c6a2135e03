//! The transactions of a history, and a session that runs them; shared by simulated and native
//! threads.

use crate::isolation::history::{End, Event, Span, Transaction};
use nacre_testing::Random;
use nacredb::{ErrorKind, Result, Session, Value};

/// One statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Appends a number to a list.
    Append(usize, u64),
    /// Reads a list.
    Read(usize),
}

/// The statements of a transaction, and whether it commits.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its statements.
    pub steps: Vec<Do>,
    /// Whether to commit at the end.
    pub commit: bool,
}

/// The kind of history; see the parent module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `SELECT`.
    Plain,
    /// `SELECT … FOR UPDATE`.
    Locked,
}

/// Maximum number of lists in a history.
pub const MAX_LISTS: usize = 6;

/// The tasks of each session.
pub fn tasks(random: &mut Random, sessions: usize, each: usize) -> (usize, Vec<Vec<Task>>) {
    let lists = 2 + random.below(MAX_LISTS as u64 - 1) as usize;
    let mut value = 0;
    let sessions = (0..sessions)
        .map(|_| {
            (0..each)
                .map(|_| {
                    let steps = (0..1 + random.below(4))
                        .map(|_| {
                            let key = random.below(lists as u64) as usize;
                            value += 1;
                            if random.percent(50) { Do::Append(key, value) } else { Do::Read(key) }
                        })
                        .collect();
                    Task { steps, commit: random.percent(90) }
                })
                .collect()
        })
        .collect();
    (lists, sessions)
}

/// Statements that create the lists.
pub fn setup(lists: usize) -> String {
    let rows: Vec<String> = (0..lists).map(|k| format!("({k}, '')")).collect();
    format!(
        "create table l (k bigint primary key, s text); insert into l values {}",
        rows.join(", ")
    )
}

fn parse(text: &str) -> Vec<u64> {
    text.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// Runs a step and returns what it read or appended as an event.
pub async fn step(session: &mut Session, step: Do, kind: Kind) -> Result<Event> {
    match step {
        Do::Append(key, value) => {
            session
                .execute(&format!("update l set s = s || ',{value}' where k = {key}"), &[])
                .await?;
            Ok(Event::Append { key, value })
        }
        Do::Read(key) => {
            let lock = if kind == Kind::Locked { " for update" } else { "" };
            let result =
                session.execute(&format!("select s from l where k = {key}{lock}"), &[]).await?;
            let values = match result.row(0).first() {
                Some(Value::Text(text)) => parse(text),
                _ => Vec::new(),
            };
            Ok(Event::Read { key, values })
        }
    }
}

/// Runs a whole transaction. `tick` returns the next moment of the shared clock; `pause` lets other
/// sessions run before each statement.
pub async fn transact(
    session: &mut Session,
    task: &Task,
    kind: Kind,
    tick: &impl Fn() -> u64,
    pause: &impl AsyncFn(&'static str),
) -> std::result::Result<Transaction, String> {
    let mut events = Vec::new();
    pause("begin").await;
    let called = tick();
    session.execute("begin", &[]).await.map_err(|e| e.to_string())?;
    let begin = Span { called, answered: tick() };
    let mut commit = task.commit;
    for one in &task.steps {
        pause(if matches!(one, Do::Append(..)) || kind == Kind::Locked { "write" } else { "read" })
            .await;
        match step(session, *one, kind).await {
            Ok(event) => events.push(event),
            Err(error) if retryable(error.kind()) => {
                commit = false;
                break;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    pause("commit").await;
    let called = tick();
    let ended = session.execute(if commit { "commit" } else { "rollback" }, &[]).await;
    let finish = Span { called, answered: tick() };
    let end = match ended {
        Ok(_) if commit => End::Committed,
        Ok(_) => End::Aborted,
        Err(error) if retryable(error.kind()) => End::Aborted,
        Err(error) => return Err(error.to_string()),
    };
    Ok(Transaction { events, begin, finish, end })
}

fn retryable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conflict | ErrorKind::Deadlock | ErrorKind::LockTimeout)
}

/// The task that finally reads all lists.
pub fn last(lists: usize) -> Task {
    Task { steps: (0..lists).map(Do::Read).collect(), commit: true }
}
