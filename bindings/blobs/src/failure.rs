//! What a failed request means: the error for the caller, whether it is worth repeating, and whether it
//! may have had an effect all the same.

use crate::seen::Seen;
use nacre_host::{Error, ErrorKind};
use std::fmt::Write as _;
use std::time::Duration;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
    /// A write with a condition.
    WriteIf,
    List,
    Remove,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write | Verb::WriteIf => "write",
            Verb::List => "list",
            Verb::Remove => "remove",
        }
    }

    fn changes(self) -> bool {
        matches!(self, Verb::Write | Verb::WriteIf | Verb::Remove)
    }
}

/// A call, as messages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) verb: Verb,
    /// The URL of the folder.
    pub(crate) place: &'a str,
    /// Host and port of the store.
    pub(crate) authority: &'a str,
    /// The name of the blob, or the prefix of a listing.
    pub(crate) name: &'a str,
}

impl Call<'_> {
    /// The start of a message.
    fn cannot(&self) -> String {
        format!("cannot {} {}/{}", self.verb.name(), self.place, self.name)
    }

    pub(crate) fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("{}: {what}", self.cannot()))
    }

    pub(crate) fn unavailable(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Unavailable, format!("{}: {what}", self.cannot()))
    }
}

/// A failed request.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the same request may succeed later.
    pub(crate) passes: bool,
    /// Whether the credentials were refused.
    pub(crate) is_refused: bool,
    /// Whether they are asked for again with the next attempt.
    pub(crate) is_renewable: bool,
    /// Whether a change may have taken effect, or may do so later.
    pub(crate) uncertain: bool,
    /// How long the server wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    /// A failure that does not pass.
    pub(crate) fn lasting(error: Error) -> Failure {
        Failure {
            error,
            passes: false,
            is_refused: false,
            is_renewable: false,
            uncertain: false,
            retry_after: None,
        }
    }

    /// A failure that may pass.
    fn passing(error: Error, uncertain: bool, seen: &Seen) -> Failure {
        let retry_after = seen.retry_after;
        Failure { passes: true, uncertain, retry_after, ..Failure::lasting(error) }
    }

    /// Explains the error of a call by what was seen of its last request.
    pub(crate) fn of(call: Call<'_>, error: &object_store::Error, seen: &Seen) -> Failure {
        if let Some(error) = &seen.no_credentials {
            let passes = error.kind() == ErrorKind::Unavailable;
            return Failure { passes, ..Failure::lasting(error.clone()) };
        }
        if !seen.authority.is_empty() && seen.authority != call.authority {
            return without_credentials(call, error, seen);
        }
        let Some(status) = seen.status else {
            return match &seen.broken {
                Some(broken) => broken_off(call, broken, seen),
                // Nothing was sent: the request itself is impossible.
                None => Failure::lasting(Error::io(format!("{}: {error}", call.cannot()))),
            };
        };
        match &seen.broken {
            Some(broken) if status < 300 => broken_off(call, broken, seen),
            _ => answered(call, status, error, seen),
        }
    }
}

/// A request or its answer that broke off.
fn broken_off(call: Call<'_>, broken: &str, seen: &Seen) -> Failure {
    let error = call.unavailable(broken);
    let error = match broken.contains("certificate") {
        true => error.with_hint(
            "install the certificates of authorities (ca-certificates), or pass those of the server",
        ),
        false => error,
    };
    Failure::passing(error, call.verb.changes() && seen.sent, seen)
}

/// A request for credentials that failed: the store was not asked.
fn without_credentials(call: Call<'_>, error: &object_store::Error, seen: &Seen) -> Failure {
    let text = format!("{}: no credentials from {}: {error}", call.cannot(), seen.authority);
    let hint = "pass credentials, or set them in the environment";
    match seen.status {
        Some(status) if status < 500 && status != 429 => {
            Failure::lasting(Error::io(text).with_hint(hint))
        }
        _ => {
            let error = Error::new(ErrorKind::Unavailable, text).with_hint(hint);
            Failure::passing(error, false, seen)
        }
    }
}

/// What the server said.
fn said(call: Call<'_>, status: u16, seen: &Seen) -> String {
    let mut text = format!("{}: the server answered {status}", call.cannot());
    for part in [&seen.code, &seen.message] {
        if !part.is_empty() {
            let separator = if part == &seen.code { " " } else { ": " };
            let _ = write!(text, "{separator}{part}");
        }
    }
    text
}

fn answered(call: Call<'_>, status: u16, error: &object_store::Error, seen: &Seen) -> Failure {
    let said = said(call, status, seen);
    let unavailable = |uncertain| {
        let error = Error::new(ErrorKind::Unavailable, said.clone());
        Failure::passing(error, uncertain && call.verb.changes(), seen)
    };
    match (status, &*seen.code) {
        // The client or the server was too slow in between.
        (400, "RequestTimeout") | (408 | 429 | 500..=599, _) if status != 501 => unavailable(true),
        // Others were writing it. Nothing has changed.
        (409, "ConditionalRequestConflict" | "OperationAborted") => unavailable(false),
        (404, code) if is_bucket_missing(code) => {
            Failure::lasting(Error::io(said).with_hint("create the bucket, or correct its name"))
        }
        (404, code) if !is_blob_missing(code) => Failure::lasting(
            Error::io(said).with_hint("check the endpoint, the bucket and the credentials"),
        ),
        (404, _) if matches!(call.verb, Verb::Read | Verb::Remove) => {
            Failure::lasting(Error::not_found(said))
        }
        (304 | 404 | 409 | 412, _) if call.verb == Verb::WriteIf => {
            Failure::lasting(Error::conflict(said))
        }
        (416, _) => Failure::lasting(call.corrupt("the blob is shorter than it was")),
        (401 | 403, _) | (400, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => {
            let error = Error::io(said).with_hint(denied(&seen.code, seen));
            Failure { is_refused: true, ..Failure::lasting(error) }
        }
        (300..=399, _)
        | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            Failure::lasting(Error::io(said).with_hint(match &seen.region {
                Some(region) => format!("the bucket is in region {region}"),
                None => "set the region and the endpoint of the bucket".into(),
            }))
        }
        (501, _) => {
            Failure::lasting(Error::io(said).with_hint(
                "the store must support conditional writes (If-None-Match and If-Match)",
            ))
        }
        (200..=299, _) => misunderstood(call, error, seen),
        _ => Failure::lasting(Error::io(said)),
    }
}

fn is_bucket_missing(code: &str) -> bool {
    matches!(code, "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted")
}

/// Whether a 404 speaks of the blob, and not of something around it. The answer to a HEAD has no code.
fn is_blob_missing(code: &str) -> bool {
    matches!(code, "" | "NoSuchKey" | "NotFound" | "BlobNotFound" | "ResourceNotFound")
}

/// What to do about credentials that were refused.
fn denied(code: &str, seen: &Seen) -> String {
    match code {
        "RequestTimeTooSkewed" | "RequestExpired" => format!(
            "set this machine's clock: it is {} s {} the server's",
            seen.skew_s.abs(),
            if seen.skew_s > 0 { "behind" } else { "ahead of" }
        ),
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidAuthenticationInfo"
        | "AuthenticationFailed" => "check the credentials, and the region".into(),
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
            "the session token is no longer valid: pass new credentials, or a function that returns them"
                .into()
        }
        _ => "the credentials need the rights to read, write, list and remove objects below the prefix"
            .into(),
    }
}

/// A success that is no answer to the request.
fn misunderstood(call: Call<'_>, error: &object_store::Error, seen: &Seen) -> Failure {
    if let object_store::Error::InvalidPath { .. } = error {
        let text = format!("{}: it contains what no blob can be: {error}", call.cannot());
        return Failure::lasting(Error::io(text));
    }
    // One of a batch of removals, which Azure answers together.
    if let object_store::Error::NotFound { .. } = error {
        return Failure::lasting(Error::not_found(format!("{}: {error}", call.cannot())));
    }
    match call.verb.changes() {
        // It may well have taken effect.
        true => Failure::passing(call.unavailable(error), true, seen),
        false => Failure::lasting(call.corrupt(error)),
    }
}
