//! Writes and removals, whose answers may be lost.
//!
//! A request that failed may have taken effect. Repeating a write with a condition then meets its own
//! effect, and the server answers that the condition does not hold. So each such write carries a random
//! number in the metadata of the object: if the object that is there has the number of this write, it
//! has succeeded. If it has another, this write may have been replaced since, and the outcome stays
//! unknown.

use crate::bucket::{Bucket, TagKind};
use crate::failure::{Call, Verb};
use bytes::Bytes;
use nacre_host::{Error, ErrorKind, Result, Tag, WriteIf, check_blob_name};
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload, UpdateVersion,
};
use std::sync::Arc;

/// The key of the random number, in the metadata: letters only, as Azure wants it.
const NUMBER: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("nacrewrite"));
/// A body is handed over in parts, so that one that is being sent does not look as if it stood still.
const PART_BYTES: usize = 128 << 10;

/// Writes a blob.
pub(crate) async fn write(
    bucket: &Bucket,
    name: &str,
    bytes: Arc<[u8]>,
    when: WriteIf,
) -> Result<Tag> {
    check_blob_name(name)?;
    let call = bucket.call(if when == WriteIf::Any { Verb::Write } else { Verb::WriteIf }, name);
    let number = format!("{:032x}", rand::random::<u128>());
    let path = bucket.path(name);
    let payload = payload(bytes);
    let options = options(bucket.tags, &when, &number);
    let mut attempts = bucket.attempts();
    let mut is_uncertain = false;
    loop {
        let put = bucket.store.put_opts(&path, payload.clone(), options.clone());
        let failure = match bucket.request(call, put).await {
            Ok((put, _)) => match bucket.tag(put.e_tag, put.version) {
                Some(tag) => return Ok(tag),
                None => return written(bucket, call, &number).await,
            },
            Err(failure) => failure,
        };
        if is_uncertain && failure.error.kind() == ErrorKind::Conflict {
            return written(bucket, call, &number).await;
        }
        is_uncertain |= failure.uncertain;
        attempts.after(failure).await.map_err(|error| unknown(is_uncertain, error))?;
    }
}

/// Removes a blob.
pub(crate) async fn remove(bucket: &Bucket, name: &str) -> Result<()> {
    check_blob_name(name)?;
    let call = bucket.call(Verb::Remove, name);
    let path = bucket.path(name);
    let mut attempts = bucket.attempts();
    let mut is_uncertain = false;
    loop {
        let failure = match bucket.request(call, bucket.store.delete(&path)).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        if failure.error.kind() == ErrorKind::NotFound {
            return Ok(());
        }
        is_uncertain |= failure.uncertain;
        attempts.after(failure).await.map_err(|error| unknown(is_uncertain, error))?;
    }
}

/// The tag of the blob, if it is there as the write of this number left it.
async fn written(bucket: &Bucket, call: Call<'_>, number: &str) -> Result<Tag> {
    let path = bucket.path(call.name);
    let mut attempts = bucket.attempts();
    loop {
        let head = GetOptions { head: true, ..GetOptions::default() };
        match bucket.request(call, bucket.store.get_opts(&path, head)).await {
            Ok((got, _)) if got.attributes.get(&NUMBER).is_some_and(|n| n.as_ref() == number) => {
                let tag = bucket.tag(got.meta.e_tag, got.meta.version);
                return tag.ok_or_else(|| call.unavailable("the server sent no tag"));
            }
            Ok(_) => return Err(call.unavailable("it may have been written, and replaced since")),
            Err(failure) => {
                attempts.after(failure).await.map_err(|error| unknown(true, error))?;
            }
        }
    }
}

/// The error of a change: one that may have taken effect is `unavailable`, whatever its last attempt met.
fn unknown(is_uncertain: bool, error: Error) -> Error {
    match is_uncertain && error.kind() != ErrorKind::Unavailable {
        true => {
            let text = format!("an earlier attempt may have taken effect: {}", error.message());
            Error::new(ErrorKind::Unavailable, text)
        }
        false => error,
    }
}

fn payload(bytes: Arc<[u8]>) -> PutPayload {
    let bytes = Bytes::from_owner(bytes);
    let starts = (0..bytes.len()).step_by(PART_BYTES);
    starts.map(|at| bytes.slice(at..bytes.len().min(at + PART_BYTES))).collect()
}

fn options(tags: TagKind, when: &WriteIf, number: &str) -> PutOptions {
    let mode = match (when, tags) {
        (WriteIf::Any, _) => return PutOptions::default(),
        (WriteIf::Absent, _) => PutMode::Create,
        (WriteIf::Tagged(tag), TagKind::ETag) => {
            PutMode::Update(UpdateVersion { e_tag: Some(tag.0.to_string()), version: None })
        }
        (WriteIf::Tagged(tag), TagKind::Generation) => {
            PutMode::Update(UpdateVersion { e_tag: None, version: Some(tag.0.to_string()) })
        }
    };
    let attributes = Attributes::from_iter([(NUMBER, AttributeValue::from(number.to_string()))]);
    PutOptions { mode, attributes, ..PutOptions::default() }
}
