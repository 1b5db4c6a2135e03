//! What an application says about its blob store, beside the URL.

use crate::credentials::Credentials;
use crate::seal::EncryptionKey;
use std::time::Duration;

/// Options of [`open_blobs`](crate::open_blobs).
///
/// ```
/// use nacre_blobs::{BlobOptions, Credential, Credentials};
///
/// let key = Credential::Key {
///     id: "id".into(),
///     secret: "secret".into(),
///     session_token: None,
/// };
/// let options = BlobOptions {
///     endpoint: Some("http://127.0.0.1:9000".into()),
///     credentials: Credentials::Fixed(key),
///     ..BlobOptions::default()
/// };
/// assert!(nacre_blobs::open_blobs("s3://bucket/shop", &options).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct BlobOptions {
    /// URL of the server, if it is not that of Amazon, Google or Microsoft.
    pub endpoint: Option<String>,
    /// Region of the bucket, for S3; `us-east-1` by default.
    pub region: Option<String>,
    /// Whether the bucket is part of the host's name, as in `https://bucket.example.com/key`, and not
    /// of the path. By default it is, where the server is Amazon's and the bucket has no dot.
    pub virtual_host: Option<bool>,
    /// Name of the storage account, for Azure.
    pub account: Option<String>,
    /// Headers of every request, by name. They are signed, too.
    pub headers: Vec<(String, String)>,
    /// How the server encrypts what is written.
    pub encryption: Encryption,
    /// With this key, blobs are encrypted before they leave the process, and the server never has it.
    pub encryption_key: Option<EncryptionKey>,
    /// What requests are signed with.
    pub credentials: Credentials,
    /// Certificates in PEM of authorities that are trusted beside those of the system.
    pub authorities: Option<Vec<u8>>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a request may stand still: nothing is sent, and nothing comes.
    pub idle_timeout: Duration,
    /// How long a call is repeated that failed in a way that may pass. Callers that can wait longer
    /// repeat it themselves.
    pub retry_for: Duration,
}

impl Default for BlobOptions {
    fn default() -> BlobOptions {
        BlobOptions {
            endpoint: None,
            region: None,
            virtual_host: None,
            account: None,
            headers: Vec::new(),
            encryption: Encryption::Default,
            encryption_key: None,
            credentials: Credentials::Environment,
            authorities: None,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(15),
            retry_for: Duration::from_secs(20),
        }
    }
}

/// How a server encrypts what is written. Other than the default only for S3, but
/// [`Encryption::Customer`] for Azure, too.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// As the bucket is set up.
    #[default]
    Default,
    /// With keys of the server (SSE-S3).
    Managed,
    /// With a key of a key management service (SSE-KMS): its name.
    Kms(String),
    /// With a key that comes with each request (SSE-C): 256 bits in base64.
    Customer(String),
}

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Encryption::Default => f.write_str("Default"),
            Encryption::Managed => f.write_str("Managed"),
            Encryption::Kms(key) => f.debug_tuple("Kms").field(key).finish(),
            Encryption::Customer(_) => f.write_str("Customer(…)"),
        }
    }
}
