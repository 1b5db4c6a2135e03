//! Options of commands for blob stores.

use crate::failure::Outcome;
use clap::{Args, ValueEnum};
use nacre_blobs::{BlobOptions, Encryption, EncryptionKey, open_blobs};
use nacredb::{Blobs, Error};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the client of a blob store repeats a call by itself: the engine repeats it as well.
const RETRY_FOR: Duration = Duration::from_secs(1);

/// Schemes of the URLs of blob stores that are not folders.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// How a blob store is reached. Credentials come from the environment.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Blob store")]
pub struct BlobClient {
    /// URL of the server, if it is not Amazon's, Google's or Microsoft's; else AWS_ENDPOINT_URL
    #[arg(long, value_name = "URL")]
    pub blob_endpoint: Option<String>,
    /// Region of the bucket; else AWS_REGION, and us-east-1
    #[arg(long, value_name = "REGION")]
    pub blob_region: Option<String>,
    /// Whether the bucket is in the host's name or in the path of requests
    #[arg(long, value_enum, value_name = "STYLE")]
    pub blob_style: Option<BucketStyle>,
    /// Header of every request; may be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub blob_header: Vec<(String, String)>,
    /// How the server encrypts: managed (SSE-S3), kms:KEY (SSE-KMS), or a file with a key (SSE-C)
    #[arg(long, value_name = "HOW")]
    pub blob_encryption: Option<String>,
    /// File with the key that blobs are encrypted with before they leave, as 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub blob_key: Option<PathBuf>,
}

/// Where requests name the bucket.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketStyle {
    /// https://bucket.example.com/key
    Host,
    /// https://example.com/bucket/key
    Path,
}

fn header(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match parts.filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err("a header is a name, a colon and a value".into()),
    }
}

/// Whether a URL names a database by its blobs.
pub fn is_blob_url(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

impl BlobClient {
    /// The blobs at a URL.
    pub fn at(&self, url: &str) -> Outcome<Blobs> {
        let key = |file: &PathBuf| -> Outcome<EncryptionKey> {
            Ok(EncryptionKey::from_hex(&text_in(file, "key")?)?)
        };
        let encryption = match self.blob_encryption.as_deref() {
            None => Encryption::Default,
            Some("managed") => Encryption::Managed,
            Some(how) => match how.strip_prefix("kms:") {
                Some(name) => Encryption::Kms(name.into()),
                None => Encryption::Customer(text_in(Path::new(how), "key")?.trim().into()),
            },
        };
        let client = BlobOptions {
            endpoint: self.blob_endpoint.clone(),
            region: self.blob_region.clone(),
            virtual_host: self.blob_style.map(|style| style == BucketStyle::Host),
            headers: self.blob_header.clone(),
            encryption,
            encryption_key: self.blob_key.as_ref().map(key).transpose()?,
            retry_for: RETRY_FOR,
            ..BlobOptions::default()
        };
        Ok(Blobs::new(open_blobs(url, &client)?))
    }
}

fn text_in(file: &Path, what: &str) -> Outcome<String> {
    Ok(std::fs::read_to_string(file).map_err(|error| {
        Error::io(format!("cannot read the {what} in {}: {error}", file.display()))
    })?)
}

/// What is kept in a blob store, and when.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Blob store")]
pub struct BlobSettings {
    /// Bytes of segments on this disk, beyond which they are read from the blob store
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size)]
    pub disk_limit: Option<usize>,
    /// A statement that commits ends once that is uploaded
    #[arg(long)]
    pub hold_commits: bool,
    /// Time from a commit to its upload, such as 200ms or 5s; 1s by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub blob_lag: Option<Duration>,
    /// Bytes that may wait for their upload, beyond which statements that write fail; 4GB by default
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size)]
    pub unsent_limit: Option<usize>,
    /// Time for which every state of the past stays, such as 12h or 30d; 1d by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub history: Option<Duration>,
    /// Time for which blobs stay that readers without a lease may need; 1d by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub retention: Option<Duration>,
    /// Does not bring footers and indexes to this disk after opening
    #[arg(long)]
    pub no_warm: bool,
}

impl BlobSettings {
    /// Sets what is given.
    pub fn apply(&self, blobs: &mut Blobs) {
        let tiers = &mut blobs.options;
        let set = |to: &mut u64, given: Option<usize>| {
            if let Some(bytes) = given {
                *to = bytes as u64;
            }
        };
        set(&mut tiers.disk_limit, self.disk_limit);
        set(&mut tiers.unsent_limit, self.unsent_limit);
        tiers.holds_commits = self.hold_commits;
        tiers.lag = self.blob_lag.unwrap_or(tiers.lag);
        tiers.history = self.history.unwrap_or(tiers.history);
        tiers.retention = self.retention.unwrap_or(tiers.retention);
        tiers.warms = !self.no_warm;
    }
}

/// Parses a time such as `200ms`, `5s`, `10min`, `12h` or `30d`.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 24 * 3_600_000)];
    let text = text.trim();
    let found = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)));
    let count =
        found.and_then(|(number, ms)| number.trim_end().parse::<u64>().ok()?.checked_mul(ms));
    match (count, text) {
        (Some(ms), _) => Ok(Duration::from_millis(ms)),
        (None, "0") => Ok(Duration::ZERO),
        _ => Err("a time is a number with ms, s, min, h or d".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(time("5 s"), Ok(Duration::from_secs(5)));
        assert_eq!(time("10min"), Ok(Duration::from_secs(600)));
        assert_eq!(time("30d"), Ok(Duration::from_secs(30 * 24 * 3_600)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for wrong in ["", "5", "s", "-1s", "1.5h", "99999999999999999999d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_have_a_name() {
        assert_eq!(header("x-team: data"), Ok(("x-team".into(), "data".into())));
        assert_eq!(header("x-empty:"), Ok(("x-empty".into(), String::new())));
        assert!(header("no colon").is_err() && header(": value").is_err());
    }

    #[test]
    fn urls_of_blobs_are_told_from_paths() {
        assert!(
            is_blob_url("s3://bucket/shop") && is_blob_url("gs://b") && is_blob_url("az://c/p")
        );
        assert!(!is_blob_url("shop") && !is_blob_url("file:///s3") && !is_blob_url("memory://"));
    }
}
