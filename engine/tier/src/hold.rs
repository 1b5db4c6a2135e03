//! What keeps blobs from being removed after the retention: leases of databases that only read, and the
//! references of branches. `docs/FORMAT.md` describes their bytes in the chapter "Blobs".
//!
//! Invariant: something that needs blobs first writes its hold, and then reads the manifest. A blob that this
//! manifest keeps stays until the hold ends: the writer looks for holds after the manifest that lets it go.

use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result};
use std::collections::BTreeSet;

/// Start of the names of leases.
pub(crate) const LEASES: &str = "leases/";
/// Start of the names of references.
pub(crate) const BRANCHES: &str = "branches/";

const LEASE_MAGIC: &[u8; 8] = b"NACRELSE";
const BRANCH_MAGIC: &[u8; 8] = b"NACREBRA";
/// The version of both.
const VERSION: u32 = 1;

/// The right of a database that only reads to find what it shows, until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Identity of the database.
    pub database: u64,
    /// Identity of the lease.
    pub id: u64,
    /// Differs in all that were written under the same name.
    pub renewals: u64,
    /// Everything that a state at this position of the log or a later one needs is held.
    pub position: u64,
    /// When it ends, by the clock of the database that reads, in microseconds since 1970-01-01 UTC.
    pub expires_us: i64,
}

/// What a branch needs of a database that it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Identity of the database.
    pub database: u64,
    /// Identity of the branch.
    pub branch: u64,
    /// Where the branch is.
    pub url: String,
    /// The names of the blobs.
    pub names: BTreeSet<String>,
}

/// The name of the blob of a hold.
pub(crate) fn hold_name(kind: &str, id: u64) -> String {
    format!("{kind}{id:016x}")
}

impl Lease {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(LEASE_MAGIC);
        out.put_u64(self.database);
        out.put_u64(self.id);
        out.put_varint(self.renewals);
        out.put_varint(self.position);
        out.put_u64(self.expires_us as u64);
        let out = summed(out);
        debug_assert!(Lease::decode(&out, "").is_ok_and(|read| read == *self), "a lease differs");
        out
    }

    /// # Errors
    /// `corrupt` unless these are the bytes of a lease; `unsupported` for a newer version.
    pub fn decode(bytes: &[u8], name: &str) -> Result<Lease> {
        let mut reader = fields(bytes, LEASE_MAGIC, name)?;
        let lease = Lease {
            database: reader.u64()?,
            id: reader.u64()?,
            renewals: reader.varint()?,
            position: reader.varint()?,
            expires_us: reader.u64()? as i64,
        };
        reader.finish()?;
        Ok(lease)
    }
}

impl Reference {
    /// # Errors
    /// `corrupt` unless these are the bytes of a reference; `unsupported` for a newer version.
    pub fn decode(bytes: &[u8], name: &str) -> Result<Reference> {
        let mut reader = fields(bytes, BRANCH_MAGIC, name)?;
        let (database, branch) = (reader.u64()?, reader.u64()?);
        let (url, mut names) = (reader.text()?.to_string(), BTreeSet::new());
        for _ in 0..reader.count(reader.remaining())? {
            names.insert(reader.text()?.to_string());
        }
        reader.finish()?;
        Ok(Reference { database, branch, url, names })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(BRANCH_MAGIC);
        out.put_u64(self.database);
        out.put_u64(self.branch);
        out.put_bytes(self.url.as_bytes());
        out.put_varint(self.names.len() as u64);
        self.names.iter().for_each(|name| out.put_bytes(name.as_bytes()));
        let out = summed(out);
        debug_assert!(
            Reference::decode(&out, "").is_ok_and(|read| read == *self),
            "a reference differs"
        );
        out
    }
}

fn head(magic: &[u8; 8]) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.put_u32(VERSION);
    out
}

fn summed(mut out: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&out);
    out.put_u64(sum);
    out
}

/// The fields of a hold, verified.
fn fields<'a>(bytes: &'a [u8], magic: &[u8; 8], name: &str) -> Result<Reader<'a>> {
    let split = bytes.len().checked_sub(8).and_then(|at| bytes.split_at_checked(at));
    let Some((fields, sum)) = split.filter(|(fields, _)| fields.starts_with(magic)) else {
        return Err(Error::corrupt(format!("{name} is not what its name says")));
    };
    if sum != checksum(fields).to_le_bytes() {
        return Err(Error::corrupt(format!("{name}: checksum does not match")));
    }
    let mut reader = Reader::new(fields, "a hold");
    reader.take(magic.len())?;
    match reader.u32()? {
        VERSION => Ok(reader),
        version => Err(Error::unsupported(format!(
            "{name} has format version {version}; this build reads version {VERSION}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::ErrorKind;

    #[test]
    fn holds_read_back_and_damage_is_found() {
        let lease = Lease { database: 5, id: 6, renewals: 300, position: 7_000, expires_us: -8 };
        let names = ["00000001/x", "00000002/y"].map(String::from).into();
        let reference = Reference { database: 5, branch: 9, url: "s3://b/p".into(), names };
        let (lease_bytes, bytes) = (lease.encode(), reference.encode());
        assert_eq!(Lease::decode(&lease_bytes, "l").unwrap(), lease);
        assert_eq!(Reference::decode(&bytes, "r").unwrap(), reference);
        assert_eq!(Lease::decode(&bytes, "r").unwrap_err().kind(), ErrorKind::Corrupt);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Reference::decode(&damaged, "r").unwrap_err().kind(), ErrorKind::Corrupt);
            assert!(Reference::decode(&bytes[..at], "r").is_err());
        }
        let mut newer = lease_bytes[..lease_bytes.len() - 8].to_vec();
        newer[8] = 2;
        let error = Lease::decode(&summed(newer), "l").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(hold_name(LEASES, 0xab), "leases/00000000000000ab");
    }
}
