//! What was seen of the last request of a call: whether it can have reached the server, and what that
//! answered. The crate `object_store` keeps little of this in its errors.

use bytes::Bytes;
use hyper::{HeaderMap, Uri};
use nacre_host::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last request of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Host and port that it went to.
    pub(crate) authority: String,
    /// Whether a part of it may have reached the server.
    pub(crate) sent: bool,
    /// The status of the answer.
    pub(crate) status: Option<u16>,
    /// What broke off the request or its answer.
    pub(crate) broken: Option<String>,
    /// The server's name for its error, as `NoSuchBucket`.
    pub(crate) code: String,
    /// The server's words for it.
    pub(crate) message: String,
    /// The region of the bucket, if the server named it.
    pub(crate) region: Option<String>,
    /// How long the server wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// By how many seconds the server's clock is ahead.
    pub(crate) skew_s: i64,
    /// Why there are no credentials.
    pub(crate) no_credentials: Option<Error>,
    /// The number of the credentials that a function of the application issued for it.
    pub(crate) credentials: Option<u64>,
    /// Whether the answer is a listing.
    pub(crate) is_listing: bool,
}

tokio::task_local! {
    static SEEN: Arc<Mutex<Seen>>;
}

/// Runs a call, and returns what was seen of its last request.
pub(crate) async fn watched<T>(call: impl Future<Output = T>) -> (T, Seen) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let output = SEEN.scope(seen.clone(), call).await;
    let seen = lock(&seen).clone();
    (output, seen)
}

/// The call that runs on this task. Outside of one, what is noted is forgotten.
pub(crate) fn current() -> Arc<Mutex<Seen>> {
    SEEN.try_with(Arc::clone).unwrap_or_default()
}

pub(crate) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Host and port of a URL, without a port that goes without saying.
pub(crate) fn authority(url: &Uri) -> String {
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    match (url.port_u16(), url.scheme_str()) {
        (Some(80), Some("http")) | (Some(443), Some("https")) | (None, _) => host,
        (Some(port), _) => format!("{host}:{port}"),
    }
}

impl Seen {
    /// Notes the head of an answer.
    pub(crate) fn answered(&mut self, status: u16, headers: &HeaderMap) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        self.status = Some(status);
        self.code = text("x-ms-error-code").unwrap_or_default().to_string();
        self.region = text("x-amz-bucket-region").map(String::from);
        self.retry_after =
            text("retry-after").and_then(|s| s.parse().ok()).map(Duration::from_secs);
        self.skew_s = text("date").and_then(seconds_of).map_or(0, |server| server - now_s());
    }

    /// Notes the body of an answer that reports an error.
    pub(crate) fn explained(&mut self, body: &Bytes) {
        let text = String::from_utf8_lossy(body);
        if let Some(code) = element(&text, "Code") {
            self.code = code;
        }
        self.message = element(&text, "Message").unwrap_or_default();
        self.region = element(&text, "Region").or(self.region.take());
    }
}

/// The text of an element of XML that has no elements inside.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = |c: char| !c.is_control();
    Some(inside.chars().filter(|c| plain(*c)).take(300).collect())
}

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// Seconds since 1970 of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of(date: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut parts = date.split(' ').skip(1);
    let day: i64 = parts.next()?.parse().ok()?;
    let month = MONTHS.find(parts.next()?)? as i64 / 3 + 1;
    let year: i64 = parts.next()?.parse().ok()?;
    let mut time = parts.next()?.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    // Days of the civil calendar, counted in years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::{Seen, authority, element, seconds_of};
    use bytes::Bytes;

    #[test]
    fn ports_that_go_without_saying_are_left_out() {
        for (url, expected) in [
            ("https://S3.example.com:443/b", "s3.example.com"),
            ("https://s3.example.com", "s3.example.com"),
            ("http://s3.example.com:443", "s3.example.com:443"),
            ("http://127.0.0.1:9000/b/c?d", "127.0.0.1:9000"),
        ] {
            assert_eq!(authority(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn dates_are_read() {
        for (date, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Sun, 31 Dec 2028 12:00:00 GMT", Some(1_861_876_800)),
            ("yesterday", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(seconds_of(date), seconds, "{date}");
        }
    }

    #[test]
    fn errors_are_read_from_their_bodies() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Please\nreduce</Message>\
                    <AWSAccessKeyId>never</AWSAccessKeyId></Error>";
        let mut seen = Seen { region: Some("eu-west-1".into()), ..Seen::default() };
        seen.explained(&Bytes::from_static(body.as_bytes()));
        assert_eq!((&*seen.code, &*seen.message), ("SlowDown", "Pleasereduce"));
        assert_eq!(seen.region.as_deref(), Some("eu-west-1"));
        assert_eq!(element("<Code>unfinished", "Code"), None);
        let mut seen = Seen { code: "BlobNotFound".into(), ..Seen::default() };
        seen.explained(&Bytes::from_static(b"\xff\xfenothing"));
        assert_eq!(seen.code, "BlobNotFound");
    }
}
