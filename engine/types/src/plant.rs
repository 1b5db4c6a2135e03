//! Bugs that can be planted in the engine, to show that the tests which look for such bugs find
//! them.
//!
//! Only `tests/sim` enables the feature `plant`; no published build has it. Without it, [`is`] is
//! the constant `false` and every hook compiles to nothing. Each hook is one condition next to the
//! line that it breaks.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// Some syncs of the log are skipped.
    LostSync = 1,
    /// Recovery accepts a record with a wrong checksum.
    TornLog,
    /// A reader gets the delete bitmap without its newest deletes.
    StaleBitmap,
    /// A merge loses deletes that arrived while it ran.
    MergeRemap,
    /// A scan of rows in memory sees one commit too many.
    DirtyRead,
    /// A transaction may change a row that another one changed after its snapshot.
    LostUpdate,
    /// `SELECT … FOR UPDATE` reads and locks nothing.
    WriteSkewAllowed,
    /// A uniqueness check searches memory only, not segments.
    UniqueSkip,
    /// The build of a unique index misses rows that were committed during the build.
    IndexLate,
    /// A row that moves from a segment to memory gets no index entries.
    IndexEntry,
    /// A snapshot resolves a table name to a newer table that has taken the name since.
    NameReuse,
    /// The columns of a view's `*` are found by position instead of by name.
    ViewPlaces,
    /// A stream inside a transaction reads the latest commits instead of its snapshot.
    StreamNow,
    /// A prepared statement runs with its old binding after the catalog has changed.
    PreparedStale,
    /// The log promises to reach a position before it is durable there.
    ReachEarly,
    /// The record of a slice of a flush names a range that is one key too wide.
    FlushSlice,
    /// A merge leaves the rows it took in segments that it has not taken all rows of.
    RunOverlap,
    /// A load does not look at rows that were written since its last round.
    LoadPhaseTwo,
    /// The record of a transaction that deletes rows of segments together names every other segment.
    HalfHugeUpdate,
    /// A reader that follows the log keeps rows that were deleted from segments it knows.
    FollowDeletes,
    /// Rows that a flush left in memory for a snapshot stay there after it has ended.
    KeptRows,
    /// A scan leaves out a segment whose file cannot be opened when it is first read.
    LostOpen,
    /// A scan that met absent bytes leaves out the rest of its segment.
    LostResidency,
    /// A merge that met absent bytes leaves out the rows that it was about to read.
    LostStep,
    /// A load loses the first row of each step after the first in which it takes rows to a segment.
    LoadSlice,
    /// Background work that a change has made due is not put on the agenda.
    LostWork,
    /// The record of a transaction that changes the catalog lacks the tables that it drops.
    DdlHalf,
    /// A transaction that has altered a table moves rows from segments to memory as of its own version.
    DdlMove,
    /// A transaction that has altered a table does not verify rows that others have written since.
    DdlUnverified,
    /// A manifest names blobs before they are uploaded.
    UploadOrder,
    /// A file leaves the local disk before it is uploaded.
    EvictUnuploaded,
    /// Bytes that were read ahead are stored at another place.
    AheadShift,
    /// Blocks of the instance before are read as they are found.
    KeptUnverified,
    /// Blobs that the next manifest names are taken for what earlier writers have left.
    SweepEarly,
    /// A folder that others have overtaken goes on.
    JoinUnfenced,
    /// A warm-up leaves out the last ranges of a file.
    WarmShort,
    /// A manifest names the files of the one before, with a later position of the log.
    StaleManifest,
    /// A writer goes on although the manifest is another one's.
    FenceLate,
    /// Rows that go to a segment get the computed columns of their neighbours.
    ComputedKeys,
    /// A reader that follows the blobs does not notice that the log before was removed.
    FollowGap,
    /// Where commits wait for their upload, they are acknowledged before it.
    AcknowledgeEarly,
    /// Blobs are removed that a lease or a branch holds.
    GcRace,
    /// What a snapshot replaces is not written as a history.
    HistoryGap,
    /// Keys that rows refer to are not locked.
    FkRace,
}

/// All bugs with their names on the command line.
pub const BUGS: [(&str, Bug); 44] = [
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
    ("reach-early", Bug::ReachEarly),
    ("flush-slice", Bug::FlushSlice),
    ("run-overlap", Bug::RunOverlap),
    ("load-phase-two", Bug::LoadPhaseTwo),
    ("half-huge-update", Bug::HalfHugeUpdate),
    ("follow-deletes", Bug::FollowDeletes),
    ("kept-rows", Bug::KeptRows),
    ("lost-open", Bug::LostOpen),
    ("lost-residency", Bug::LostResidency),
    ("lost-step", Bug::LostStep),
    ("load-slice", Bug::LoadSlice),
    ("lost-work", Bug::LostWork),
    ("ddl-half", Bug::DdlHalf),
    ("ddl-move", Bug::DdlMove),
    ("ddl-unverified", Bug::DdlUnverified),
    ("upload-order", Bug::UploadOrder),
    ("evict-unuploaded", Bug::EvictUnuploaded),
    ("ahead-shift", Bug::AheadShift),
    ("kept-unverified", Bug::KeptUnverified),
    ("sweep-early", Bug::SweepEarly),
    ("join-unfenced", Bug::JoinUnfenced),
    ("warm-short", Bug::WarmShort),
    ("stale-manifest", Bug::StaleManifest),
    ("fence-late", Bug::FenceLate),
    ("computed-keys", Bug::ComputedKeys),
    ("follow-gap", Bug::FollowGap),
    ("acknowledge-early", Bug::AcknowledgeEarly),
    ("gc-race", Bug::GcRace),
    ("history-gap", Bug::HistoryGap),
    ("fk-race", Bug::FkRace),
];

/// Whether a bug is planted.
#[cfg(not(feature = "plant"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(feature = "plant")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Whether a bug is planted.
#[cfg(feature = "plant")]
pub fn is(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Plants the bug with this name in place of the previous one. Returns `false` if there is no such
/// bug.
#[cfg(feature = "plant")]
pub fn set(name: &str) -> bool {
    let found = BUGS.iter().find(|(known, _)| *known == name);
    if let Some((_, bug)) = found {
        PLANTED.store(*bug as u8, std::sync::atomic::Ordering::Relaxed);
    }
    found.is_some()
}
