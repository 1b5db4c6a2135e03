//! What is sent: credentials, headers, and the protocols of Google and Microsoft, to a server that answers
//! as each test says.

use crate::support::server::{Reply, Request, Server};
use crate::support::{key, open, options, wait};
use nacre_blobs::{
    BlobOptions, Credential, CredentialSource, Credentials, Encryption, Issued, UnsignedRequest,
};
use nacre_host::{BlobStore, Error, ErrorKind, Tag, WriteIf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

fn read(store: &Arc<dyn BlobStore>) -> nacre_host::Result<Vec<u8>> {
    wait(store.read("a", 0..4))
}

fn good(request: &Request) -> Option<Reply> {
    Some(Reply::object(request, b"0123456789"))
}

/// A function that returns keys with these names, one after the other, and counts its calls.
fn source(
    names: &'static [&'static str],
    valid_for: Option<Duration>,
) -> (CredentialSource, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let source: CredentialSource = Arc::new(move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let credential = Credential::Key {
            id: names[number.min(names.len() - 1)].to_string(),
            secret: "not-a-secret".into(),
            session_token: Some(format!("token-{number}")),
        };
        let expires = valid_for.map(|valid_for| SystemTime::now() + valid_for);
        Box::pin(async move { Ok(Issued { credential, expires }) })
    });
    (source, count)
}

fn with_source(server: &Server, source: CredentialSource) -> Arc<dyn BlobStore> {
    let credentials = Credentials::Source(source);
    open("s3://bucket/shop", &BlobOptions { credentials, ..options(&server.endpoint()) })
}

fn signed_by(request: &Request) -> String {
    let authorization = request.header("authorization").unwrap();
    let (_, rest) = authorization.split_once("Credential=").unwrap();
    rest.split('/').next().unwrap().to_string()
}

#[test]
fn a_function_is_asked_once_while_its_credentials_hold() {
    let server = Server::start(good);
    let (source, count) = source(&["first"], Some(Duration::from_secs(3600)));
    let store = with_source(&server, source);
    (0..3).for_each(|_| drop(read(&store).unwrap()));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let request = &server.requests()[2];
    assert_eq!(signed_by(request), "first");
    assert_eq!(request.header("x-amz-security-token"), Some("token-0"));
}

#[test]
fn a_function_is_asked_again_before_its_credentials_expire() {
    let server = Server::start(good);
    let (source, count) = source(&["first", "second"], Some(Duration::from_secs(30)));
    let store = with_source(&server, source);
    (0..2).for_each(|_| drop(read(&store).unwrap()));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    assert_eq!(signed_by(&server.requests()[1]), "second");
}

#[test]
fn a_function_is_asked_again_when_the_server_refuses_its_credentials() {
    for (status, code) in
        [("403 Forbidden", "AccessDenied"), ("400 Bad Request", "ExpiredToken"), ("401 No", "")]
    {
        let server = Server::start(move |request| match &*signed_by(request) {
            "old" => Some(Reply::error(status, code)),
            _ => good(request),
        });
        let (source, count) = source(&["old", "new"], None);
        let store = with_source(&server, source);
        assert_eq!(read(&store).unwrap(), b"0123", "{code}");
        assert_eq!(read(&store).unwrap(), b"0123", "{code}");
        assert_eq!(count.load(Ordering::Relaxed), 2, "{code}");
        assert_eq!(server.requests().len(), 3, "{code}");
    }
}

#[test]
fn credentials_that_stay_refused_are_an_error_after_one_more_attempt() {
    let server = Server::start(|_| Some(Reply::error("403 Forbidden", "AccessDenied")));
    let (source, count) = source(&["old"], None);
    let error = read(&with_source(&server, source)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!((count.load(Ordering::Relaxed), server.requests().len()), (2, 2));
    // A value does not change.
    let store = open("s3://bucket", &options(&server.endpoint()));
    read(&store).unwrap_err();
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_error_of_a_function_is_that_of_the_call() {
    let server = Server::start(good);
    let source: CredentialSource =
        Arc::new(|| Box::pin(async { Err(Error::io("the key server has no key for us")) }));
    let error = read(&with_source(&server, source)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("no key for us"), "{error}");
    let source: CredentialSource = Arc::new(|| {
        Box::pin(async {
            let credential = Credential::Token("hidden".into());
            Ok(Issued { credential, expires: None })
        })
    });
    let error = read(&with_source(&server, source)).unwrap_err();
    assert!(!error.to_string().contains("hidden") && error.kind() == ErrorKind::Io, "{error}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_function_that_is_away_is_asked_again() {
    let server = Server::start(good);
    let count = Arc::new(AtomicUsize::new(0));
    let source: CredentialSource = Arc::new(move || {
        let is_away = count.fetch_add(1, Ordering::Relaxed) < 2;
        Box::pin(async move {
            match is_away {
                true => Err(Error::new(ErrorKind::Unavailable, "the key server is away")),
                false => Ok(Issued { credential: key(), expires: None }),
            }
        })
    });
    assert_eq!(read(&with_source(&server, source)).unwrap(), b"0123");
}

/// A function that signs with numbers, one after the other, and notes what it was asked.
fn signer() -> (Credentials, Arc<Mutex<Vec<UnsignedRequest>>>) {
    let asked: Arc<Mutex<Vec<UnsignedRequest>>> = Arc::default();
    let noted = asked.clone();
    let credentials = Credentials::Presigned(Arc::new(move |request| {
        let mut asked = noted.lock().unwrap();
        let separator = if request.url.contains('?') { '&' } else { '?' };
        let signed = format!("{}{separator}signature={}", request.url, asked.len());
        asked.push(request);
        Box::pin(async move { Ok(signed) })
    }));
    (credentials, asked)
}

#[test]
fn an_application_signs_requests_itself_and_anew_after_a_refusal() {
    for (url, target) in [
        ("s3://bucket/shop", "/bucket/shop/a?"),
        ("gs://bucket/shop", "/bucket/shop%2Fa?"),
        ("az://container/shop", "/container/shop/a?"),
    ] {
        let server = Server::start(|request| match request.target.contains("signature=0") {
            true => Some(Reply::error("403 Forbidden", "AccessDenied")),
            false => good(request),
        });
        let (credentials, asked) = signer();
        let account = Some("account".to_string());
        let given = BlobOptions { credentials, account, ..options(&server.endpoint()) };
        let store = open(url, &given);
        assert_eq!(read(&store).unwrap(), b"0123", "{url}");
        let asked = asked.lock().unwrap();
        let requests = server.requests();
        assert_eq!((asked.len(), requests.len()), (2, 2), "{url}");
        for (number, request) in requests.iter().enumerate() {
            let signed = format!("{target}signature={number}");
            assert!(request.target.ends_with(&*signed), "{} {signed}", request.target);
            assert_eq!(request.header("authorization"), None, "{url}");
        }
        let UnsignedRequest { method, url, headers } = &asked[0];
        assert_eq!(*method, "GET");
        assert_eq!(*url, format!("{}{}", server.endpoint(), &target[..target.len() - 1]));
        assert!(headers.contains(&("range".to_string(), "bytes=0-3".to_string())), "{headers:?}");
    }
}

#[test]
fn what_a_signer_cannot_sign_is_the_error_of_the_call() {
    let server = Server::start(good);
    let count = Arc::new(AtomicUsize::new(0));
    for (answer, kind, text) in [
        (Err(Error::io("nothing is signed for us")), ErrorKind::Io, "for us"),
        (Ok("secret".to_string()), ErrorKind::Io, "no URL"),
        (Ok("file:///secret".to_string()), ErrorKind::Io, "no URL"),
        (Err(Error::new(ErrorKind::Unavailable, "away")), ErrorKind::Unavailable, "attempts"),
    ] {
        let counted = count.clone();
        let credentials = Credentials::Presigned(Arc::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = answer.clone();
            Box::pin(async move { answer })
        }));
        let retry_for = Duration::from_millis(200);
        let given = BlobOptions { credentials, retry_for, ..options(&server.endpoint()) };
        let error = read(&open("s3://bucket/shop", &given)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(server.requests().is_empty());
    assert!(count.load(Ordering::Relaxed) >= 5, "the last was asked again");
}

#[test]
fn requests_without_credentials_are_not_signed() {
    let server = Server::start(good);
    let credentials = Credentials::Anonymous;
    let options = BlobOptions { credentials, ..options(&server.endpoint()) };
    read(&open("s3://bucket/shop", &options)).unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn headers_are_sent_and_signed() {
    let server = Server::start(|request| match &*request.method {
        "PUT" => Some(Reply::new("200 OK", &["ETag: \"new\""], "")),
        _ => good(request),
    });
    let options = BlobOptions {
        headers: vec![("X-Tenant".into(), "blue".into())],
        region: Some("eu-west-3".into()),
        encryption: Encryption::Managed,
        ..options(&server.endpoint())
    };
    let store = open("s3://bucket/shop", &options);
    read(&store).unwrap();
    wait(store.write("a", b"x"[..].into(), WriteIf::Any)).unwrap();
    for request in server.requests() {
        let authorization = request.header("authorization").unwrap();
        assert_eq!(request.header("x-tenant"), Some("blue"));
        assert!(authorization.contains("x-tenant"), "{authorization}");
        assert!(authorization.contains("/eu-west-3/s3/"), "{authorization}");
        assert!(request.header("user-agent").unwrap().starts_with("nacre/"));
    }
    let put = &server.requests()[1];
    assert_eq!(put.header("x-amz-server-side-encryption"), Some("AES256"));
    assert!(put.header("x-amz-content-sha256").is_some_and(|sum| sum.len() == 64));
}

#[test]
fn keys_of_the_server_or_the_application_encrypt() {
    let server = Server::start(|_| Some(Reply::new("200 OK", &["ETag: \"new\""], "")));
    let customer = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    for encryption in [Encryption::Kms("name".into()), Encryption::Customer(customer.into())] {
        let options = BlobOptions { encryption, ..options(&server.endpoint()) };
        let store = open("s3://bucket/shop", &options);
        wait(store.write("a", b"x"[..].into(), WriteIf::Any)).unwrap();
    }
    let [kms, own] = &server.requests()[..] else { panic!() };
    assert_eq!(kms.header("x-amz-server-side-encryption"), Some("aws:kms"));
    assert_eq!(kms.header("x-amz-server-side-encryption-aws-kms-key-id"), Some("name"));
    assert_eq!(own.header("x-amz-server-side-encryption-customer-key"), Some(customer));
}

#[test]
fn google_cloud_has_generations_for_tags() {
    let server = Server::start(|request| match &*request.method {
        "PUT" => Some(Reply::new("200 OK", &["ETag: \"x\"", "x-goog-generation: 18"], "")),
        _ => {
            let mut reply = Reply::object(request, b"0123456789");
            reply.head = reply.head.replacen("\r\n", "\r\nx-goog-generation: 17\r\n", 1);
            Some(reply)
        }
    });
    let credentials = Credentials::Fixed(Credential::Token("bearer".into()));
    let store =
        open("gs://bucket/shop", &BlobOptions { credentials, ..options(&server.endpoint()) });
    let (bytes, tag) = wait(store.read_all("a")).unwrap();
    assert_eq!((&*bytes, &tag), (&b"0123456789"[..], &Tag("17".into())));
    wait(store.write("a", b"x"[..].into(), WriteIf::Absent)).unwrap();
    let new = wait(store.write("a", b"x"[..].into(), WriteIf::Tagged(tag))).unwrap();
    assert_eq!(new, Tag("18".into()));
    let [get, create, update] = &server.requests()[..] else { panic!() };
    assert_eq!(get.header("authorization"), Some("Bearer bearer"));
    assert_eq!(get.target, "/bucket/shop%2Fa");
    assert_eq!(create.header("x-goog-if-generation-match"), Some("0"));
    assert_eq!(update.header("x-goog-if-generation-match"), Some("17"));
    assert!(update.header("x-goog-meta-nacrewrite").is_some());
}

#[test]
fn azure_has_conditions_and_signatures() {
    let seen = Arc::new(Mutex::new(0));
    let server = Server::start(move |request| {
        *seen.lock().unwrap() += 1;
        match (&*request.method, request.header("if-none-match")) {
            ("PUT", Some("*")) => Some(Reply::error("409 Conflict", "BlobAlreadyExists")),
            ("PUT", _) => Some(Reply::new("201 Created", &["ETag: \"new\""], "")),
            _ => good(request),
        }
    });
    let account = Credential::Key {
        id: "account".into(),
        secret: "bm90LWEtc2VjcmV0".into(),
        session_token: None,
    };
    let signature = Credential::SharedSignature("?sv=2024-01-01&sig=abc%2B".into());
    for credential in [account, signature] {
        let options = BlobOptions {
            credentials: Credentials::Fixed(credential.clone()),
            account: Some("account".into()),
            ..options(&server.endpoint())
        };
        let store = open("az://container/shop", &options);
        let tag = wait(store.read_all("a")).unwrap().1;
        let error = wait(store.write("a", b"x"[..].into(), WriteIf::Absent)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        wait(store.write("a", b"x"[..].into(), WriteIf::Tagged(tag))).unwrap();
        let requests = server.requests();
        let [.., get, create, update] = &requests[..] else { panic!() };
        assert_eq!(update.header("if-match"), Some("\"tag\""));
        assert!(create.header("x-ms-meta-nacrewrite").is_some());
        match credential {
            Credential::Key { .. } => {
                assert!(get.header("authorization").unwrap().starts_with("SharedKey account:"));
            }
            _ => assert!(get.target.contains("sig=abc%2B"), "{}", get.target),
        }
    }
}
