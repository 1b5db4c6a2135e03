//! Opening without the blob store: a folder that was attached before goes on with what it has, and joins the writers
//! once the blob store answers (`join`).
//!
//! A copy of the newest manifest in the folder says what is in the blob store. Until a number is taken, nothing is
//! uploaded, no file leaves, and what is fetched is what the copy names. Another writer may have taken over meanwhile:
//! then the folder is stopped when it joins, and the commits that it acknowledged since are only there, as those are
//! of a writer that was cut off while it was open.

use crate::claim::Claim;
use crate::manifest::{MANIFEST, Manifest};
use crate::shared::Shared;
use nacre_host::{Clock, LocalFile, LocalStore, ReadRange};
use nacre_types::{ErrorKind, Result};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// How long opening waits for the blob store, in nanoseconds.
pub(crate) const PATIENCE_NS: u64 = 3_000_000_000;

/// The manifest that a folder goes on from, if it can: it was written from there, and no newer one was attempted that
/// did not become known.
///
/// # Errors
/// Those of the host's files.
pub(crate) fn known(store: &dyn LocalStore) -> Result<Option<Manifest>> {
    let claim = Claim::read(store)?.unwrap_or_default();
    if claim.is_filling || claim.is_overtaken || !nacre_log::has_log(&store.list()?) {
        return Ok(None);
    }
    let file = match store.open(MANIFEST) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; file.len()? as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }])?;
    // A torn one says nothing.
    let manifest = Manifest::decode(&bytes).ok();
    let is_of = |manifest: &Manifest| {
        claim.confirmed == manifest.writer && claim.has(manifest.folder, manifest.writer)
    };
    Ok(manifest.filter(is_of))
}

/// Copies a manifest to the folder. Durably, where files may leave: those are known by it alone.
///
/// # Errors
/// Those of the host's files: then the folder is opened with the blob store only.
pub(crate) fn note(shared: &Shared, manifest: &Manifest) -> Result<()> {
    let store = &*shared.local;
    let file: Arc<dyn LocalFile> = match store.open(MANIFEST) {
        Err(error) if error.kind() == ErrorKind::NotFound => store.create(MANIFEST)?,
        opened => opened?,
    };
    let bytes = manifest.encode();
    file.write(0, &bytes)?;
    file.truncate(bytes.len() as u64)?;
    match shared.options.disk_limit {
        u64::MAX => Ok(()),
        _ => file.sync(),
    }
}

/// Notes that another writer has the blobs: the folder does not open apart any more. If the disk refuses, it may do
/// so until it learns of that again.
pub(crate) fn note_overtaken(store: &dyn LocalStore) {
    let noted = Claim::read(store).and_then(|claim| {
        let claim = claim.unwrap_or_default();
        claim.replace(store, Claim { is_overtaken: true, ..claim })
    });
    drop(noted);
}

/// What a future answers, if it does until a time.
pub(crate) async fn until<T>(
    clock: &dyn Clock,
    ns: u64,
    future: impl Future<Output = T>,
) -> Option<T> {
    let (mut future, mut timer) = (pin!(future), None);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => {
            let timer = timer.get_or_insert_with(|| clock.sleep_until(ns));
            timer.as_mut().poll(context).map(|()| None)
        }
    })
    .await
}
