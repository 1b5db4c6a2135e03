//! The project as files and packages: what lies under version control, and what Cargo knows of it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's top folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Runs a command in the top folder and answers with its standard output.
fn output(program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program).args(arguments).current_dir(root()).output();
    match run {
        Ok(done) if done.status.success() => String::from_utf8_lossy(&done.stdout).into_owned(),
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    }
}

/// Files under version control or about to be, relative to the top folder, with `/`.
pub fn files() -> Vec<String> {
    let listed = output("git", &["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut files: Vec<String> =
        listed.lines().filter(|f| root().join(f).is_file()).map(ToString::to_string).collect();
    files.sort();
    files.dedup();
    files
}

/// Files whose name ends with one of these.
pub fn files_ending(endings: &[&str]) -> Vec<String> {
    files().into_iter().filter(|f| endings.iter().any(|e| f.ends_with(e))).collect()
}

/// A file's text; empty when it is not text.
pub fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_default()
}

/// `cargo metadata` of the workspace, without dependencies' own.
pub fn metadata() -> serde_json::Value {
    let text =
        output(env!("CARGO"), &["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    serde_json::from_str(&text).unwrap_or_default()
}

/// `cargo metadata` with everything that is built for this machine.
pub fn dependencies() -> serde_json::Value {
    let version = output("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let options = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    serde_json::from_str(&output(env!("CARGO"), &options)).unwrap_or_default()
}

/// Every package of the workspace with the root files of its targets, sorted by name.
pub fn packages() -> Vec<(String, Vec<String>)> {
    let top = root().to_string_lossy().replace('\\', "/");
    let all = metadata()["packages"].as_array().cloned().unwrap_or_default();
    let mut packages: Vec<(String, Vec<String>)> = all
        .iter()
        .map(|package| {
            let targets = package["targets"].as_array().cloned().unwrap_or_default();
            let roots = targets.iter().filter_map(|t| t["src_path"].as_str()).filter_map(|path| {
                let path = path.replace('\\', "/");
                path.strip_prefix(&format!("{top}/")).map(ToString::to_string)
            });
            (package["name"].as_str().unwrap_or_default().to_string(), roots.collect())
        })
        .collect();
    packages.sort();
    packages
}

/// Whether a Rust file is a test as a whole.
pub fn is_test_file(file: &str) -> bool {
    file.starts_with("tests/")
        || file.starts_with("engine/testing/")
        || file.ends_with("/tests.rs")
        || file.contains("/tests/")
        || file.ends_with("conformance.rs")
}
