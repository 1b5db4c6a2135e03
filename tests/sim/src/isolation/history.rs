//! A history: what each transaction did and read, and when it began and ended.

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Appended a number, unique in the history, to the list of a key.
    Append {
        /// Which list.
        key: usize,
        /// What.
        value: u64,
    },
    /// Read the list of a key.
    Read {
        /// Which list.
        key: usize,
        /// What it held.
        values: Vec<u64>,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its commit was acknowledged.
    Committed,
    /// It was rolled back, or refused.
    Aborted,
}

/// Before and after a call, on a clock that all sessions share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Before the call.
    pub called: u64,
    /// After it.
    pub answered: u64,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// What it did that succeeded, in order.
    pub events: Vec<Event>,
    /// `BEGIN`.
    pub begin: Span,
    /// `COMMIT` or `ROLLBACK`.
    pub finish: Span,
    /// How it ended.
    pub end: End,
}

/// All transactions; the last of them has read every list after all others.
pub type History = Vec<Transaction>;
