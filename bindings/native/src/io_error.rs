//! The operating system's errors in the engine's words.

use nacre_host::Error;
use std::io::{self, ErrorKind};
use std::path::Path;

/// An `io` error that names the file and says what to do. `verb` completes "cannot … the file".
#[cold]
pub(crate) fn io_error(error: io::Error, path: &Path, verb: &str) -> Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull => Error::io(format!("no space left on the device of {path}"))
            .with_sqlstate("53100")
            .with_hint("free some space and reopen the database"),
        ErrorKind::QuotaExceeded => {
            Error::io(format!("the disk quota for {path} is used up")).with_sqlstate("53100")
        }
        ErrorKind::PermissionDenied => Error::io(format!("no permission to {verb} {path}")),
        ErrorKind::ReadOnlyFilesystem => {
            Error::io(format!("cannot {verb} {path}: the file system is read-only"))
        }
        ErrorKind::NotADirectory => Error::io(format!("cannot {verb} {path}: it is not a folder")),
        _ => Error::io(format!("cannot {verb} {path}: {error}")),
    }
}
