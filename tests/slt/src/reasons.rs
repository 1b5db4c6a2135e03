//! The most frequent reasons of failed records: messages without the names and numbers in them.

use crate::script::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Failed records by reason.
#[derive(Debug, Default)]
pub struct Reasons {
    found: BTreeMap<String, Found>,
}

#[derive(Debug, Default)]
struct Found {
    records: usize,
    scripts: BTreeSet<String>,
}

impl Reasons {
    /// Adds the failed records of a script.
    pub fn add(&mut self, script: &str, failures: &[Failure]) {
        for failure in failures {
            let found = self.found.entry(reason(&failure.what)).or_default();
            found.records += 1;
            found.scripts.insert(script.to_string());
        }
    }

    /// Returns the reasons of most scripts, as `scripts, records: reason`.
    pub fn most_frequent(&self, number: usize) -> Vec<String> {
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_by_key(|(_, found)| std::cmp::Reverse((found.scripts.len(), found.records)));
        let line = |(reason, found): &(&String, &Found)| {
            format!("{}, {}: {reason}", found.scripts.len(), found.records)
        };
        all.iter().take(number).map(line).collect()
    }
}

/// Shortens a message to what messages of its kind share. Results that differ are one kind.
fn reason(message: &str) -> String {
    let differs = message.split_once(' ').is_some_and(|(rows, rest)| {
        rows.bytes().all(|b| b.is_ascii_digit())
            && (rest.starts_with("rows [") || rest.starts_with("columns, expected"))
    });
    if differs || message.ends_with(", not [") {
        return "wrong answer".into();
    }
    let line = message.lines().next().unwrap_or_default();
    // The features and functions that are missing keep their names.
    let keep = ["no function", "unsupported"].iter().any(|kind| line.contains(kind));
    let mut out = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            _ if keep && !c.is_ascii_digit() => out.push(c),
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '`' || c == '\'' => {
                quote = Some(c);
                out.push('…');
            }
            None if c.is_ascii_digit() => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_do_not_count() {
        let failure = |what: &str| Failure { line: 1, sql: String::new(), what: what.into() };
        let mut reasons = Reasons::default();
        let first = ["no table `a` (line 1)", "2 rows [[\"1\"]], expected [\"2\"]"];
        reasons.add("x", &first.map(failure));
        reasons.add("y", &[failure("no table `b` (line 27)")]);
        assert_eq!(reasons.most_frequent(1), ["2, 2: no table … (line #)"]);
        assert_eq!(reasons.most_frequent(9).last().map(String::as_str), Some("1, 1: wrong answer"));
    }
}
