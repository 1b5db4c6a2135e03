//! Blobs in memory: a store that always answers at once, and rightly.

use nacre_host::{
    Answer, BlobInfo, BlobStore, Clock, Error, Result, Tag, WriteIf, check_blob_name,
};
use nacre_types::hash::hash_bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blobs that live as long as their store.
pub struct MemoryBlobs {
    clock: Arc<dyn Clock>,
    blobs: Mutex<BTreeMap<String, Blob>>,
}

#[derive(Clone)]
struct Blob {
    bytes: Arc<[u8]>,
    modified_us: i64,
}

impl Blob {
    /// The tag is as weak as an ETag of S3: that of the content, whenever it was written.
    fn tag(&self) -> Tag {
        Tag(format!("{:016x}", hash_bytes(&self.bytes)).into())
    }

    fn range(&self, name: &str, range: &Range<u64>) -> Result<Vec<u8>> {
        let within = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        match within.and_then(|(start, end)| self.bytes.get(start..end)) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(Error::corrupt(format!(
                "blob {name} has {} bytes, and not those from {} to {}",
                self.bytes.len(),
                range.start,
                range.end
            ))),
        }
    }
}

impl MemoryBlobs {
    /// Creates an empty store, whose blobs are as old as the clock says.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<MemoryBlobs> {
        Arc::new(MemoryBlobs { clock, blobs: Mutex::default() })
    }

    /// The content of a blob.
    pub fn get(&self, name: &str) -> Option<Arc<[u8]>> {
        self.blobs().get(name).map(|blob| blob.bytes.clone())
    }

    /// The names of all blobs, in order.
    pub fn names(&self) -> Vec<String> {
        self.blobs().keys().cloned().collect()
    }

    /// Writes a blob at once.
    pub fn put(&self, name: &str, bytes: Arc<[u8]>, when: &WriteIf) -> Result<Tag> {
        check_blob_name(name)?;
        let blob = Blob { bytes, modified_us: self.clock.wall_us() };
        let mut blobs = self.blobs();
        if let Some(other) = nested(&blobs, name) {
            return Err(Error::io(format!("blobs {name} and {other} cannot both be in a folder")));
        }
        let present = blobs.get(name).map(Blob::tag);
        let holds = match when {
            WriteIf::Any => true,
            WriteIf::Absent => present.is_none(),
            WriteIf::Tagged(tag) => present.as_ref() == Some(tag),
        };
        if !holds {
            return Err(Error::conflict(format!("blob {name} is not the one that was expected")));
        }
        let tag = blob.tag();
        blobs.insert(name.to_string(), blob);
        Ok(tag)
    }

    /// Removes a blob at once, if there is one.
    pub fn delete(&self, name: &str) -> Result<()> {
        check_blob_name(name)?;
        self.blobs().remove(name);
        Ok(())
    }

    fn blobs(&self) -> MutexGuard<'_, BTreeMap<String, Blob>> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn blob(&self, name: &str) -> Result<Blob> {
        check_blob_name(name)?;
        let blob = self.blobs().get(name).cloned();
        blob.ok_or_else(|| Error::not_found(format!("blob {name} does not exist")))
    }
}

/// A blob that has the name of a folder of this one, or the other way round.
fn nested(blobs: &BTreeMap<String, Blob>, name: &str) -> Option<String> {
    let below = format!("{name}/");
    let inside = blobs.range(below.clone()..).next().filter(|(other, _)| other.starts_with(&below));
    let mut around = name.match_indices('/').map(|(at, _)| &name[..at]);
    let folder = around.find(|folder| blobs.contains_key(*folder));
    inside.map(|(other, _)| other.clone()).or(folder.map(String::from))
}

impl BlobStore for MemoryBlobs {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        Box::pin(async move { self.blob(name)?.range(name, &range) })
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        Box::pin(async move {
            let blob = self.blob(name)?;
            Ok((blob.bytes.to_vec(), blob.tag()))
        })
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        Box::pin(async move { self.put(name, bytes, &when) })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        Box::pin(async move {
            let blobs = self.blobs();
            let listed =
                blobs.range(prefix.to_string()..).take_while(|(n, _)| n.starts_with(prefix));
            let info = |(name, blob): (&String, &Blob)| BlobInfo {
                name: name.clone(),
                len: blob.bytes.len() as u64,
                modified_us: blob.modified_us,
            };
            Ok(listed.map(info).collect())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.delete(name) })
    }
}
