//! Reads and listings.

use crate::bucket::Bucket;
use crate::failure::{Failure, Verb};
use crate::store::Reach;
use futures_util::StreamExt;
use nacre_host::{BlobInfo, Result, Tag, check_blob_name, is_blob_name};
use object_store::list::PaginatedListOptions;
use object_store::{GetOptions, GetRange, GetResult};
use std::ops::Range;

async fn read_once(
    bucket: &Bucket,
    name: &str,
    range: Range<u64>,
    reach: Reach,
) -> Result<Vec<u8>, Failure> {
    let call = bucket.call(Verb::Read, name);
    let past_end = |at| {
        let text = format!("the blob ends at byte {at}, before byte {}", range.end);
        Failure::lasting(call.corrupt(text))
    };
    let options =
        GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
    let path = bucket.path(name);
    let read = async {
        let got = bucket.store.get_opts(&path, options).await?;
        // `object_store` has checked that it is as much of the range as there is.
        match got.range == range || reach == Reach::Beyond {
            true => Ok(Ok((got.range.end, collect(got).await?))),
            false => Ok(Err(got.range.end)),
        }
    };
    let (read, _) = bucket.request(call, read).await?;
    let (end, bytes) = read.map_err(past_end)?;
    let wanted = end - range.start;
    match bytes.len() as u64 == wanted {
        true => Ok(bytes),
        false => {
            let text = format!("the server sent {} bytes of {wanted}", bytes.len());
            Err(Failure::lasting(call.corrupt(text)))
        }
    }
}

/// Reads a range of a blob.
pub(crate) async fn read(
    bucket: &Bucket,
    name: &str,
    range: Range<u64>,
    reach: Reach,
) -> Result<Vec<u8>> {
    check_blob_name(name)?;
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let mut attempts = bucket.attempts();
    loop {
        match read_once(bucket, name, range.clone(), reach).await {
            Ok(bytes) => return Ok(bytes),
            Err(failure) => attempts.after(failure).await?,
        }
    }
}

async fn read_all_once(bucket: &Bucket, name: &str) -> Result<(Vec<u8>, Tag), Failure> {
    let call = bucket.call(Verb::Read, name);
    let path = bucket.path(name);
    let read = async {
        let got = bucket.store.get_opts(&path, GetOptions::default()).await?;
        let tag = bucket.tag(got.meta.e_tag.clone(), got.meta.version.clone());
        let len = got.meta.size;
        Ok((collect(got).await?, tag, len))
    };
    let ((bytes, tag, len), _) = bucket.request(call, read).await?;
    if bytes.len() as u64 != len {
        let text = format!("the server sent {} bytes of {len}", bytes.len());
        return Err(Failure::lasting(call.corrupt(text)));
    }
    match tag {
        Some(tag) => Ok((bytes, tag)),
        None => Err(Failure::lasting(call.corrupt("the server sent no tag"))),
    }
}

pub(crate) async fn read_all(bucket: &Bucket, name: &str) -> Result<(Vec<u8>, Tag)> {
    check_blob_name(name)?;
    let mut attempts = bucket.attempts();
    loop {
        match read_all_once(bucket, name).await {
            Ok(read) => return Ok(read),
            Err(failure) => attempts.after(failure).await?,
        }
    }
}

pub(crate) async fn list(bucket: &Bucket, prefix: &str) -> Result<Vec<BlobInfo>> {
    let call = bucket.call(Verb::List, prefix);
    let full = format!("{}{prefix}", bucket.prefix);
    let mut attempts = bucket.attempts();
    let mut listed = Vec::new();
    let mut page = None;
    loop {
        let options =
            PaginatedListOptions { page_token: page.clone(), ..PaginatedListOptions::default() };
        let of_all = (!full.is_empty()).then_some(&*full);
        match bucket.request(call, bucket.store.list_paginated(of_all, options)).await {
            // `object_store` reads any XML as an empty one.
            Ok((_, seen)) if !seen.is_listing => {
                return Err(call.corrupt("the answer is not a listing"));
            }
            Ok((answer, _)) => {
                listed.extend(answer.result.objects.into_iter().filter_map(|object| {
                    let name = object.location.as_ref().strip_prefix(&*bucket.prefix)?;
                    is_blob_name(name).then(|| BlobInfo {
                        name: name.to_string(),
                        len: object.size,
                        modified_us: object.last_modified.timestamp_micros(),
                    })
                }));
                page = answer.page_token;
                attempts = bucket.attempts();
            }
            Err(failure) => {
                attempts.after(failure).await?;
                continue;
            }
        }
        if page.is_none() {
            break;
        }
    }
    listed.sort_unstable_by(|a: &BlobInfo, b| a.name.cmp(&b.name));
    Ok(listed)
}

/// The bytes of an answer.
async fn collect(got: GetResult) -> object_store::Result<Vec<u8>> {
    let len = got.range.end - got.range.start;
    // A length that a server made up is not believed beyond this.
    let mut bytes = Vec::with_capacity(len.min(64 << 20) as usize);
    let mut stream = got.into_stream();
    while let Some(part) = stream.next().await {
        bytes.extend_from_slice(&part?);
    }
    Ok(bytes)
}
