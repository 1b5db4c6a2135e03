//! `cargo run -p nacre-tidy -- circles [CRATE…]`: prints the import circles inside crates and
//! inside the folders of TypeScript, with the names that tie each, and a line a crate.

use nacre_tidy::circles;
use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout().lock();
    match arguments.split_first() {
        Some((verb, wanted)) if verb == "circles" => {
            let parts = circles::parts();
            let parts = parts.iter().filter(|p| wanted.is_empty() || wanted.contains(&p.name));
            for part in parts.clone() {
                for circle in &part.circles {
                    writeln!(out, "{}: {circle}", part.name)?;
                }
            }
            for part in parts {
                writeln!(out, "{part}")?;
            }
            Ok(())
        }
        _ => writeln!(out, "usage: nacre-tidy circles [CRATE…]"),
    }
}
