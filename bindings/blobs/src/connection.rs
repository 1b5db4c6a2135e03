//! HTTP/1.1 over TCP and TLS, for `object_store`. A request that stands still is given up; what has
//! happened to it is noted in [`seen`](crate::seen).
//!
//! Neither proxies nor redirects are followed.

use crate::credentials::Credentials;
use crate::options::BlobOptions;
use crate::presign::Presigning;
use crate::seen::{self, Seen};
use crate::tls;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use nacre_host::Result;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Of the body of an error, this is read.
const ERROR_BYTES: usize = 64 << 10;
/// A connection that was not used for so long is closed: servers close theirs after a minute or so.
const KEEP_IDLE: Duration = Duration::from_secs(20);

/// Makes connections, and keeps them.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    client: Client<HttpsConnector<Tcp>, Sending>,
    idle: Duration,
    presigning: Presigning,
}

impl Connector {
    /// A connector without connections.
    ///
    /// Errors: `io` if the certificates in the options cannot be used.
    pub(crate) fn new(options: &BlobOptions) -> Result<Connector> {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(options.connect_timeout));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(options.authorities.as_deref())?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .build(https);
        let presigning = Presigning(match &options.credentials {
            Credentials::Presigned(signer) => Some(signer.clone()),
            _ => None,
        });
        Ok(Connector { client, idle: options.idle_timeout, presigning })
    }

    /// Sends a request, and waits for the head of its answer.
    async fn send(&self, request: HttpRequest) -> Result<hyper::Response<Incoming>, HttpError> {
        let progress = Arc::new(Mutex::new(Instant::now()));
        let request = request.map(|body| Sending { body, progress: progress.clone() });
        let mut sending = std::pin::pin!(self.client.request(request));
        loop {
            let until = *progress.lock().unwrap_or_else(|p| p.into_inner()) + self.idle;
            tokio::select! {
                answer = &mut sending => return answer.map_err(|error| {
                    let kind = match error.is_connect() {
                        true => HttpErrorKind::Connect,
                        false => HttpErrorKind::Interrupted,
                    };
                    HttpError::new(kind, error)
                }),
                () = sleep_until(until) => {
                    if *progress.lock().unwrap_or_else(|p| p.into_inner()) + self.idle <= until {
                        return Err(stood_still(self.idle));
                    }
                }
            }
        }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let agent = concat!("nacre/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
        let seen = seen::current();
        let authority = seen::authority(request.uri());
        {
            let mut seen = seen::lock(&seen);
            let credentials = seen.credentials;
            *seen = Seen { authority, credentials, ..Seen::default() };
        }
        let is_list = request.uri().query().is_some_and(is_list);
        self.presigning.sign(&mut request).await?;
        let response = match self.send(request).await {
            Ok(response) => response,
            Err(error) => {
                let mut seen = seen::lock(&seen);
                seen.sent = error.kind() != HttpErrorKind::Connect;
                seen.broken = Some(chain(&error));
                return Err(error);
            }
        };
        let (parts, body) = response.into_parts();
        {
            let mut seen = seen::lock(&seen);
            seen.sent = true;
            seen.answered(parts.status.as_u16(), &parts.headers);
        }
        let body = Receiving::new(body, self.idle, seen.clone());
        if parts.status.is_success() && is_list {
            let body = body.collect().await?.to_bytes();
            seen::lock(&seen).is_listing = is_listing(&body);
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        if parts.status.is_success() {
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)));
        }
        // Whatever comes of it: the status is what counts.
        let body = match Limited::new(body, ERROR_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => Bytes::new(),
        };
        seen::lock(&seen).explained(&body);
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

/// Whether the query of a URL asks for a listing of S3 and Google, or of Azure.
fn is_list(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"))
}

/// Whether a text is a listing that says where it goes on, if it does.
fn is_listing(text: &[u8]) -> bool {
    let has = |part: &[u8]| text.windows(part.len()).any(|bytes| bytes == part);
    let is_cut = has(b"<IsTruncated>true") && !has(b"<NextContinuationToken>");
    (has(b"</ListBucketResult>") && !is_cut) || has(b"</EnumerationResults>")
}

fn stood_still(idle: Duration) -> HttpError {
    let text = format!("nothing was sent or came for {idle:?}");
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, text))
}

/// An error with its causes, which say more than itself.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// The body of a request, which notes when a part of it was taken.
struct Sending {
    body: HttpRequestBody,
    progress: Arc<Mutex<Instant>>,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        *self.progress.lock().unwrap_or_else(|p| p.into_inner()) = Instant::now();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, which is given up when it stands still.
struct Receiving {
    body: Incoming,
    idle: Duration,
    until: Pin<Box<Sleep>>,
    seen: Arc<Mutex<Seen>>,
}

impl Receiving {
    fn new(body: Incoming, idle: Duration, seen: Arc<Mutex<Seen>>) -> Receiving {
        let until = Box::pin(sleep_until(Instant::now() + idle));
        Receiving { body, idle, until, seen }
    }

    fn broken(&self, error: HttpError) -> HttpError {
        seen::lock(&self.seen).broken = Some(chain(&error));
        error
    }
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => {
                this.until.as_mut().reset(Instant::now() + this.idle);
                let broken = |error| this.broken(HttpError::new(HttpErrorKind::Interrupted, error));
                Poll::Ready(frame.map(|frame| frame.map_err(broken)))
            }
            Poll::Pending => match this.until.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(this.broken(stood_still(this.idle))))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
