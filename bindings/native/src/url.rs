//! Where a database lives, as a user writes it: `memory://`, `file:///path`, or a plain path.

use crate::{memory_host, open_folder};
use nacre_host::{Error, Host, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Opens the host a URL names, making its folder if it is missing. Schemes of other hosts are `unsupported`,
/// which names them.
pub fn open_url(url: &str) -> Result<Host> {
    match folder_of(url)? {
        Some(folder) => open_folder(&folder),
        None => Ok(memory_host()),
    }
}

/// The folder a URL names, whether it exists or not; none for `memory://`. Errors are those of [`open_url`].
pub fn folder_of(url: &str) -> Result<Option<PathBuf>> {
    match url.split_once("://") {
        None if url.is_empty() => Err(Error::not_found("an empty path names no database")),
        None => Ok(Some(PathBuf::from(url))),
        Some(("memory", "")) => Ok(None),
        Some(("memory", _)) => Err(Error::unsupported("memory:// with a name; databases in memory have none")),
        Some(("file", rest)) => Ok(Some(file_path(rest)?)),
        Some(("opfs", _)) => {
            Err(Error::unsupported("opfs:// outside a browser").with_hint("use a path, file:///path or memory://"))
        }
        Some((scheme, _)) => {
            Err(Error::unsupported(format!("{scheme}:// URLs")).with_hint("use a path, file:///path or memory://"))
        }
    }
}

/// What follows `file://`: an absolute path, percent-encoded, perhaps after the host name `localhost`.
fn file_path(rest: &str) -> Result<PathBuf> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(Error::unsupported("file:// with another machine or a relative path")
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
                    _ => return Err(Error::not_found(format!("file://{rest} has a malformed %"))),
                }
            }
            other => other,
        });
    }
    Ok(PathBuf::from(OsString::from_vec(out)))
}
