//! The findings of a check.

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

    /// All findings.
    pub fn into_list(self) -> Vec<String> {
        self.0
    }
}
