//! A history: the operations of each transaction, the values it read, and when it began and ended.

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Appended a number, unique in the history, to the list of a key.
    Append {
        /// The list.
        key: usize,
        /// The number appended.
        value: u64,
    },
    /// Read the list of a key.
    Read {
        /// The list.
        key: usize,
        /// The values read.
        values: Vec<u64>,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its commit was acknowledged.
    Committed,
    /// It was rolled back or rejected.
    Aborted,
}

/// The moments before and after a call, on a clock that all sessions share.
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
    /// Its successful operations, in order.
    pub events: Vec<Event>,
    /// `BEGIN`.
    pub begin: Span,
    /// `COMMIT` or `ROLLBACK`.
    pub finish: Span,
    /// How it ended.
    pub end: End,
}

/// All transactions. The last one read every list after all others had ended.
pub type History = Vec<Transaction>;
