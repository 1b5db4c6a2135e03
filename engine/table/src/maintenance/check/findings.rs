//! What a check has found.

/// More findings than these are not listed.
const MAX_FINDINGS: usize = 100;

/// One sentence per finding.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    /// Adds a finding, unless there are too many.
    pub fn add(&mut self, finding: String) {
        if self.0.len() < MAX_FINDINGS {
            self.0.push(finding);
        } else if self.0.len() == MAX_FINDINGS {
            self.0.push("further findings are not listed".into());
        }
        debug_assert!(self.0.len() <= MAX_FINDINGS + 1, "{} findings are listed", self.0.len());
    }

    /// All findings.
    pub fn into_list(self) -> Vec<String> {
        self.0
    }
}
