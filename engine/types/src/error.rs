//! The one error type. Kinds are few and public; each tells its reader what to do.

use std::fmt;

/// What went wrong, coarsely. The same set, with the same names, in Rust and TypeScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not SQL we can parse.
    Syntax,
    /// Types do not fit, or a value does not fit its type.
    Type,
    /// A table, column, function or file does not exist.
    NotFound,
    /// A table, column or index of that name exists.
    AlreadyExists,
    /// A uniqueness or not-null constraint would be broken.
    Constraint,
    /// Another transaction changed the row; roll back and retry the transaction.
    Conflict,
    /// A row lock was not free in time.
    LockTimeout,
    /// Two transactions waited for each other; retry the transaction.
    Deadlock,
    /// A memory, size or nesting limit.
    Limit,
    /// Not reachable now; retry later.
    Unavailable,
    /// Another process or tab has the database open.
    InUse,
    /// Stored bytes are not what was written.
    Corrupt,
    /// The operating system or runtime refused an operation on a file.
    Io,
    /// A feature we do not have; the message names it.
    Unsupported,
    /// The caller cancelled the call.
    Cancelled,
    /// The database or session is closed.
    Closed,
}

impl ErrorKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [ErrorKind; 16] = {
        use ErrorKind::*;
        [
            Syntax,
            Type,
            NotFound,
            AlreadyExists,
            Constraint,
            Conflict,
            LockTimeout,
            Deadlock,
            Limit,
            Unavailable,
            InUse,
            Corrupt,
            Io,
            Unsupported,
            Cancelled,
            Closed,
        ]
    };

    /// The kind of a name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<ErrorKind> {
        ErrorKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Stable lower-case name, as users see it.
    pub fn name(self) -> &'static str {
        use ErrorKind::*;
        match self {
            Syntax => "syntax",
            Type => "type",
            NotFound => "not_found",
            AlreadyExists => "already_exists",
            Constraint => "constraint",
            Conflict => "conflict",
            LockTimeout => "lock_timeout",
            Deadlock => "deadlock",
            Limit => "limit",
            Unavailable => "unavailable",
            InUse => "in_use",
            Corrupt => "corrupt",
            Io => "io",
            Unsupported => "unsupported",
            Cancelled => "cancelled",
            Closed => "closed",
        }
    }

    /// The SQLSTATE used when the error carries no more exact one.
    pub fn sqlstate(self) -> &'static str {
        use ErrorKind::*;
        match self {
            Syntax => "42601",
            Type => "42804",
            NotFound => "42704",
            AlreadyExists => "42710",
            Constraint => "23000",
            Conflict => "40001",
            LockTimeout => "55P03",
            Deadlock => "40P01",
            Limit => "54000",
            Unavailable => "57P03",
            InUse => "55006",
            Corrupt => "XX001",
            Io => "58030",
            Unsupported => "0A000",
            Cancelled => "57014",
            Closed => "08003",
        }
    }
}

/// What the engine tells apart within a kind. Control flow branches on a kind or a reason, never on an SQLSTATE or a
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A unique key is taken.
    DuplicateKey,
    /// A value is outside the range of its type.
    OutOfRange,
}

/// A place in SQL text: byte offset from zero, line and column from one (columns in characters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    sqlstate: Option<&'static str>,
    reason: Option<Reason>,
    position: Option<Position>,
    hint: Option<String>,
    table: Option<String>,
    key: Option<String>,
}

/// An error: a kind, a sentence, and what else is known. One pointer wide.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

/// Shorthand used by the whole engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $($(#[$doc])* #[cold] pub fn $name(message: impl Into<String>) -> Error { Error::new(ErrorKind::$kind, message) })*
    };
}

impl Error {
    /// An error of any kind.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            sqlstate: None,
            reason: None,
            position: None,
            hint: None,
            table: None,
            key: None,
        }))
    }

    constructors! {
        /// [`ErrorKind::Syntax`]
        syntax => Syntax;
        /// [`ErrorKind::Type`]
        type_error => Type;
        /// [`ErrorKind::NotFound`]
        not_found => NotFound;
        /// [`ErrorKind::AlreadyExists`]
        already_exists => AlreadyExists;
        /// [`ErrorKind::Constraint`]
        constraint => Constraint;
        /// [`ErrorKind::Conflict`]
        conflict => Conflict;
        /// [`ErrorKind::Limit`]
        limit => Limit;
        /// [`ErrorKind::InUse`]
        in_use => InUse;
        /// [`ErrorKind::Corrupt`]: say what and where.
        corrupt => Corrupt;
        /// [`ErrorKind::Io`]
        io => Io;
        /// [`ErrorKind::Unsupported`]: name the feature.
        unsupported => Unsupported;
        /// [`ErrorKind::Closed`]
        closed => Closed;
    }

    /// [`ErrorKind::Cancelled`]: its caller does not want the statement any more.
    #[cold]
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "the statement was cancelled")
    }

    /// A number that does not fit its type: kind `type`, SQLSTATE 22003.
    #[cold]
    pub fn out_of_range(message: impl Into<String>) -> Error {
        Error::type_error(message).with_sqlstate("22003").with_reason(Reason::OutOfRange)
    }

    /// A unique key that is taken: kind `constraint`, SQLSTATE 23505.
    #[cold]
    pub fn duplicate_key(message: impl Into<String>) -> Error {
        Error::constraint(message).with_sqlstate("23505").with_reason(Reason::DuplicateKey)
    }

    fn with_reason(mut self, reason: Reason) -> Error {
        self.0.reason = Some(reason);
        self
    }

    /// Replaces the SQLSTATE.
    pub fn with_sqlstate(mut self, sqlstate: &'static str) -> Error {
        self.0.sqlstate = Some(sqlstate);
        self
    }

    /// Adds a place in the SQL text, unless there is one already.
    pub fn at(mut self, position: Option<Position>) -> Error {
        self.0.position = self.0.position.or(position);
        self
    }

    /// Adds advice, such as "did you mean `name`?".
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Goes on with the sentence, after a semicolon.
    pub fn and(mut self, more: impl fmt::Display) -> Error {
        self.0.message = format!("{}; {more}", self.0.message);
        self
    }

    /// Names the table a constraint belongs to.
    pub fn with_table(mut self, table: impl Into<String>) -> Error {
        self.0.table = Some(table.into());
        self
    }

    /// Names the key (index name or columns) that was violated.
    pub fn with_key(mut self, key: impl Into<String>) -> Error {
        self.0.key = Some(key.into());
        self
    }

    /// Puts `context: ` in front of the message.
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence, without kind or position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Five-character SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate.unwrap_or(self.0.kind.sqlstate())
    }

    /// What the engine tells apart within the kind, where it does.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Place in the SQL text.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// Advice.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Table of a violated constraint.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// Violated key.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Whether running the same transaction again may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Conflict
                | ErrorKind::LockTimeout
                | ErrorKind::Deadlock
                | ErrorKind::Unavailable
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.name(), self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, "; {hint}")?;
        }
        if let Some(at) = self.0.position {
            write!(f, " (line {}, column {})", at.line, at.column)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
