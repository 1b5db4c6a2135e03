//! The engine's only error type. Kinds are few and public; each implies what the caller should do.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Coarse classification of an error. Rust and TypeScript have the same set with the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not valid SQL.
    Syntax,
    /// Types do not match, or a value does not fit its type.
    Type,
    /// A table, column, function or file does not exist.
    NotFound,
    /// A table, column or index of that name already exists.
    AlreadyExists,
    /// The statement would violate a uniqueness or not-null constraint.
    Constraint,
    /// Another transaction changed the row; roll back and retry the transaction.
    Conflict,
    /// Waiting for a row lock timed out.
    LockTimeout,
    /// Transactions waited for each other's locks; retry the transaction.
    Deadlock,
    /// A memory, size or nesting limit was exceeded.
    Limit,
    /// Temporarily unavailable; retry later.
    Unavailable,
    /// Another process or tab has the database open.
    InUse,
    /// Stored bytes differ from what was written.
    Corrupt,
    /// The operating system or runtime refused an operation on a file.
    Io,
    /// A feature that is not supported; the message names it.
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

    /// Returns the kind with this name, if any.
    pub fn from_name(name: &str) -> Option<ErrorKind> {
        ErrorKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Stable lower-case name that users see.
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

    /// SQLSTATE of errors of this kind that carry no more specific one.
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

/// Distinctions within a kind that the engine itself makes. Control flow branches on a kind or a
/// reason, never on an SQLSTATE or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A row with the same unique key exists.
    DuplicateKey,
    /// A value is outside the range of its type.
    OutOfRange,
    /// A store can hold no further file for now.
    NoFile,
    /// The disk, or the quota of the origin, is full. A write that failed so was not done, or in part.
    NoSpace,
    /// A name is unknown but close to a known one, which the message suggests.
    Misspelled,
    /// A position is not, or no longer, in the log: its reader must start again from a snapshot.
    LogGone,
    /// The database was opened only to be read.
    ReadOnly,
    /// A read met bytes that are not there: [`Error::missing`] names them. The operation that failed
    /// can be repeated once they were fetched.
    NotResident,
    /// A statement wants bytes to be brought that are not there, and then goes on without reading them.
    ToWarm,
    /// A newer writer has the blobs of this database.
    Fenced,
    /// A database that only reads blobs has not renewed its lease in time, and they were removed.
    LeaseLost,
    /// Too many rows of a load share unique keys for it to choose among them. One by one they can be
    /// written.
    SharedKeys,
    /// A commit is done, and waits for its upload.
    NotUploaded,
    /// A statement's time slice is over. The call that failed goes on when it is called again.
    TimeSliceOver,
}

/// Ranges of a file that are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name of the file.
    pub file: Arc<str>,
    /// Ranges in bytes: ascending, and apart.
    pub ranges: Vec<Range<u64>>,
}

impl Missing {
    /// Adds what another read of the same file missed.
    pub fn extend(&mut self, other: &Missing) {
        debug_assert!(self.file == other.file, "{} misses bytes of {}", self.file, other.file);
        self.ranges.extend(other.ranges.iter().cloned());
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.ranges.dedup_by(|next, range| {
            let meets = next.start <= range.end;
            if meets {
                range.end = range.end.max(next.end);
            }
            meets
        });
    }
}

/// A position in SQL text.
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
    /// At most one for each file.
    missing: Vec<Missing>,
}

/// An error: a kind, a message and optional details. One pointer wide.
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
    /// Creates an error of any kind.
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
            missing: Vec::new(),
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
        /// [`ErrorKind::Corrupt`]; the message must say what is corrupt, and where.
        corrupt => Corrupt;
        /// [`ErrorKind::Io`]
        io => Io;
        /// [`ErrorKind::Unsupported`]; the message must name the feature.
        unsupported => Unsupported;
        /// [`ErrorKind::Closed`]
        closed => Closed;
    }

    /// [`ErrorKind::Cancelled`]: the caller cancelled the statement.
    #[cold]
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "the statement was cancelled")
    }

    /// Error for a number that does not fit its type: kind `type`, SQLSTATE 22003.
    #[cold]
    pub fn out_of_range(message: impl Into<String>) -> Error {
        Error::type_error(message).with_sqlstate("22003").with_reason(Reason::OutOfRange)
    }

    /// Error for a duplicate unique key: kind `constraint`, SQLSTATE 23505.
    #[cold]
    pub fn duplicate_key(message: impl Into<String>) -> Error {
        Error::constraint(message).with_sqlstate("23505").with_reason(Reason::DuplicateKey)
    }

    /// Error for a change of a database that was opened only to be read: kind `unsupported`,
    /// SQLSTATE 25006.
    #[cold]
    pub fn read_only() -> Error {
        Error::unsupported("the database was opened read only")
            .with_sqlstate("25006")
            .with_reason(Reason::ReadOnly)
    }

    /// Error for a writer that another one has replaced: kind `in_use`, SQLSTATE 55N01.
    #[cold]
    pub fn fenced() -> Error {
        Error::in_use("fenced: another writer has taken over the blobs of this database")
            .with_sqlstate("55N01")
            .with_reason(Reason::Fenced)
            .with_hint("open it again, with an empty folder")
    }

    /// Error for a read of blobs that were removed after the lease of their reader had ended: kind `unavailable`.
    #[cold]
    pub fn lease_lost(message: &str) -> Error {
        Error::new(ErrorKind::Unavailable, format!("lease lost: {message}"))
            .with_reason(Reason::LeaseLost)
            .with_hint("refresh the database, which takes a new lease")
    }

    /// A store that can hold no further file for now: kind `limit`.
    #[cold]
    pub fn no_file(message: impl Into<String>) -> Error {
        Error::limit(message).with_reason(Reason::NoFile)
    }

    /// A read of these ranges, which are not there: kind `io`, should nothing fetch them.
    #[cold]
    pub fn not_resident(missing: Missing) -> Error {
        debug_assert!(!missing.ranges.is_empty(), "nothing of {} is missing", missing.file);
        debug_assert!(
            missing.ranges.windows(2).all(|pair| pair[0].end < pair[1].start),
            "missing ranges are coalesced: {missing:?}"
        );
        let mut error = Error::io("bytes of a file are not there").with_reason(Reason::NotResident);
        error.0.missing.push(missing);
        error
    }

    /// Ranges that are to be brought, and not kept: kind `io`, should nothing fetch them.
    #[cold]
    pub fn to_warm(missing: Missing) -> Error {
        Error::not_resident(missing).with_reason(Reason::ToWarm)
    }

    /// Adds what another call missed, if it missed anything, so that both are fetched at once.
    #[cold]
    pub fn and_missing(mut self, other: &Error) -> Error {
        debug_assert!(!self.0.missing.is_empty(), "bytes are added to the error {self}");
        for missing in &other.0.missing {
            match self.0.missing.iter_mut().find(|known| known.file == missing.file) {
                Some(known) => known.extend(missing),
                None => self.0.missing.push(missing.clone()),
            }
        }
        self
    }

    /// The end of a time slice: kind `unavailable`, should nothing continue the call.
    #[cold]
    pub fn time_slice_over() -> Error {
        Error::new(ErrorKind::Unavailable, "the statement gave way to others")
            .with_reason(Reason::TimeSliceOver)
    }

    /// Sets the reason.
    pub fn with_reason(mut self, reason: Reason) -> Error {
        self.0.reason = Some(reason);
        self
    }

    /// Replaces the SQLSTATE.
    pub fn with_sqlstate(mut self, sqlstate: &'static str) -> Error {
        self.0.sqlstate = Some(sqlstate);
        self
    }

    /// Adds a position in the SQL text, unless the error already has one.
    pub fn at(mut self, position: Option<Position>) -> Error {
        self.0.position = self.0.position.or(position);
        self
    }

    /// Adds a hint, such as "did you mean `name`?".
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Appends a clause to the message, after a semicolon.
    pub fn and(mut self, more: impl fmt::Display) -> Error {
        self.0.message = format!("{}; {more}", self.0.message);
        self
    }

    /// Sets the table of the violated constraint.
    pub fn with_table(mut self, table: impl Into<String>) -> Error {
        self.0.table = Some(table.into());
        self
    }

    /// Sets the violated key: an index name or columns.
    pub fn with_key(mut self, key: impl Into<String>) -> Error {
        self.0.key = Some(key.into());
        self
    }

    /// Prefixes the message with `context: `, except that of a pause, which is not shown to users.
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        if self.is_pause() {
            return self;
        }
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message, without kind, hint and position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Five-character SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate.unwrap_or(self.0.kind.sqlstate())
    }

    /// Reason within the kind, if the engine distinguishes one.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Whether the call that failed goes on when it is called again: after the absent bytes were
    /// fetched, or in the next time slice.
    pub fn is_pause(&self) -> bool {
        matches!(self.0.reason, Some(Reason::NotResident | Reason::ToWarm | Reason::TimeSliceOver))
    }

    /// The bytes that are not there, for an error with [`Reason::NotResident`].
    pub fn missing(&self) -> Option<&[Missing]> {
        Some(&self.0.missing[..]).filter(|missing| !missing.is_empty())
    }

    /// Position in the SQL text.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// Hint for the user.
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
