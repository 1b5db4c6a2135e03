//! Statements that begin or end transactions, and options of a session. They read and write no rows.

/// A setting of a session, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOption {
    /// How many threads may work on one statement; 0 for the default.
    Threads(u32),
    /// Bytes that one statement may hold in memory; `None` for the default.
    MemoryLimit(Option<u64>),
}

/// A bound statement about the session.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlStatement {
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `SET`.
    Set(SessionOption),
    /// A statement without effect, such as `DROP INDEX IF EXISTS` of an index that does not exist.
    Nothing,
}

impl ControlStatement {
    /// The line of its `EXPLAIN`.
    pub fn describe(&self) -> String {
        match self {
            ControlStatement::Begin => "Begin".into(),
            ControlStatement::Commit => "Commit".into(),
            ControlStatement::Rollback => "Rollback".into(),
            ControlStatement::Savepoint(name) => format!("Savepoint {name}"),
            ControlStatement::RollbackTo(name) => format!("RollbackTo {name}"),
            ControlStatement::Release(name) => format!("Release {name}"),
            ControlStatement::Set(option) => match option {
                SessionOption::Threads(0) => "Set threads to the default".into(),
                SessionOption::Threads(count) => format!("Set threads to {count}"),
                SessionOption::MemoryLimit(None) => "Set memory_limit to the default".into(),
                SessionOption::MemoryLimit(Some(bytes)) => format!("Set memory_limit to {bytes}"),
            },
            ControlStatement::Nothing => "Nothing".into(),
        }
    }
}
