//! Statements that begin or end transactions or set session options. They neither read nor write
//! rows.

use core::time::Duration;
use nacre_types::Value;

/// A session option and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOption {
    /// Maximum number of threads per statement; 0 for the default.
    Threads(u32),
    /// Maximum memory per statement, in bytes; `None` for the default.
    MemoryLimit(Option<u64>),
    /// How scans filter.
    ScanStrategy(ScanStrategy),
    /// Milliseconds to wait for the lock of a row; 0 for no limit, `None` for the default.
    LockTimeout(Option<u64>),
}

/// How scans evaluate their filters. All ways have the same results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanStrategy {
    /// As measurements at the head of each segment suggest.
    #[default]
    Adaptive,
    /// Clause by clause on decoded values, in the order written, without indexes.
    Regular,
    /// Clause by clause on encoded values where possible, in the order written, without indexes.
    Encoded,
    /// All clauses on all decoded rows, without indexes.
    Group,
    /// By indexes wherever the filters or joins allow, whatever the number of keys and rows.
    Index,
}

impl ScanStrategy {
    /// Every strategy.
    pub const ALL: [ScanStrategy; 5] = [
        ScanStrategy::Adaptive,
        ScanStrategy::Regular,
        ScanStrategy::Encoded,
        ScanStrategy::Group,
        ScanStrategy::Index,
    ];

    /// Its name in `SET`.
    pub fn name(self) -> &'static str {
        match self {
            ScanStrategy::Adaptive => "adaptive",
            ScanStrategy::Regular => "regular",
            ScanStrategy::Encoded => "encoded",
            ScanStrategy::Group => "group",
            ScanStrategy::Index => "index",
        }
    }
}

/// A bound statement that controls transactions or the session.
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
    /// `PREPARE name AS statement`: the statement as text.
    Prepare {
        /// The name, in lower case.
        name: String,
        /// The statement, which is parsed when this runs.
        sql: String,
    },
    /// `EXECUTE name (…)`.
    Execute {
        /// The name, in lower case.
        name: String,
        /// Values of the parameters.
        arguments: Vec<Value>,
    },
    /// `DEALLOCATE name`; all names if it is `None`.
    Deallocate(Option<String>),
    /// `WAIT FOR POSITION`.
    WaitFor {
        /// The position of the log.
        position: u64,
        /// How long to wait for it.
        timeout: Duration,
    },
    /// A statement without effect, such as `DROP INDEX IF EXISTS` of an index that does not exist.
    Nothing,
}

impl ControlStatement {
    /// Returns the line of its `EXPLAIN`.
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
                SessionOption::ScanStrategy(strategy) => {
                    format!("Set scan_strategy to {}", strategy.name())
                }
                SessionOption::LockTimeout(None) => "Set lock_timeout to the default".into(),
                SessionOption::LockTimeout(Some(ms)) => format!("Set lock_timeout to {ms} ms"),
            },
            ControlStatement::Prepare { name, .. } => format!("Prepare {name}"),
            ControlStatement::Execute { name, .. } => format!("Execute {name}"),
            ControlStatement::Deallocate(Some(name)) => format!("Deallocate {name}"),
            ControlStatement::Deallocate(None) => "Deallocate all".into(),
            ControlStatement::WaitFor { position, timeout } => {
                format!("WaitFor position {position}, {} s", timeout.as_secs())
            }
            ControlStatement::Nothing => "Nothing".into(),
        }
    }
}
