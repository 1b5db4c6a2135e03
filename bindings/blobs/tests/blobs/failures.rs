//! What a store makes of answers that servers give when they are asked too much, too little, or by the
//! wrong one: against a server that answers as each test says.

use crate::support::server::{Reply, Request, Server};
use crate::support::{open, options, wait};
use nacre_blobs::BlobOptions;
use nacre_host::{BlobStore, Error, ErrorKind, Result, Tag, WriteIf};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CONTENT: &[u8] = b"0123456789";

/// Options of a store that never repeats a call.
fn once(server: &Server) -> BlobOptions {
    BlobOptions { retry_for: Duration::ZERO, ..options(&server.endpoint()) }
}

fn store(server: &Server) -> Arc<dyn BlobStore> {
    open("s3://bucket/shop", &options(&server.endpoint()))
}

fn store_once(server: &Server) -> Arc<dyn BlobStore> {
    open("s3://bucket/shop", &once(server))
}

fn read(store: &Arc<dyn BlobStore>, range: Range<u64>) -> Result<Vec<u8>> {
    wait(store.read("a", range))
}

fn create(store: &Arc<dyn BlobStore>) -> Result<Tag> {
    wait(store.write("a", CONTENT.into(), WriteIf::Absent))
}

/// Does one of the calls of a store.
fn call(store: &Arc<dyn BlobStore>, what: &str) -> Result<()> {
    match what {
        "read" => read(store, 0..4).map(drop),
        "read_all" => wait(store.read_all("a")).map(drop),
        "list" => wait(store.list("")).map(drop),
        "remove" => wait(store.remove("a")),
        "write" => wait(store.write("a", CONTENT.into(), WriteIf::Any)).map(drop),
        "create" => create(store).map(drop),
        "update" => {
            let tag = WriteIf::Tagged(Tag("\"tag\"".into()));
            wait(store.write("a", CONTENT.into(), tag)).map(drop)
        }
        _ => panic!("{what}"),
    }
}

#[test]
fn statuses_have_their_kinds() {
    use ErrorKind::{Conflict, Corrupt, Io, NotFound, Unavailable};
    let cases = [
        ("read", "404 Not Found", "NoSuchKey", NotFound, ""),
        ("read_all", "404 Not Found", "NoSuchKey", NotFound, ""),
        ("read", "404 Not Found", "NoSuchBucket", Io, "create the bucket"),
        ("list", "404 Not Found", "NoSuchBucket", Io, "create the bucket"),
        ("write", "404 Not Found", "NoSuchBucket", Io, "create the bucket"),
        ("update", "404 Not Found", "NoSuchBucket", Io, "create the bucket"),
        ("remove", "404 Not Found", "NoSuchBucket", Io, "create the bucket"),
        ("read", "404 Not Found", "NoSuchUser", Io, "check the endpoint"),
        ("update", "404 Not Found", "NoSuchUser", Io, "check the endpoint"),
        ("create", "412 Precondition Failed", "PreconditionFailed", Conflict, ""),
        ("update", "412 Precondition Failed", "PreconditionFailed", Conflict, ""),
        ("update", "404 Not Found", "NoSuchKey", Conflict, ""),
        ("create", "409 Conflict", "BlobAlreadyExists", Conflict, ""),
        ("create", "409 Conflict", "ConditionalRequestConflict", Unavailable, ""),
        ("read", "416 Range Not Satisfiable", "InvalidRange", Corrupt, ""),
        ("read", "403 Forbidden", "AccessDenied", Io, "need the rights"),
        ("write", "403 Forbidden", "AccessDenied", Io, "need the rights"),
        ("list", "403 Forbidden", "InvalidAccessKeyId", Io, "check the credentials"),
        ("read", "403 Forbidden", "SignatureDoesNotMatch", Io, "check the credentials"),
        ("read", "400 Bad Request", "ExpiredToken", Io, "no longer valid"),
        ("read", "401 Unauthorized", "", Io, "need the rights"),
        ("read", "400 Bad Request", "InvalidRequest", Io, ""),
        ("read", "400 Bad Request", "RequestTimeout", Unavailable, ""),
        ("read", "408 Request Timeout", "", Unavailable, ""),
        ("list", "429 Too Many Requests", "", Unavailable, ""),
        ("read", "500 Internal Server Error", "InternalError", Unavailable, ""),
        ("write", "503 Service Unavailable", "SlowDown", Unavailable, ""),
        ("remove", "503 Service Unavailable", "SlowDown", Unavailable, ""),
        ("list", "504 Gateway Timeout", "", Unavailable, ""),
        ("create", "501 Not Implemented", "NotImplemented", Io, "conditional writes"),
    ];
    for (what, status, code, kind, hint) in cases {
        let server = Server::start(move |_| Some(Reply::error(status, code)));
        let error = call(&store_once(&server), what).unwrap_err();
        let case = format!("{what}: {status} {code}: {error:?}");
        assert_eq!(error.kind(), kind, "{case}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{case}");
        assert!(error.message().contains("s3://bucket/shop/"), "{case}");
        assert!(kind == Corrupt || error.message().contains(code), "{case}");
        let requests = server.requests().len();
        assert_eq!(requests, 1, "{case}");
    }
    // There is nothing to remove.
    let server = Server::start(|_| Some(Reply::error("404 Not Found", "NoSuchKey")));
    call(&store_once(&server), "remove").unwrap();
}

#[test]
fn a_wrong_clock_is_named() {
    let server = Server::start(|_| {
        let mut reply = Reply::error("403 Forbidden", "RequestTimeTooSkewed");
        reply.head = reply.head.replacen("\r\n", "\r\nDate: Sun, 31 Dec 2090 12:00:00 GMT\r\n", 1);
        Some(reply)
    });
    let error = read(&store_once(&server), 0..4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let hint = error.hint().unwrap();
    assert!(hint.contains("clock") && hint.contains(" s behind"), "{hint}");
}

#[test]
fn another_region_is_named() {
    let server = Server::start(|_| {
        let headers = ["x-amz-bucket-region: eu-west-3"];
        Some(Reply::new("301 Moved Permanently", &headers, ""))
    });
    let error = read(&store_once(&server), 0..4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.hint().unwrap().contains("eu-west-3"), "{error:?}");
}

/// Answers that a careless server or cache gives to a request for bytes 2 to 5.
#[test]
fn wrong_ranges_are_corrupt() {
    type Answer = fn(&Request) -> Reply;
    let cases: [(&str, Answer); 6] = [
        ("the whole", |_| Reply::object(&Request { headers: Vec::new(), ..blank() }, CONTENT)),
        ("other bytes", |request| {
            let mut reply = Reply::object(request, CONTENT);
            reply.head = reply.head.replace("bytes 2-5/", "bytes 3-6/");
            reply
        }),
        ("fewer bytes than it says", |request| {
            let mut reply = Reply::object(request, CONTENT);
            reply.head = reply.head.replace("Content-Length: 4", "Content-Length: 3");
            reply.body.truncate(3);
            reply
        }),
        ("more bytes than it says", |request| {
            let mut reply = Reply::object(request, CONTENT);
            reply.head = reply.head.replace("Content-Length: 4", "Content-Length: 5");
            reply.body.push(b'x');
            reply
        }),
        ("a shorter blob", |request| Reply::object(request, &CONTENT[..5])),
        ("no range", |request| {
            let mut reply = Reply::object(request, CONTENT);
            reply.head = reply.head.replace("Content-Range", "Content-Rage");
            reply
        }),
    ];
    for (what, reply) in cases {
        let server = Server::start(move |request| Some(reply(request)));
        let error = read(&store_once(&server), 2..6).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    }
    let server = Server::start(|request| Some(Reply::object(request, CONTENT)));
    assert_eq!(read(&store_once(&server), 2..6).unwrap(), b"2345");
}

fn blank() -> Request {
    Request {
        method: "GET".into(),
        target: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
        number: 0,
    }
}

#[test]
fn a_blob_without_a_tag_is_corrupt() {
    let server = Server::start(|request| {
        let mut reply = Reply::object(request, CONTENT);
        reply.head = reply.head.replace("ETag", "Tag");
        Some(reply)
    });
    assert_eq!(call(&store_once(&server), "read_all").unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn listings_that_are_none_are_corrupt_and_foreign_names_are_left_out() {
    for body in [
        "<html>Please log in</html>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    ] {
        let server = Server::start(move |_| Some(Reply::new("200 OK", &[], body)));
        let error = call(&store_once(&server), "list").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{body}");
    }
    let server = Server::start(|request| {
        assert!(request.target.contains("prefix=shop%2Flog-"), "{}", request.target);
        let object = |key: &str| {
            format!(
                "<Contents><Key>{key}</Key><Size>7</Size><ETag>\"t\"</ETag>\
                 <LastModified>1994-11-06T08:49:37.000Z</LastModified></Contents>"
            )
        };
        let objects = ["shop/log-2", "shop/log-1", "shop/log-a b", "shop/log-/.x"].map(object);
        let body = format!(
            "<ListBucketResult><IsTruncated>false</IsTruncated>{}</ListBucketResult>",
            objects.concat()
        );
        Some(Reply::new("200 OK", &["Content-Type: application/xml"], body))
    });
    let listed = wait(store_once(&server).list("log-")).unwrap();
    let names: Vec<_> = listed.iter().map(|info| (&*info.name, info.len)).collect();
    assert_eq!(names, [("log-1", 7), ("log-2", 7)]);
    assert_eq!(listed[0].modified_us, 784_111_777_000_000);
}

#[test]
fn answers_that_break_off_are_read_again() {
    let cut = |request: &Request| {
        let mut reply = Reply::object(request, CONTENT);
        reply.cut_at = Some(2);
        reply
    };
    let server = Server::start(move |request| Some(cut(request)));
    for what in ["read", "read_all"] {
        let error = call(&store_once(&server), what).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
    }
    let server = Server::start(move |request| match request.number {
        0..3 => Some(cut(request)),
        3 => None,
        _ => Some(Reply::object(request, CONTENT)),
    });
    assert_eq!(read(&store(&server), 1..9).unwrap(), b"12345678");
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn calls_are_repeated_until_their_time_is_over() {
    let server = Server::start(|request| match request.number {
        0..4 => Some(Reply::error("503 Service Unavailable", "SlowDown")),
        _ => Some(Reply::object(request, CONTENT)),
    });
    assert_eq!(read(&store(&server), 0..10).unwrap(), CONTENT);
    assert_eq!(server.requests().len(), 5);

    let server = Server::start(|_| Some(Reply::error("503 Service Unavailable", "SlowDown")));
    let retry_for = Duration::from_millis(400);
    let store = open("s3://bucket/shop", &BlobOptions { retry_for, ..options(&server.endpoint()) });
    let began = Instant::now();
    let error = read(&store, 0..10).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let count = server.requests().len();
    assert!(count > 1 && error.message().contains(&format!("after {count} attempts")), "{error}");
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let server = Server::start(|request| match request.number {
        0 => {
            let mut reply = Reply::error("503 Service Unavailable", "SlowDown");
            reply.head = reply.head.replacen("\r\n", "\r\nRetry-After: 1\r\n", 1);
            Some(reply)
        }
        _ => Some(Reply::object(request, CONTENT)),
    });
    let began = Instant::now();
    read(&store(&server), 0..10).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[test]
fn what_stands_still_is_given_up_and_what_is_slow_is_not() {
    let server = Server::start(|request| {
        let mut reply = Reply::object(request, CONTENT);
        reply.delay = Duration::from_secs(3);
        Some(reply)
    });
    let began = Instant::now();
    let error = read(&store_once(&server), 0..10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());

    // Longer than the limit in all, but never still for so long.
    let content = [7; 10 << 10];
    let server = Server::start(move |request| {
        let mut reply = Reply::object(request, &content);
        reply.pause = Duration::from_millis(100);
        Some(reply)
    });
    assert_eq!(read(&store_once(&server), 0..10 << 10).unwrap(), content);
}

#[test]
fn servers_that_are_not_there_are_unavailable() {
    for endpoint in ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://no-such-host.invalid"] {
        let retry_for = Duration::ZERO;
        let store = open("s3://bucket", &BlobOptions { retry_for, ..options(endpoint) });
        let error = read(&store, 0..10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{endpoint}: {error}");
    }
    // No TLS there.
    let server = Server::start(|_| Some(Reply::error("400 Bad Request", "")));
    let options = BlobOptions {
        endpoint: Some(server.endpoint().replace("http:", "https:")),
        ..once(&server)
    };
    let error = read(&open("s3://bucket", &options), 0..10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

/// The random number that a request for a write carries.
fn number(request: &Request) -> String {
    request.header("x-amz-meta-nacrewrite").unwrap().to_string()
}

/// A server whose first answer to a write is lost after the write took effect. Then the blob is the one
/// of that write, or has been replaced.
fn loses_an_answer(is_replaced: bool, second: &'static str) -> Server {
    let first = std::sync::Mutex::new(String::new());
    Server::start(move |request| match (&*request.method, request.number) {
        ("PUT", 0) => {
            *first.lock().unwrap() = number(request);
            None
        }
        ("PUT", _) => Some(Reply::error(second, "Code")),
        _ => {
            let number = if is_replaced { "other".into() } else { first.lock().unwrap().clone() };
            let head = format!("x-amz-meta-nacrewrite: {number}");
            let date = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
            Some(Reply::new("200 OK", &["ETag: \"kept\"", date, &head], CONTENT))
        }
    })
}

#[test]
fn a_write_whose_answer_was_lost_is_recognised() {
    let server = loses_an_answer(false, "412 Precondition Failed");
    assert_eq!(create(&store(&server)).unwrap(), Tag("\"kept\"".into()));
    let methods: Vec<_> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["PUT", "PUT", "HEAD"]);
    let [first, second, _] = &server.requests()[..] else { panic!() };
    assert_eq!(number(first), number(second), "it is one write");
    assert_eq!(first.header("if-none-match"), Some("*"));
    assert_eq!(first.body, CONTENT);
}

#[test]
fn a_write_that_may_have_been_replaced_is_unavailable() {
    let server = loses_an_answer(true, "412 Precondition Failed");
    let error = create(&store(&server)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // The next one meets no doubt.
    let error = create(&store(&server)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[test]
fn a_write_that_may_have_taken_effect_never_ends_as_if_it_had_not() {
    let server = loses_an_answer(false, "403 Forbidden");
    let error = create(&store(&server)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("may have taken effect"), "{error}");
    // An answer without a tag says nothing of the blob.
    let server = Server::start(|_| Some(Reply::new("200 OK", &[], "")));
    let error = call(&store_once(&server), "write").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[test]
fn each_write_has_its_own_number_and_condition() {
    let server = Server::start(|_| Some(Reply::new("200 OK", &["ETag: \"new\""], "")));
    let store = store(&server);
    for what in ["write", "create", "create", "update"] {
        call(&store, what).unwrap();
    }
    let [any, one, two, update] = &server.requests()[..] else { panic!() };
    assert_eq!(any.header("x-amz-meta-nacrewrite"), None);
    assert_ne!(number(one), number(two));
    assert_eq!((any.header("if-none-match"), any.header("if-match")), (None, None));
    assert_eq!(update.header("if-match"), Some("\"tag\""));
    assert_eq!(update.target, "/bucket/shop/a");
}

#[test]
fn names_are_checked_before_anything_is_sent() {
    let server = Server::start(|_| None);
    let error: Error = wait(store(&server).read("../a", 0..1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(server.requests().is_empty());
}

#[test]
fn a_call_that_is_given_up_is_not_repeated() {
    let server = Server::start(|_| Some(Reply::error("503 Service Unavailable", "SlowDown")));
    let store = store(&server);
    let mut answer = store.read("a", 0..1);
    let waker = std::task::Waker::noop();
    assert!(answer.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    let until = Instant::now() + Duration::from_secs(5);
    while server.requests().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(answer);
    let count = server.requests().len();
    std::thread::sleep(Duration::from_millis(500));
    assert!(count > 0 && server.requests().len() <= count + 1);
}
