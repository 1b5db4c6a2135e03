//! The vocabulary of faults: which call on which file, and what goes wrong. What each means is at the top of [`disk`].
//!
//! [`disk`]: crate::disk

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Listing all names.
    List,
    /// Opening a file.
    Open,
    /// Making a file.
    Create,
    /// Removing a file.
    Remove,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Changing the length.
    Truncate,
    /// Making durable.
    Sync,
}

/// What a file belongs to, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A chunk of the log.
    Log,
    /// A segment, or a part of an index or a hash table beside it.
    Segment,
    /// A snapshot.
    Snapshot,
    /// None of these: a listing.
    Folder,
}

impl Class {
    pub(crate) fn of(name: &str) -> Class {
        match name.split('-').next() {
            Some("log") => Class::Log,
            Some("seg" | "idx" | "hsh") => Class::Segment,
            Some("snap") => Class::Snapshot,
            _ => Class::Folder,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The call fails, as the module describes for its kind.
    Fail,
    /// From here on files cannot grow, for this many calls.
    Full {
        /// Calls until there is room again.
        calls: u64,
    },
    /// From here on no further file can be made, for this many calls or until a host prepares more.
    Crowded {
        /// Calls until there can be.
        calls: u64,
    },
    /// The call takes so long.
    Slow {
        /// Milliseconds.
        ms: u64,
    },
    /// The clocks jump: monotonic time ahead, wall time anywhere.
    Jump {
        /// Milliseconds; wall time goes back by twice as much when it is odd.
        ms: u64,
    },
    /// The machine loses power.
    PowerCut,
    /// The process is killed.
    Kill,
}

/// A fault at the `nth` call of a kind (any when `None`) on a class of files (any when `None`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind of call.
    pub call: Option<Call>,
    /// On which files.
    pub class: Option<Class>,
    /// Counted from zero since the database was opened.
    pub nth: u64,
    /// What happens.
    pub kind: FaultKind,
}

/// Counts of what happened on a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    /// Faults that were injected, but for slowness and jumps.
    pub faults: u64,
    /// Syncs of the log that succeeded.
    pub log_syncs: u64,
    /// Calls on the log that failed.
    pub log_failures: u64,
}
