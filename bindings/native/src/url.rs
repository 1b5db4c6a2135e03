//! Database URLs: `memory://`, `file:///path`, or a plain path.

use crate::hosts::{memory_host, open_folder};
use nacre_host::{Error, Host, Result, number_of_file};
use std::ffi::OsString;
use std::io::ErrorKind;
#[cfg(unix)]
use std::os::unix::ffi::OsStringExt;
#[cfg(target_os = "wasi")]
use std::os::wasi::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Opens the host that a URL names. Creates its folder if it does not exist.
///
/// Errors: `unsupported` for schemes of other hosts; `not_found` for an empty or malformed path;
/// `in_use`; `io`.
///
/// ```
/// let host = nacre_native::open_url("memory://")?;
/// assert!(host.store.list()?.is_empty());
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn open_url(url: &str) -> Result<Host> {
    match folder_of(url)? {
        Some(folder) => open_folder(&folder),
        None => Ok(memory_host()),
    }
}

/// Returns the folder that a URL names, whether it exists or not; `None` for `memory://`.
///
/// Errors: `unsupported` and `not_found` as from [`open_url`].
///
/// ```
/// use nacre_native::folder_of;
/// use std::path::Path;
///
/// assert_eq!(folder_of("file:///data/shop")?.as_deref(), Some(Path::new("/data/shop")));
/// assert_eq!(folder_of("memory://")?, None);
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn folder_of(url: &str) -> Result<Option<PathBuf>> {
    match url.split_once("://") {
        None if url.is_empty() => Err(Error::not_found("the path of a database must not be empty")),
        None if url == ":memory:" => Err(Error::unsupported(":memory: is not supported")
            .with_hint("write memory:// for a database in memory, or ./:memory: for a folder")),
        None if url.starts_with("file:") => {
            Err(Error::unsupported("file: without // is not supported")
                .with_hint("write file:///absolute/path, or ./file:… for a folder"))
        }
        None => Ok(Some(PathBuf::from(url))),
        Some(("memory", "")) => Ok(None),
        Some(("memory", _)) => Err(Error::unsupported("memory:// with a name is not supported")),
        Some(("file", rest)) => Ok(Some(file_path(rest)?)),
        Some(("opfs", _)) => Err(Error::unsupported("opfs:// is not supported outside a browser")
            .with_hint("use a path, file:///path or memory://")),
        Some((scheme, _)) => Err(Error::unsupported(format!("{scheme}:// URLs are not supported"))
            .with_hint("use a path, file:///path or memory://")),
    }
}

/// Whether a folder contains files of a database. Neither creates nor locks anything.
///
/// Errors: `io`.
///
/// ```
/// use std::path::Path;
///
/// assert!(!nacre_native::has_database(Path::new("no/such/folder"))?);
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn has_database(folder: &Path) -> Result<bool> {
    let failed = |error: std::io::Error| Error::io(format!("{}: {error}", folder.display()));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let is_ours = |prefix: &&str| {
            name.to_str().is_some_and(|name| number_of_file(prefix, name).is_some())
        };
        if name == "reach" || ["log-", "snap-", "seg-"].iter().any(is_ours) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parses the part after `file://`: a percent-encoded absolute path, optionally after the host name
/// `localhost`.
fn file_path(rest: &str) -> Result<PathBuf> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(Error::unsupported(
            "file:// with a remote host or a relative path is not supported",
        )
        .with_hint("write file:///absolute/path"));
    }
    let mut bytes = path.bytes();
    let mut out = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
                match (digit(bytes.next()), digit(bytes.next())) {
                    (Some(high), Some(low)) if high + low > 0 => (high * 16 + low) as u8,
                    _ => {
                        return Err(Error::not_found(format!(
                            "file://{rest} contains an invalid percent-encoding"
                        )));
                    }
                }
            }
            other => other,
        });
    }
    Ok(PathBuf::from(OsString::from_vec(out)))
}
