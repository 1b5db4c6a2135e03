//! `cargo run -p nacre-tidy -- circles [CRATE…]` prints the import circles inside crates and inside
//! the folders of TypeScript, with the names that tie each, and a line a crate. `-- figures` prints
//! what `npm run tidy` shows of the source: `name=value`, a line each.

use nacre_tidy::{circles, measure};
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
        Some((verb, [])) if verb == "figures" => {
            let circles: usize = circles::parts().iter().map(|part| part.circles.len()).sum();
            let (assertions, functions) = measure::assertions(&measure::STORAGE);
            let (folder, entries) = measure::largest_folder();
            writeln!(out, "circles={circles}")?;
            writeln!(out, "assertions={:.2}", assertions as f64 / functions.max(1) as f64)?;
            writeln!(out, "largest_folder={entries}")?;
            writeln!(out, "median_lines={}", measure::median_lines())?;
            for name in measure::STORAGE {
                let (assertions, functions) = measure::assertions(&[name]);
                writeln!(out, "# {name}: {assertions} assertions, {functions} functions")?;
            }
            writeln!(out, "# the largest folder is {folder}")
        }
        _ => writeln!(out, "usage: nacre-tidy circles [CRATE…] | figures"),
    }
}
