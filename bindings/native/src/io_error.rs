//! Conversion of the operating system's errors.

use nacre_host::{Error, Reason};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Builds an `io` error that names the file and, where possible, says what to do. `verb` completes
/// "cannot … the file".
#[cold]
pub(crate) fn io_error(error: io::Error, path: &Path, verb: &str) -> Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull => {
            Error::io(format!("no space left on the device that holds {path}"))
                .with_sqlstate("53100")
                .with_reason(Reason::NoSpace)
                .with_hint("free some space and reopen the database")
        }
        ErrorKind::QuotaExceeded => Error::io(format!("disk quota exceeded for {path}"))
            .with_sqlstate("53100")
            .with_reason(Reason::NoSpace),
        ErrorKind::PermissionDenied => Error::io(format!("no permission to {verb} {path}")),
        ErrorKind::ReadOnlyFilesystem => {
            Error::io(format!("cannot {verb} {path}: the file system is read-only"))
        }
        ErrorKind::NotADirectory => Error::io(format!("cannot {verb} {path}: it is not a folder")),
        _ => Error::io(format!("cannot {verb} {path}: {error}")),
    }
}
