//! Requests that the application signs itself: it answers the URL with a signature, where it keeps the
//! credentials.

use crate::seen;
use hyper::Uri;
use hyper::header::HOST;
use nacre_host::{Error, Result};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A request that has no signature yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsignedRequest {
    /// `GET`, `PUT`, `DELETE` or `POST`.
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// Its headers, by names in lower case. They are sent as they are, and S3 wants the signature to
    /// cover those that begin with `x-amz-`.
    pub headers: Vec<(String, String)>,
}

/// A function that returns the URL of a request with its signature. It runs on a thread that serves the
/// network, and must not block it. Calls of the store end with its error; those of the kind `unavailable`
/// are repeated.
pub type UrlSigner = Arc<
    dyn Fn(UnsignedRequest) -> Pin<Box<dyn Future<Output = Result<String>> + Send>> + Send + Sync,
>;

/// Signs requests, or leaves them as they are.
#[derive(Clone, Default)]
pub(crate) struct Presigning(pub(crate) Option<UrlSigner>);

impl fmt::Debug for Presigning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Presigning" } else { "NotPresigning" })
    }
}

impl Presigning {
    /// Gives a request the URL that the application answers. Its errors are noted for the call, because
    /// those of `object_store` do not keep them.
    pub(crate) async fn sign(&self, request: &mut HttpRequest) -> Result<(), HttpError> {
        let Some(signer) = &self.0 else {
            return Ok(());
        };
        let answer = signer(unsigned(request)).await.and_then(|answer| url(&answer));
        *request.uri_mut() = answer.map_err(|error| {
            seen::lock(&seen::current()).no_credentials = Some(error.clone());
            HttpError::new(HttpErrorKind::Unknown, error)
        })?;
        Ok(())
    }
}

fn unsigned(request: &HttpRequest) -> UnsignedRequest {
    let headers = request.headers().iter().filter(|(name, _)| **name != HOST);
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    UnsignedRequest {
        method: request.method().to_string(),
        url: request.uri().to_string(),
        headers: headers.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
    }
}

/// The URL in an answer, which no message may show: it is a credential.
fn url(answer: &str) -> Result<Uri> {
    let unusable = || Error::io("the function that signs requests has returned no URL of HTTP");
    let uri = Uri::try_from(answer).map_err(|_| unusable())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(uri),
        _ => Err(unusable()),
    }
}
