//! What runs have walked: paths of the engine, faults in the middle of them, cancelled statements.
//! Shows whether the workloads still reach what they are there for.

use crate::disk::Struck;
use nacredb::walked::{self, PATHS, Path};
use std::collections::BTreeMap;
use std::fmt;

/// How often something was walked, by name.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeMap<String, u64>);

/// Paths in the middle of which a call must fail, and the machine or the process stop.
const STRUCK: [Path; 9] = [
    Path::Load,
    Path::LoadRound,
    Path::LoadEnd,
    Path::Flush,
    Path::Merge,
    Path::Snapshot,
    Path::Build,
    Path::ManyUpdated,
    Path::ManyCommitted,
];

/// Paths in the middle of which the disk must be full: those that write files. A load ends, and many
/// rows are deleted, by a record in a log that has its space already.
const FULL: [Path; 6] =
    [Path::Load, Path::Flush, Path::Merge, Path::Snapshot, Path::Build, Path::ManyUpdated];

/// Statements that must be cancelled before their end.
const CANCELLED: [&str; 3] = ["load", "many-deleted", "other-write"];

fn name_of(path: Path) -> &'static str {
    PATHS[path as usize].0
}

fn struck(what: Struck, path: Path) -> String {
    let what = match what {
        Struck::Fail => "fail",
        Struck::Full => "full",
        Struck::Crash => "crash",
    };
    format!("{what}:{}", name_of(path))
}

impl Coverage {
    /// The paths walked on this thread since the counts were reset.
    pub fn of_thread() -> Coverage {
        let counts = PATHS.iter().zip(walked::counts());
        Coverage(counts.map(|((name, _), count)| (name.to_string(), count)).collect())
    }

    /// Counts something.
    pub fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.0.entry(name.into()).or_default() += count;
    }

    /// Counts faults that struck in the middle of a path.
    pub fn add_struck(&mut self, what: Struck, path: Path, count: u64) {
        self.add(struck(what, path), count);
    }

    /// Adds the counts of another run.
    pub fn extend(&mut self, other: &Coverage) {
        other.0.iter().for_each(|(name, count)| self.add(name.as_str(), *count));
    }

    /// What a thousand seeds must walk and these runs have not.
    pub fn missing(&self) -> Vec<String> {
        let mut wanted: Vec<String> = PATHS.iter().map(|(name, _)| (*name).to_string()).collect();
        for path in STRUCK {
            wanted.extend([Struck::Fail, Struck::Crash].map(|what| struck(what, path)));
        }
        wanted.extend(FULL.map(|path| struck(Struck::Full, path)));
        wanted.extend(CANCELLED.map(|what| format!("cancel:{what}")));
        let others = [
            "absent",
            "absent-unblocked",
            "space-given-back",
            "ddl-in-transaction",
            "table-altered-in-transaction",
        ];
        wanted.extend(others.map(String::from));
        wanted.retain(|name| self.0.get(name).is_none_or(|count| *count == 0));
        wanted
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "walked:")?;
        self.0.iter().try_for_each(|(name, count)| write!(f, " {name}={count}"))
    }
}
