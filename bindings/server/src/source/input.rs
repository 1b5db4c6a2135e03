//! The bytes of an imported file, which can be read more than once. Anything but a regular file,
//! such as a pipe, is first copied to a temporary file.

use crate::failure::file_error;
use crate::scratch;
use nacredb::{Error, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file.
#[derive(Clone)]
pub struct Input {
    path: PathBuf,
    file: Arc<File>,
    size: u64,
    reopens: bool,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Input> {
        let failed = |error: io::Error| file_error(path, &error);
        let is_stdin = path == Path::new("-");
        let mut file = match is_stdin {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        }
        .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Error::io(format!("{}: is a folder", path.display())));
        }
        // Another process may have read the beginning of a file on standard input. The import then
        // starts at the current position.
        let is_whole = metadata.is_file() && file.stream_position().map_err(failed)? == 0;
        if !is_whole {
            let folder = std::env::temp_dir();
            file = spool(file, &folder).map_err(|error| {
                Error::io(format!(
                    "{}: cannot copy to {}: {error}",
                    path.display(),
                    folder.display()
                ))
            })?;
        }
        let size = file.metadata().map_err(failed)?.len();
        Ok(Input {
            path: path.to_owned(),
            file: Arc::new(file),
            size,
            reopens: is_whole && !is_stdin,
        })
    }

    /// Returns the path as given by the user.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path can be opened again and yields the same bytes.
    pub fn can_be_reopened(&self) -> bool {
        self.reopens
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns a new reader, positioned at the beginning.
    pub fn reader(&self) -> InputReader {
        InputReader { file: self.file.clone(), at: 0 }
    }

    /// Returns the file itself, for readers that do not depend on the shared file position.
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|error| file_error(&self.path, &error))
    }
}

/// Copies everything to an unlinked file, which disappears with its last reader.
fn spool(mut from: File, folder: &Path) -> io::Result<File> {
    let (path, mut file) = scratch::create(folder, OsStr::new("nacre-import"), 0o600)?;
    std::fs::remove_file(path)?;
    io::copy(&mut from, &mut file)?;
    Ok(file)
}

/// A reader with its own position, independent of other readers of the file.
pub struct InputReader {
    file: Arc<File>,
    at: u64,
}

impl Read for InputReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for InputReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
            SeekFrom::End(distance) => self.file.metadata()?.len().checked_add_signed(distance),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::temp;
    use super::*;
    use nacredb::ErrorKind;

    #[test]
    fn readers_have_independent_positions() {
        let file = temp(".txt", b"0123456789");
        let input = Input::open(&file.0).unwrap();
        let (mut one, mut other) = (input.reader(), input.reader());
        let read = |reader: &mut InputReader, count: u64| {
            let mut text = String::new();
            reader.take(count).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(&mut one, 4), "0123");
        assert_eq!(read(&mut other, 100), "0123456789");
        assert_eq!(read(&mut one, 2), "45");
        assert_eq!(one.seek(SeekFrom::End(-3)).unwrap(), 7);
        assert_eq!(one.seek(SeekFrom::Current(1)).unwrap(), 8);
        assert_eq!(read(&mut one, 100), "89");
        assert!(one.seek(SeekFrom::Current(-11)).is_err());
        assert_eq!(Input::open(&std::env::temp_dir()).err().map(|e| e.kind()), Some(ErrorKind::Io));
    }
}
