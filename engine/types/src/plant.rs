//! Bugs that can be planted in the engine, to show that the tests that look for such bugs find them.
//!
//! Without the feature `plant`, which no published build has and nothing but `tests/sim` turns on, [`is`] is the
//! constant `false` and every hook is gone. Each hook is one condition beside the line that it breaks.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// Some syncs of the log are not done.
    LostSync = 1,
    /// Recovery takes a record whose bytes are not those that were written.
    TornLog,
    /// A reader gets the delete bitmap without its newest deletes.
    StaleBitmap,
    /// A merge forgets deletes that arrived while it ran.
    MergeRemap,
    /// A scan of rows in memory sees one commit too many.
    DirtyRead,
    /// A row may be changed although another transaction changed it after the snapshot.
    LostUpdate,
    /// `SELECT … FOR UPDATE` reads and locks nothing.
    WriteSkewAllowed,
    /// A unique value is looked for in memory only, not in segments.
    UniqueSkip,
    /// A new unique index does not look at rows that were committed while it looked at the others.
    IndexLate,
    /// A row that moves from a segment to memory is not entered in indexes.
    IndexEntry,
    /// A snapshot finds a table that took the name of another since, instead of that one.
    NameReuse,
    /// The columns that a view's `*` finds are taken by their places.
    ViewPlaces,
    /// A stream inside a transaction reads what is committed now.
    StreamNow,
    /// A prepared statement runs as it was bound, whatever has become of the catalog.
    PreparedStale,
}

/// All bugs and their names on the command line.
pub const BUGS: [(&str, Bug); 14] = [
    ("lost-sync", Bug::LostSync),
    ("torn-log", Bug::TornLog),
    ("stale-bitmap", Bug::StaleBitmap),
    ("merge-remap", Bug::MergeRemap),
    ("dirty-read", Bug::DirtyRead),
    ("lost-update", Bug::LostUpdate),
    ("write-skew-allowed", Bug::WriteSkewAllowed),
    ("unique-skip", Bug::UniqueSkip),
    ("index-late", Bug::IndexLate),
    ("index-entry", Bug::IndexEntry),
    ("name-reuse", Bug::NameReuse),
    ("view-places", Bug::ViewPlaces),
    ("stream-now", Bug::StreamNow),
    ("prepared-stale", Bug::PreparedStale),
];

/// Whether this bug is planted.
#[cfg(not(feature = "plant"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(feature = "plant")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Whether this bug is planted.
#[cfg(feature = "plant")]
pub fn is(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Plants a bug by its name, instead of the one before; `false` when there is none of that name.
#[cfg(feature = "plant")]
pub fn set(name: &str) -> bool {
    let found = BUGS.iter().find(|(known, _)| *known == name);
    if let Some((_, bug)) = found {
        PLANTED.store(*bug as u8, std::sync::atomic::Ordering::Relaxed);
    }
    found.is_some()
}
