//! Runs the command in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A temporary folder that is removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-command-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nacre"));
        command.args(arguments).current_dir(&self.0).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    /// Runs the command. Returns exit code, standard output and standard error.
    pub fn nacre(&self, arguments: &[&str]) -> (i32, String, String) {
        outcome(&self.command(arguments).output().unwrap())
    }

    /// Like [`Folder::nacre`], with the input piped to standard input.
    pub fn piped(&self, arguments: &[&str], input: &[u8]) -> (i32, String, String) {
        use std::io::Write;
        let mut command = self.command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // The command may close its standard input early.
        let _ = pipe.write_all(input);
        drop(pipe);
        outcome(&child.wait_with_output().unwrap())
    }

    /// Runs the command with closed standard output and the input as a file on standard input.
    /// Returns exit code and standard error.
    pub fn with_closed_output(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let input = std::fs::File::open(self.file("input", input.as_bytes())).unwrap();
        let mut command = self.command(arguments);
        let (code, _, error) = outcome(&command.stdin(input).stdout(writer).output().unwrap());
        (code, error)
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, error) = self.nacre(arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        out
    }

    /// Runs SQL that must succeed. Returns the result as CSV.
    pub fn csv(&self, url: &str, sql: &str) -> String {
        self.ok(&["sql", url, sql, "--format", "csv"])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns exit code, standard output and standard error of a finished process.
pub fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Lists the segment files of a database.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|p| p.to_string_lossy().contains("/seg")).collect();
    found.sort();
    found
}
