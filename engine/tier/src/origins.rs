//! The blobs of a branch: its own, and those of the databases that it was made from, which are read where they are.
//!
//! The name of a blob begins with the number of its writer. A branch numbers its writers on from those of its
//! origin, so the number says where a blob is.

use crate::manifest::{Manifest, Origin};
use nacre_host::{Answer, BlobInfo, BlobStore, Result, Tag, WriteIf};
use nacre_types::invariant;
use std::ops::Range;
use std::sync::Arc;

/// The blobs of a branch.
pub(crate) struct Branched {
    own: Arc<dyn BlobStore>,
    /// By the greatest number of a writer whose blobs are there.
    origins: Vec<(u64, Arc<dyn BlobStore>)>,
}

/// The number of the writer in the name of a blob.
pub(crate) fn writer_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.split_once('/')?.0, 16).ok()
}

/// The blob store of a database with these origins.
///
/// # Errors
/// `unsupported` if its blob store cannot reach others.
pub(crate) fn store_of(own: &Arc<dyn BlobStore>, origins: &[Origin]) -> Result<Arc<dyn BlobStore>> {
    if origins.is_empty() {
        return Ok(own.clone());
    }
    let open = |origin: &Origin| Ok((origin.up_to, own.elsewhere(&origin.url)?));
    let origins: Vec<_> = origins.iter().map(open).collect::<Result<_>>()?;
    invariant!(origins.is_sorted_by(|a, b| a.0 < b.0), "the origins of a branch do not ascend");
    Ok(Arc::new(Branched { own: own.clone(), origins }))
}

/// The names that belong to the origin with a place in a list.
pub(crate) fn is_of(origins: &[Origin], at: usize, name: &str) -> bool {
    let before = at.checked_sub(1).and_then(|at| origins.get(at)).map_or(0, |origin| origin.up_to);
    let up_to = origins.get(at).map_or(u64::MAX, |origin| origin.up_to);
    writer_of(name).is_some_and(|writer| before < writer && writer <= up_to)
}

/// The origins of which a manifest needs nothing any more.
pub(crate) fn unused(manifest: &Manifest) -> Vec<Origin> {
    let origins = &manifest.origins;
    if origins.is_empty() {
        return Vec::new();
    }
    let mut names = manifest.names();
    names.extend(manifest.dropped.iter().map(|dropped| dropped.name.to_string()));
    let is_used = |at: usize| names.iter().any(|name| is_of(origins, at, name));
    (0..origins.len()).filter(|at| !is_used(*at)).map(|at| origins[at].clone()).collect()
}

impl Branched {
    /// Where a blob is, and whether that is the branch itself.
    fn place(&self, name: &str) -> (&dyn BlobStore, bool) {
        let writer = writer_of(name).unwrap_or(u64::MAX);
        match self.origins.iter().find(|(up_to, _)| writer <= *up_to) {
            Some((_, origin)) => (&**origin, false),
            None => (&*self.own, true),
        }
    }
}

impl BlobStore for Branched {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        self.place(name).0.read(name, range)
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        self.place(name).0.read_all(name)
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        debug_assert!(self.place(name).1, "a branch writes {name}, which is its origin's");
        self.own.write(name, bytes, when)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        self.own.list(prefix)
    }

    /// What is an origin's stays: that has a reference to it.
    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        match self.place(name) {
            (own, true) => own.remove(name),
            (_, false) => Box::pin(async { Ok(()) }),
        }
    }

    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        self.own.elsewhere(url)
    }
}
