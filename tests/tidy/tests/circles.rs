//! No two files of a crate, or of a folder of TypeScript, use each other in a loop.

use nacre_tidy::circles;
use std::fmt::Write as _;

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let parts = circles::parts();
    let mut findings = String::new();
    for part in &parts {
        for error in &part.errors {
            let _ = writeln!(findings, "{}: not read: {error}", part.name);
        }
        for circle in &part.circles {
            let _ = writeln!(findings, "{}: {circle}", part.name);
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}
