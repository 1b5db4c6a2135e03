//! Describes faults: which call on which file, and the fault. Their effects are documented in
//! [`disk`].
//!
//! [`disk`]: crate::disk

use nacredb::walked::Path;

/// A kind of disk call.
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

/// What a file belongs to, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A chunk of the log.
    Log,
    /// A segment, or a separate index part or hash table.
    Segment,
    /// A snapshot.
    Snapshot,
    /// A listing, or the file that says how far the log must reach.
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

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The call fails, as documented for its kind.
    Fail,
    /// Files cannot grow for this many calls.
    Full {
        /// Calls until there is space again.
        calls: u64,
    },
    /// No further file can be created for this many calls, or until the host prepares more.
    Crowded {
        /// Calls until files can be created again.
        calls: u64,
    },
    /// The call is slow.
    Slow {
        /// Milliseconds it takes.
        ms: u64,
    },
    /// The clocks jump: monotonic time forward, wall time in either direction.
    Jump {
        /// Milliseconds; if odd, wall time goes back by twice as much.
        ms: u64,
    },
    /// The machine loses power.
    PowerCut,
    /// The process is killed.
    Kill,
}

/// A fault at the `nth` call of a kind (any when `None`) on a class of files (any when `None`), in
/// the middle of a path of the engine (any when `None`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call.
    pub call: Option<Call>,
    /// The class of files.
    pub class: Option<Class>,
    /// The path.
    pub within: Option<Path>,
    /// Counted from zero since the database was opened.
    pub nth: u64,
    /// The fault.
    pub kind: FaultKind,
}

/// Counts of events on a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    /// Injected faults, except delays and jumps.
    pub faults: u64,
    /// Syncs of the log that succeeded.
    pub log_syncs: u64,
    /// Calls on the log that failed.
    pub log_failures: u64,
    /// Files that could not be removed.
    pub failed_removals: u64,
}
