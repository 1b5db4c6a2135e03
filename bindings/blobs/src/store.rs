//! The store that an application gets: encrypted with its key, if it has one. Blobs are encrypted and
//! decrypted on the threads of the file system, so that the network and the engine go on.

use crate::runtime::blocking;
use crate::seal::{self, EncryptionKey};
use nacre_host::{Answer, BlobInfo, BlobStore, Error, Result, Tag, WriteIf, check_blob_name};
use std::ops::Range;
use std::sync::Arc;

/// Whether a range may go beyond the end of its blob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is `corrupt` if it does.
    Within,
    /// What there is of it is read.
    Beyond,
}

/// A store whose bytes are somewhere.
pub(crate) trait Source: BlobStore {
    /// Reads these bytes of a blob, and fewer if it ends before.
    fn read_to<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>>;
}

/// Opens another place with the same options.
pub(crate) type Elsewhere = Box<dyn Fn(&str) -> Result<Arc<dyn BlobStore>> + Send + Sync>;

/// A store as an application sees it.
pub(crate) struct Store {
    pub(crate) source: Box<dyn Source>,
    pub(crate) key: Option<EncryptionKey>,
    pub(crate) elsewhere: Elsewhere,
}

impl BlobStore for Store {
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        (self.elsewhere)(url)
    }

    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let Some(key) = self.key.clone() else { return self.source.read(name, range) };
        Box::pin(async move {
            check_blob_name(name)?;
            let Some((first, blocks)) = seal::blocks_of(&range) else { return Ok(Vec::new()) };
            let mut bytes = self.source.read_to(name, blocks).await?;
            let name = name.to_string();
            let opened = blocking(move || {
                key.open_blocks(&name, first, &mut bytes)?;
                let start = seal::start_of(first);
                let there = start + bytes.len() as u64;
                if there < range.end {
                    let end = range.end;
                    let text = format!("blob {name} ends at byte {there}, before byte {end}");
                    return Err(Error::corrupt(text));
                }
                bytes.truncate((range.end - start) as usize);
                bytes.drain(..(range.start - start) as usize);
                Ok(bytes)
            });
            opened.await
        })
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        let key = self.key.clone();
        Box::pin(async move {
            let (bytes, tag) = self.source.read_all(name).await?;
            match key {
                Some(key) => {
                    let name = name.to_string();
                    Ok((blocking(move || key.open(&name, bytes)).await?, tag))
                }
                None if seal::is_sealed(&bytes) => {
                    Err(Error::io(format!("blob {name} is encrypted"))
                        .with_hint("give the key that it was written with"))
                }
                None => Ok((bytes, tag)),
            }
        })
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let Some(key) = self.key.clone() else { return self.source.write(name, bytes, when) };
        Box::pin(async move {
            let owned = name.to_string();
            let sealed = blocking(move || key.seal(&owned, &bytes)).await?;
            self.source.write(name, sealed.into(), when).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        let is_sealed = self.key.is_some();
        Box::pin(async move {
            let mut listed = self.source.list(prefix).await?;
            for info in listed.iter_mut().filter(|_| is_sealed) {
                // What is no encrypted blob is as long as it is.
                info.len = seal::plain_len(info.len).unwrap_or(info.len);
            }
            Ok(listed)
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.source.remove(name)
    }
}
