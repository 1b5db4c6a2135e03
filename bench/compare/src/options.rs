//! Options of the workloads: `--name value` pairs, each with a default that the published figures
//! use.

use crate::measure::Outcome;
use std::str::FromStr;

/// The pairs given on the command line.
pub struct Options(Vec<(String, String)>);

/// The option names of all workloads.
const KNOWN: [&str; 10] =
    ["clients", "io", "queries", "rounds", "rows", "scale", "seconds", "show", "there", "writers"];

impl Options {
    /// Reads the rest of a command line.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Options> {
        let mut pairs = Vec::new();
        while let Some(argument) = arguments.next() {
            let name = argument.strip_prefix("--").unwrap_or_default().to_string();
            if !KNOWN.contains(&name.as_str()) {
                return Err(
                    format!("{argument} is no option; there are --{}", KNOWN.join(", --")).into()
                );
            }
            let value = arguments.next().ok_or_else(|| format!("{argument} takes a value"))?;
            pairs.push((name, value));
        }
        Ok(Options(pairs))
    }

    /// Returns the option's value, or the default.
    pub fn get<T: FromStr>(&self, name: &str, default: T) -> Outcome<T> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| format!("--{name} {text} is not a possible value").into())
            }
        }
    }

    /// Returns the text of the option's value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
