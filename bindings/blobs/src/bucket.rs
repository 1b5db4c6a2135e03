//! A folder of a bucket over the network, and one request to it.

use crate::attempts::Attempts;
use crate::credentials::Refreshing;
use crate::failure::{Call, Failure, Verb};
use crate::seen::{Seen, watched};
use nacre_host::Tag;
use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What all protocols have.
pub(crate) trait Protocol: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Protocol for T {}

/// What a protocol calls the version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagKind {
    ETag,
    Generation,
}

/// A folder of a bucket.
pub(crate) struct Bucket {
    pub(crate) store: Box<dyn Protocol>,
    pub(crate) tags: TagKind,
    /// The URL, without a slash at its end.
    pub(crate) place: String,
    /// Host and port.
    pub(crate) authority: String,
    /// Before the names of blobs: empty, or with a slash at its end.
    pub(crate) prefix: String,
    pub(crate) retry_for: Duration,
    pub(crate) refreshing: Option<Arc<Refreshing>>,
    /// Whether the application signs requests itself.
    pub(crate) is_presigned: bool,
}

impl Bucket {
    pub(crate) fn call<'a>(&'a self, verb: Verb, name: &'a str) -> Call<'a> {
        Call { verb, place: &self.place, authority: &self.authority, name }
    }

    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::new(self.retry_for)
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    /// The tag in an answer.
    pub(crate) fn tag(&self, e_tag: Option<String>, version: Option<String>) -> Option<Tag> {
        let tag = match self.tags {
            TagKind::ETag => e_tag,
            TagKind::Generation => version,
        };
        tag.map(|tag| Tag(tag.into()))
    }

    /// Runs one request of a call.
    pub(crate) async fn request<T>(
        &self,
        call: Call<'_>,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<(T, Seen), Failure> {
        match watched(request).await {
            (Ok(answer), seen) => Ok((answer, seen)),
            (Err(error), seen) => {
                let mut failure = Failure::of(call, &error, &seen);
                if failure.is_refused {
                    if let Some(refreshing) = &self.refreshing {
                        refreshing.refuse(seen.credentials);
                    }
                    failure.is_renewable = self.is_presigned || self.refreshing.is_some();
                }
                Err(failure)
            }
        }
    }
}
