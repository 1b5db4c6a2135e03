//! The findings of a check, and what it remembers of keys. A step that met absent bytes is taken
//! back from both.

use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{Error, Result};

/// Maximum number of listed findings.
const MAX_FINDINGS: usize = 100;

/// Findings, one sentence each.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    /// Adds a finding, or notes once that there are too many.
    pub fn add(&mut self, finding: String) {
        if self.0.len() < MAX_FINDINGS {
            self.0.push(finding);
        } else if self.0.len() == MAX_FINDINGS {
            self.0.push("further findings are not listed".into());
        }
        debug_assert!(self.0.len() <= MAX_FINDINGS + 1, "{} findings are listed", self.0.len());
    }

    /// Adds the error of a check under a place. Fails if it only met absent bytes.
    pub fn check(&mut self, place: &str, checked: Result<()>) -> Result<()> {
        match checked {
            Err(error) if error.missing().is_some() => return Err(error),
            Err(error) => self.add(format!("{place}: {}", error.message())),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Verifies a file; returns whether it is damaged. Fails with everything that was absent.
    pub fn verify(&mut self, place: &str, file: &Segment) -> Result<bool> {
        let problems = file.verify();
        let mut missing = problems.iter().filter(|problem| problem.missing().is_some());
        if let Some(first) = missing.next() {
            return Err(missing.fold(first.clone(), Error::and_missing));
        }
        problems.iter().for_each(|problem| self.add(format!("{place}: {}", problem.message())));
        Ok(!problems.is_empty())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets those after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        debug_assert!(len <= self.0.len(), "{len} of {} findings are kept", self.0.len());
        self.0.truncate(len);
    }

    /// All findings.
    pub fn into_list(self) -> Vec<String> {
        self.0
    }
}

/// Fingerprints of keys, or of unique values, each of which may occur once.
#[derive(Default)]
pub(super) struct Seen {
    all: Set<(u64, u64)>,
    /// Those of the step in progress.
    new: Vec<(u64, u64)>,
}

impl Seen {
    /// Adds one; returns whether it is there for the first time.
    pub fn insert(&mut self, fingerprint: (u64, u64)) -> bool {
        debug_assert!(self.new.len() <= self.all.len(), "new keys are not among all");
        let is_new = self.all.insert(fingerprint);
        if is_new {
            self.new.push(fingerprint);
        }
        is_new
    }

    /// Keeps what the step has added.
    pub fn keep(&mut self) {
        self.new.clear();
    }

    /// Forgets what the step has added.
    pub fn undo(&mut self) {
        for fingerprint in self.new.drain(..) {
            let was_there = self.all.remove(&fingerprint);
            debug_assert!(was_there, "a key that a step has added is not there");
        }
    }
}
