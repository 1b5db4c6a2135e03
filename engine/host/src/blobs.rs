//! The seam of blob storage: whole immutable objects, far away. A store waits, fails and loses answers;
//! what calls it retries. Nothing here decides when bytes move: that is the tiers' part.

use nacre_types::{Error, Result};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that may have to wait. The call begins when it is polled first, and goes on by itself from
/// then; dropping it gives the call up.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a store calls the present content of a blob, as an ETag does. Different contents have different
/// tags; a content that was written twice may have the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(pub Arc<str>);

/// Under which condition a blob is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteIf {
    /// Always.
    Any,
    /// There is no blob of that name.
    Absent,
    /// The blob is still the one with this tag.
    Tagged(Tag),
}

/// A blob in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    /// Its name, below the folder of the store.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// When it was written, by the store's clock, in microseconds since 1970-01-01 UTC.
    pub modified_us: i64,
}

/// A folder of blobs below one prefix of a bucket. Names are those of [`check_blob_name`]; any other is
/// an `io` error. No blob may have the name of a folder of another, as `a` and `a/b` would: some stores
/// are folders of files.
///
/// Errors: `not_found` if there is no such blob, `unavailable` if the same call may succeed later (no
/// connection, throttled, a server's fault), `io` if the store refuses it (credentials, rights, no such
/// bucket), `corrupt` if an answer is not what was asked for.
///
/// A write or removal that ends with `unavailable` or is given up may have taken effect, or may still
/// do so later. A write that ends with any other error has not, and will not.
pub trait BlobStore: Send + Sync {
    /// Reads exactly these bytes of a blob. A range past its end is `corrupt`: the blob is shorter than
    /// it was when it was written.
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>>;
    /// Reads a small blob whole, with its tag.
    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)>;
    /// Writes a blob whole and durably. Returns its tag, or `conflict`, with nothing changed, if the
    /// condition does not hold. Readers see the old blob or the new one.
    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag>;
    /// The blobs whose names begin with `prefix`, which may end anywhere in a name, in the order of the
    /// names' bytes. A write that has returned is in it, and a removal is not. What has a name that no
    /// blob can have is left out.
    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>>;
    /// Removes a blob. It is no error if there is none.
    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;
    /// The folder of blobs at a URL, reached as this one is. Asks nothing.
    ///
    /// Errors: `unsupported` if this store cannot reach others; `io` for a malformed URL.
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        Err(Error::unsupported(format!("reading {url}, of which this is a branch")))
    }
}

/// Checks the name of a blob: parts of ASCII letters, digits, `-`, `_` and `.`, between slashes, none
/// empty or beginning with a dot; at most 200 bytes.
pub fn check_blob_name(name: &str) -> Result<()> {
    match is_blob_name(name) {
        true => Ok(()),
        false => Err(Error::io(format!("{name:?} is not a valid name of a blob"))),
    }
}

/// Whether a blob can have this name, as [`check_blob_name`] says.
pub fn is_blob_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain);
    name.len() <= 200 && name.split('/').all(is_part)
}
