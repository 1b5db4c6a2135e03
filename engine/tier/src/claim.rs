//! The claim of a local folder: which manifests of the blobs this folder may go on from.
//!
//! A file with two slots that are written in turn, as the log's reach is. A manifest names the folder of its
//! writer. One that names this folder, with a number that this folder has attempted, was written from it, however
//! late it took effect. A copy of the folder that was opened has attempted a greater number.

use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Name of the file.
pub(crate) const CLAIM: &str = "claim";

const MAGIC: &[u8; 8] = b"NACRECLM";
const VERSION: u32 = 1;
const BYTES: usize = 56;
/// Distance between the slots: a device that loses a sector on a torn write loses one of them.
const SLOT_BYTES: u64 = 4096;

/// What a folder claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Grows with each replacement.
    pub sequence: u64,
    /// Identity of the folder; 0 while it has none.
    pub folder: u64,
    /// The greatest number of a writer with which a manifest may have been written from here.
    pub attempted: u64,
    /// The greatest one with which a manifest was written; 0 for none.
    pub confirmed: u64,
    /// Whether the folder is being filled from the blobs: nothing in it counts yet.
    pub is_filling: bool,
    /// Whether it is known that another writer has the blobs now.
    pub is_overtaken: bool,
}

impl Claim {
    /// Reads the claim of a folder, if it has one. A damaged slot counts as never written.
    ///
    /// # Errors
    /// `unsupported` for a version that this build does not know; the errors of the host's files.
    pub fn read(store: &dyn LocalStore) -> Result<Option<Claim>> {
        let file = match store.open(CLAIM) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let len = file.len()?;
        let mut newest: Option<Claim> = None;
        for offset in [0, SLOT_BYTES] {
            if offset + BYTES as u64 > len {
                continue;
            }
            let mut bytes = [0; BYTES];
            file.read(&mut [ReadRange { offset, buffer: &mut bytes }])?;
            if let Some(claim) = decode(&bytes)?
                && newest.is_none_or(|newest| newest.sequence < claim.sequence)
            {
                newest = Some(claim);
            }
        }
        Ok(newest)
    }

    /// Replaces the claim of a folder, and makes it durable.
    pub fn replace(self, store: &dyn LocalStore, next: Claim) -> Result<Claim> {
        let next = Claim { sequence: self.sequence + 1, ..next };
        let file = open_or_create(store)?;
        let mut out = Vec::with_capacity(BYTES);
        out.extend_from_slice(MAGIC);
        out.put_u32(VERSION);
        out.put_u32(u32::from(next.is_filling) | u32::from(next.is_overtaken) << 1);
        out.put_u64(next.sequence);
        out.put_u64(next.folder);
        out.put_u64(next.attempted);
        out.put_u64(next.confirmed);
        let sum = checksum(&out);
        out.put_u64(sum);
        debug_assert!(out.len() == BYTES, "a claim of {} bytes", out.len());
        file.write(next.sequence % 2 * SLOT_BYTES, &out)?;
        file.sync()?;
        Ok(next)
    }

    /// Whether a manifest was written from this folder, by its folder and the number of its writer.
    pub fn has(&self, folder: u64, writer: u64) -> bool {
        self.folder != 0 && self.folder == folder && writer <= self.attempted
    }
}

fn open_or_create(store: &dyn LocalStore) -> Result<Arc<dyn LocalFile>> {
    match store.open(CLAIM) {
        Err(error) if error.kind() == ErrorKind::NotFound => store.create(CLAIM),
        opened => opened,
    }
}

fn decode(bytes: &[u8; BYTES]) -> Result<Option<Claim>> {
    let (fields, sum) = bytes.split_at(BYTES - 8);
    if !fields.starts_with(MAGIC) || sum != checksum(fields).to_le_bytes() {
        return Ok(None);
    }
    let mut reader = Reader::new(fields, CLAIM);
    reader.take(MAGIC.len())?;
    let version = reader.u32()?;
    if version != VERSION {
        return Err(Error::unsupported(format!(
            "{CLAIM} has format version {version}; this build reads version {VERSION}"
        )));
    }
    let flags = reader.u32()?;
    let (is_filling, is_overtaken) = (flags & 1 != 0, flags & 2 != 0);
    let (sequence, folder) = (reader.u64()?, reader.u64()?);
    let (attempted, confirmed) = (reader.u64()?, reader.u64()?);
    Ok(Some(Claim { sequence, folder, attempted, confirmed, is_filling, is_overtaken }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_host::memory::MemoryStore;

    #[test]
    fn the_newest_valid_slot_counts() {
        let store = MemoryStore::new();
        assert_eq!(Claim::read(&store).unwrap(), None);
        let mut claim = Claim::default();
        for number in 1..6 {
            let next = Claim { folder: 77, attempted: number, confirmed: number - 1, ..claim };
            claim = claim.replace(&store, next).unwrap();
            assert_eq!(Claim::read(&store).unwrap(), Some(claim));
        }
        assert!(claim.has(77, 5) && claim.has(77, 4) && !claim.has(77, 6) && !claim.has(78, 4));
        assert!(!Claim::default().has(0, 0));
        let file = store.open(CLAIM).unwrap();
        file.write(claim.sequence % 2 * SLOT_BYTES + 20, &[9]).unwrap();
        let before = Claim::read(&store).unwrap().unwrap();
        assert_eq!((before.confirmed, before.attempted), (3, 4), "the slot before is intact");
    }
}
