//! Restores a state of the past to a folder, which is then an ordinary database without blobs.

use crate::attach::{self, Attach};
use crate::entry::Kind;
use crate::history::AsOf;
use crate::lease;
use crate::manifest::blob_name;
use crate::options::TierOptions;
use crate::shared::Shared;
use nacre_host::{BlobStore, Host};
use nacre_types::{Error, Result};
use std::sync::Arc;

/// Writes the state at a point in time, or the newest one, to the local store of a host, which must be empty.
/// Returns its position in the log. What its log does not name is removed when the database is opened.
///
/// # Errors
/// `already_exists` if the store is not empty; `not_found` if there is no such state; those of both stores. Nothing
/// that was written stays then.
pub async fn restore(
    host: &Host,
    blobs: Arc<dyn BlobStore>,
    options: TierOptions,
    at: Option<AsOf>,
) -> Result<u64> {
    if !host.store.list()?.is_empty() {
        return Err(Error::already_exists("the folder to restore to has files")
            .with_hint("restore to an empty folder"));
    }
    let restored = copy_all(host, blobs, options, at).await;
    if restored.is_err() {
        for name in host.store.list()? {
            host.store.remove(&name)?;
        }
    }
    restored
}

async fn copy_all(
    host: &Host,
    blobs: Arc<dyn BlobStore>,
    options: TierOptions,
    at: Option<AsOf>,
) -> Result<u64> {
    let shared =
        attach::as_reader(host, blobs, options, at.or(Some(AsOf::Position(u64::MAX)))).await?;
    let copied = copy_files(&shared).await;
    lease::release(&shared).await?;
    copied?;
    let position = shared.state().remote.position;
    Ok(position)
}

async fn copy_files(shared: &Arc<Shared>) -> Result<()> {
    let entries: Vec<_> = shared.state().files.values().cloned().collect();
    for entry in entries.iter().filter(|entry| entry.kind == Kind::Data) {
        lease::step(shared).await;
        let Some(blob) = entry.meta().blob else { continue };
        shared.local.prepare().await?;
        let file = shared.local.create(&entry.name)?;
        let source = blob_name(blob.writer, &entry.name);
        let write = |at, bytes: &[u8]| file.write(at, bytes);
        let copied = Attach::of(shared).copy(&source, blob.len, blob.checksum, &write).await;
        copied.map_err(|error| crate::fetch::gone(shared, error))?;
        file.sync()?;
    }
    Ok(())
}
