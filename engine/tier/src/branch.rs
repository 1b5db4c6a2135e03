//! Branches: databases that begin as a state of another one, and read what they have of it where it is.
//!
//! Only a manifest is written, and the end of the log where it is cut. Before, the origin gets a reference: the names
//! of the blobs that the branch needs, which the origin then keeps. What the branch needs of the origins of its
//! origin is referred to there as well.

use crate::attach::{Attach, Copies, cut_log};
use crate::history::{self, AsOf, Past};
use crate::hold::{BRANCHES, Reference, hold_name};
use crate::manifest::{Chunk, MANIFEST, Manifest, Mark, Origin, Piece, piece_name};
use crate::options::TierOptions;
use crate::origins::{is_of, store_of};
use crate::retry::is_transient;
use nacre_host::memory::MemoryStore;
use nacre_host::{BlobStore, ErrorKind, Host, LocalStore, ReadRange, WriteIf};
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result};
use std::sync::Arc;

/// A database in blobs.
pub struct Place<'a> {
    /// Its blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// Where they are, as [`BlobStore::elsewhere`] takes it.
    pub url: &'a str,
}

/// Makes a branch of a database as it was at a point in time, or is now, in a place without a database. Both can be
/// written then. The time does not depend on how much there is. Returns the position in the log.
///
/// # Errors
/// `not_found` if there is no such database or state; `already_exists` if the place has a database; `unsupported` if
/// the blob store cannot reach others; those of both stores.
pub async fn branch(
    host: &Host,
    from: &Place<'_>,
    to: &Place<'_>,
    options: &TierOptions,
    at: Option<AsOf>,
) -> Result<u64> {
    if is_there(&*to.blobs).await? {
        return Err(taken(to.url));
    }
    let local: Arc<dyn LocalStore> = Arc::new(MemoryStore::new());
    let Host { clock, entropy, .. } = host;
    let attach = Attach { local: &local, clock, entropy, blobs: &from.blobs, options };
    let Some((parent, _)) = attach.newest().await?.filter(|(found, _)| found.has_state()) else {
        return Err(Error::not_found(format!("{}: no database", from.url)));
    };
    let blobs = store_of(&from.blobs, &parent.origins)?;
    let attach = Attach { blobs: &blobs, ..attach };
    let at = at.unwrap_or(AsOf::Position(u64::MAX));
    let past = history::past(async |name: &str| attach.read_whole(name).await, &parent, at).await?;
    let mut origins = parent.origins.clone();
    origins.push(Origin { up_to: parent.writer, url: from.url.into() });
    let branch = entropy.next_u64() | 1;
    let made = Making { from, to, parent: &parent, origins: &origins, branch };
    let next = match made.prepare(&attach, past).await {
        Ok(next) => next,
        Err(error) => {
            made.forget().await.ok();
            return Err(error);
        }
    };
    match made.write(&next).await {
        // Without an answer it may take effect late, and the branch needs what its origins keep.
        Err(error) if !is_transient(&error) => {
            made.forget().await.ok();
            Err(error)
        }
        written => written.map(|()| next.position),
    }
}

/// Removes a branch, and what its origins have kept for it. Nothing may have it open.
///
/// # Errors
/// `not_found` if there is no database; `unsupported` if it is not a branch; `in_use` if it has branches itself; those
/// of the stores.
pub async fn drop_branch(place: &Place<'_>) -> Result<()> {
    let blobs = &place.blobs;
    let (bytes, _) = blobs.read_all(MANIFEST).await?;
    let manifest = Manifest::decode(&bytes)?;
    if manifest.branch == 0 {
        return Err(Error::unsupported(format!("dropping {}, which is no branch", place.url)));
    }
    if let Some(other) = blobs.list(BRANCHES).await?.first() {
        let (bytes, _) = blobs.read_all(&other.name).await?;
        let other = Reference::decode(&bytes, &other.name)?;
        return Err(Error::in_use(format!("{} is a branch of {}", other.url, place.url)));
    }
    // The manifest stays until the end, so that this can be repeated.
    for blob in blobs.list("").await?.iter().filter(|blob| blob.name != MANIFEST) {
        blobs.remove(&blob.name).await?;
    }
    for origin in &manifest.origins {
        let origin = blobs.elsewhere(&origin.url)?;
        origin.remove(&hold_name(BRANCHES, manifest.branch)).await?;
    }
    blobs.remove(MANIFEST).await
}

async fn is_there(blobs: &dyn BlobStore) -> Result<bool> {
    match blobs.read_all(MANIFEST).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        read => read.map(|_| true),
    }
}

fn taken(url: &str) -> Error {
    Error::already_exists(format!("{url} has a database")).with_hint("choose an empty place")
}

/// A branch that is being made.
struct Making<'a> {
    from: &'a Place<'a>,
    to: &'a Place<'a>,
    /// The newest manifest of its origin.
    parent: &'a Manifest,
    /// Those of the branch: the last one is the database that it is made from.
    origins: &'a [Origin],
    branch: u64,
}

impl Making<'_> {
    /// The blobs of an origin.
    fn origin(&self, at: usize) -> Result<Arc<dyn BlobStore>> {
        match self.origins.get(at) {
            Some(origin) if at + 1 < self.origins.len() => self.from.blobs.elsewhere(&origin.url),
            _ => Ok(self.from.blobs.clone()),
        }
    }

    /// Writes everything but the manifest, which it returns.
    async fn prepare(&self, attach: &Attach<'_>, past: Past) -> Result<Manifest> {
        let all = past.manifest.names();
        for at in 0..self.origins.len() {
            let names = all.iter().filter(|name| is_of(self.origins, at, name)).cloned().collect();
            let url = self.to.url.to_string();
            let (database, branch) = (self.parent.database, self.branch);
            let reference = Reference { database, branch, url, names };
            if !reference.names.is_empty() {
                let name = hold_name(BRANCHES, branch);
                let bytes = reference.encode().into();
                self.origin(at)?.write(&name, bytes, WriteIf::Any).await?;
                self.verify(attach, at, &reference).await?;
            }
        }
        let writer = self.parent.writer + 1;
        let (chunks, position) = self.cut(attach, &past, writer).await?;
        let now_us = attach.clock.wall_us();
        Ok(Manifest {
            writer,
            token: attach.entropy.next_u64() | 1,
            folder: 0,
            sequence: 1,
            written_us: now_us,
            position,
            chunks,
            floor: position,
            marks: vec![Mark { position, at_us: now_us }],
            origins: self.origins.to_vec(),
            branch: self.branch,
            ..past.manifest
        })
    }

    /// Writes the manifest of the branch.
    async fn write(&self, next: &Manifest) -> Result<()> {
        let written = self.to.blobs.write(MANIFEST, next.encode().into(), WriteIf::Absent).await;
        if let Err(error) = written {
            // The answer may have been lost.
            let found = self.to.blobs.read_all(MANIFEST).await;
            let found = found.and_then(|(bytes, _)| Manifest::decode(&bytes));
            match found {
                Ok(found) if found.token == next.token => {}
                Ok(_) => return Err(taken(self.to.url)),
                Err(_) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks that an origin keeps what it has a reference to since.
    async fn verify(&self, attach: &Attach<'_>, at: usize, reference: &Reference) -> Result<()> {
        let kept = if at + 1 < self.origins.len() {
            // It keeps them for the database that this is a branch of.
            let name = hold_name(BRANCHES, self.parent.branch);
            let (bytes, _) = self.origin(at)?.read_all(&name).await?;
            Reference::decode(&bytes, &name)?.names
        } else {
            attach.newest().await?.map_or_else(Default::default, |(newest, _)| newest.kept())
        };
        match reference.names.iter().find(|name| !kept.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Error::not_found(format!("{name} is not kept any more"))),
        }
    }

    /// The log of the branch, cut after its last record, and where it ends.
    async fn cut(
        &self,
        attach: &Attach<'_>,
        past: &Past,
        writer: u64,
    ) -> Result<(Vec<Chunk>, u64)> {
        let mut chunks = past.manifest.chunks.clone();
        if past.position == past.manifest.position {
            return Ok((chunks, past.position));
        }
        let Some(last) = chunks.last_mut() else { return Ok((chunks, past.position)) };
        let mut copies = Copies::default();
        copies.add_chunk(last);
        attach.fetch(copies).await?;
        let end = cut_log(&**attach.local, past)?;
        let to = nacre_log::HEADER_BYTES + (end - last.start);
        last.pieces.retain(|piece| piece.to <= to);
        let from = last.pieces.last().map_or(0, |piece| piece.to);
        if from < to {
            let mut bytes = vec![0; (to - from) as usize];
            let file = attach.local.open(&nacre_log::chunk_name(last.start))?;
            file.read(&mut [ReadRange { offset: from, buffer: &mut bytes }])?;
            let piece = Piece { writer, from, to, checksum: checksum(&bytes) };
            let name = piece_name(last.start, &piece);
            self.to.blobs.write(&name, bytes.into(), WriteIf::Any).await?;
            last.pieces.push(piece);
        }
        Ok((chunks, end))
    }

    /// Removes the references of a branch that was not made.
    async fn forget(&self) -> Result<()> {
        match self.to.blobs.read_all(MANIFEST).await {
            // It may have been made after all, if an answer was lost.
            Ok((bytes, _)) if Manifest::decode(&bytes)?.branch == self.branch => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for at in 0..self.origins.len() {
            self.origin(at)?.remove(&hold_name(BRANCHES, self.branch)).await?;
        }
        Ok(())
    }
}
