//! Creates temporary files: copies of pipes, and exports until they are complete.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

/// Creates a file with a unique name that begins with `stem`, open for reading and writing. The
/// process's umask applies to `mode`.
pub fn create(folder: &Path, stem: &OsStr, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut number = 0u64;
    loop {
        let mut name = stem.to_owned();
        name.push(format!(".{}-{number}.partial", process::id()));
        let path = folder.join(name);
        match OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&path) {
            // Belongs to another thread, or is left from a killed process that had the same id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            opened => return opened.map(|file| (path, file)),
        }
    }
}

/// Creates a folder with a unique name that begins with `stem`, among the temporary files.
pub fn create_folder(stem: &str) -> io::Result<PathBuf> {
    let mut number = 0u64;
    loop {
        let path = std::env::temp_dir().join(format!("{stem}.{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|()| path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_not_overwritten() {
        let make = || create(&std::env::temp_dir(), OsStr::new("nacre-scratch"), 0o600).unwrap();
        let (first, _) = make();
        std::fs::write(&first, "mine").unwrap();
        let (second, _) = make();
        assert_ne!(first, second);
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "mine");
        [first, second].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
