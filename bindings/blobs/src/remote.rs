//! A blob store over the network: answers that are worked out on the threads of the runtime.

use crate::bucket::Bucket;
use crate::read;
use crate::runtime::answer;
use crate::store::{Reach, Source};
use crate::write;
use nacre_host::{Answer, BlobInfo, BlobStore, Tag, WriteIf};
use std::ops::Range;
use std::sync::Arc;

/// A folder of a bucket.
#[derive(Clone)]
pub(crate) struct Remote(pub(crate) Arc<Bucket>);

impl BlobStore for Remote {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let (bucket, name) = (self.0.clone(), name.to_string());
        answer(async move { read::read(&bucket, &name, range, Reach::Within).await })
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        let (bucket, name) = (self.0.clone(), name.to_string());
        answer(async move { read::read_all(&bucket, &name).await })
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let (bucket, name) = (self.0.clone(), name.to_string());
        answer(async move { write::write(&bucket, &name, bytes, when).await })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        let (bucket, prefix) = (self.0.clone(), prefix.to_string());
        answer(async move { read::list(&bucket, &prefix).await })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let (bucket, name) = (self.0.clone(), name.to_string());
        answer(async move { write::remove(&bucket, &name).await })
    }
}

impl Source for Remote {
    fn read_to<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let (bucket, name) = (self.0.clone(), name.to_string());
        answer(async move { read::read(&bucket, &name, range, Reach::Beyond).await })
    }
}
