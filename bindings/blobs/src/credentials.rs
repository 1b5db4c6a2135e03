//! Credentials: as a value, from the environment, or from a function of the application that is asked
//! again before they expire and when the server refuses them.

use crate::presign::UrlSigner;
use crate::seen;
use async_trait::async_trait;
use nacre_host::{Error, Result};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use object_store::azure::{AzureAccessKey, AzureCredential};
use object_store::gcp::GcpCredential;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// New credentials are asked for when the old ones are valid for less than this.
const EARLY: Duration = Duration::from_secs(60);

/// What a request is signed with.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// An access key of S3; or the name and the key of a storage account of Azure.
    Key {
        /// Its name.
        id: String,
        /// The key itself.
        secret: String,
        /// What comes with a temporary key of S3.
        session_token: Option<String>,
    },
    /// A bearer token of Google Cloud or Azure.
    Token(String),
    /// A shared access signature of Azure, as the query of a URL.
    SharedSignature(String),
    /// The key of a service account of Google Cloud, as JSON. Not from a function.
    ServiceAccount(String),
}

/// Shows no secret.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Key { id, .. } => {
                f.debug_struct("Key").field("id", id).finish_non_exhaustive()
            }
            Credential::Token(_) => f.write_str("Token(…)"),
            Credential::SharedSignature(_) => f.write_str("SharedSignature(…)"),
            Credential::ServiceAccount(_) => f.write_str("ServiceAccount(…)"),
        }
    }
}

/// A credential that a function returned.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The credential.
    pub credential: Credential,
    /// When it expires, if it does.
    pub expires: Option<SystemTime>,
}

/// A function that returns credentials. It runs on a thread that serves the network, and must not block
/// it. Calls of the store end with its error.
pub type CredentialSource =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Issued>> + Send>> + Send + Sync>;

/// Where credentials come from.
#[derive(Clone)]
pub enum Credentials {
    /// The environment: the variables and services that the tools of the provider use, too, such as
    /// `AWS_ACCESS_KEY_ID` or the metadata of the machine. Region and endpoint as well, where the options
    /// have none.
    Environment,
    /// Nowhere: requests are not signed. For buckets that are public.
    Anonymous,
    /// A credential that never changes.
    Fixed(Credential),
    /// A function, which is asked when a credential is needed first, a minute before it expires, and when
    /// the server refuses it.
    Source(CredentialSource),
    /// A function that signs the URL of each request, so that the credentials may be elsewhere. It is
    /// asked anew when the server refuses what it has signed.
    Presigned(UrlSigner),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Environment => f.write_str("Environment"),
            Credentials::Anonymous => f.write_str("Anonymous"),
            Credentials::Fixed(credential) => f.debug_tuple("Fixed").field(credential).finish(),
            Credentials::Source(_) => f.write_str("Source(…)"),
            Credentials::Presigned(_) => f.write_str("Presigned(…)"),
        }
    }
}

/// Asks a function, and keeps what it returned.
pub(crate) struct Refreshing {
    source: CredentialSource,
    kept: Mutex<Option<Kept>>,
    /// Held while the function runs, so that calls at the same time share one answer: how often it has
    /// answered.
    asking: tokio::sync::Mutex<u64>,
}

struct Kept {
    issued: Issued,
    number: u64,
}

impl Refreshing {
    pub(crate) fn new(source: CredentialSource) -> Arc<Refreshing> {
        Arc::new(Refreshing {
            source,
            kept: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        })
    }

    /// Forgets the credentials with this number, which a server refused. Newer ones stay.
    pub(crate) fn refuse(&self, number: Option<u64>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().map(|kept| kept.number) == number {
            *kept = None;
        }
    }

    fn kept(&self, early: Duration) -> Option<(Credential, u64)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { issued, number } = kept.as_ref()?;
        let is_valid = issued.expires.is_none_or(|expires| SystemTime::now() + early < expires);
        is_valid.then(|| (issued.credential.clone(), *number))
    }

    /// The credential, and its number.
    async fn credential(&self) -> Result<(Credential, u64)> {
        if let Some(credential) = self.kept(EARLY) {
            return Ok(credential);
        }
        let mut count = self.asking.lock().await;
        if let Some(credential) = self.kept(EARLY) {
            return Ok(credential);
        }
        match (self.source)().await {
            Ok(issued) => {
                *count += 1;
                let credential = issued.credential.clone();
                let kept = Kept { issued, number: *count };
                *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
                Ok((credential, *count))
            }
            // What still holds does for another minute.
            Err(error) => self.kept(Duration::ZERO).ok_or(error),
        }
    }

    /// The credential as `object_store` wants it. Errors are noted for the call, because those of
    /// `object_store` do not keep them.
    async fn get<T>(&self, convert: fn(Credential) -> Option<T>) -> object_store::Result<Arc<T>> {
        let credential = self.credential().await;
        let converted = credential.and_then(|(credential, number)| {
            seen::lock(&seen::current()).credentials = Some(number);
            let shown = format!("{credential:?}");
            convert(credential)
                .ok_or_else(|| Error::io(format!("the store cannot use the credential {shown}")))
        });
        converted.map(Arc::new).map_err(|error| {
            seen::lock(&seen::current()).no_credentials = Some(error.clone());
            object_store::Error::Generic { store: "credentials", source: Box::new(error) }
        })
    }
}

impl fmt::Debug for Refreshing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refreshing")
    }
}

/// A function's credentials as those of one provider.
#[derive(Debug)]
pub(crate) struct For<T>(pub(crate) Arc<Refreshing>, std::marker::PhantomData<fn() -> T>);

impl<T> For<T> {
    pub(crate) fn new(refreshing: &Arc<Refreshing>) -> Arc<For<T>> {
        Arc::new(For(refreshing.clone(), std::marker::PhantomData))
    }
}

#[async_trait]
impl CredentialProvider for For<AwsCredential> {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        self.0.get(aws).await
    }
}

#[async_trait]
impl CredentialProvider for For<GcpCredential> {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        self.0.get(gcp).await
    }
}

#[async_trait]
impl CredentialProvider for For<AzureCredential> {
    type Credential = AzureCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        self.0.get(azure).await
    }
}

pub(crate) fn aws(credential: Credential) -> Option<AwsCredential> {
    match credential {
        Credential::Key { id, secret, session_token } => {
            Some(AwsCredential { key_id: id, secret_key: secret, token: session_token })
        }
        _ => None,
    }
}

pub(crate) fn gcp(credential: Credential) -> Option<GcpCredential> {
    match credential {
        Credential::Token(bearer) => Some(GcpCredential { bearer }),
        _ => None,
    }
}

pub(crate) fn azure(credential: Credential) -> Option<AzureCredential> {
    match credential {
        Credential::Key { secret, .. } => {
            AzureAccessKey::try_new(&secret).ok().map(AzureCredential::AccessKey)
        }
        Credential::Token(token) => Some(AzureCredential::BearerToken(token)),
        Credential::SharedSignature(query) => {
            let query = query.trim_start_matches('?');
            let pairs = url::form_urlencoded::parse(query.as_bytes());
            Some(AzureCredential::SASToken(pairs.into_owned().collect()))
        }
        Credential::ServiceAccount(_) => None,
    }
}
