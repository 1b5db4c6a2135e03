//! The test suite of `BlobStore`.

use crate::expect_error;
use nacre_host::{Answer, BlobInfo, BlobStore, ErrorKind, Result, Tag, WriteIf};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Two handles of one store.
type Pair = (Arc<dyn BlobStore>, Arc<dyn BlobStore>);

/// Runs the whole suite. `make` must return two handles of an empty store each time. Stores may be
/// `unavailable` now and then.
pub fn check_blob_store(make: impl Fn() -> Pair) {
    let suite: &[fn(&dyn BlobStore)] = &[
        write_read_list_remove,
        names,
        ranges,
        reads_past_the_end_are_corrupt,
        empty_blobs,
        overwrites,
        tags_follow_the_content,
        writes_if_absent,
        writes_if_tagged,
        listings_by_prefix,
        long_listings,
        large_blobs,
        many_reads_at_once,
        answers_begin_when_they_are_polled,
        answers_that_are_given_up,
    ];
    for check in suite {
        check(make().0.as_ref());
    }
    handles_see_each_other(make());
    one_of_many_creates(make());
    no_update_is_lost(make());
}

/// Checks the times in listings against a clock, in microseconds since 1970, to a minute.
pub fn check_blob_times(store: &dyn BlobStore, now_us: i64) {
    write(store, "times/a", b"x");
    let [info] = &list(store, "times/")[..] else { panic!("one blob was written") };
    let apart = info.modified_us.abs_diff(now_us);
    assert!(apart < 60_000_000, "a new blob is {apart} us apart from the clock");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Calls a store and waits for its answer, as a thread that has nothing else to do. A call that is
/// `unavailable` is repeated, as callers do.
fn wait<'a, T>(call: impl Fn() -> Answer<'a, T>) -> Result<T> {
    let mut attempts = 0;
    loop {
        match wait_once(call()) {
            Err(error) if error.kind() == ErrorKind::Unavailable && attempts < 10 => attempts += 1,
            outcome => return outcome,
        }
    }
}

fn wait_once<T>(mut answer: Answer<'_, T>) -> Result<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            // A store that never wakes fails by time, not by hanging.
            Poll::Pending => thread::park_timeout(Duration::from_secs(1)),
        }
    }
}

/// Waits for answers that are on their way together, at most eight at a time.
fn wait_all<'a, T>(answers: impl Iterator<Item = Answer<'a, T>>) -> Vec<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut answers = answers.map(Some);
    let mut running: Vec<(usize, Answer<'a, T>)> = Vec::new();
    let mut outcomes: Vec<Option<T>> = Vec::new();
    loop {
        while let Some(Some(answer)) = (running.len() < 8).then(|| answers.next().flatten()) {
            running.push((outcomes.len(), answer));
            outcomes.push(None);
        }
        if running.is_empty() {
            return outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
        }
        let before = running.len();
        running.retain_mut(|(at, answer)| {
            match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => {
                    outcomes[*at] = Some(outcome.unwrap());
                    false
                }
                Poll::Pending => true,
            }
        });
        if running.len() == before {
            thread::park_timeout(Duration::from_secs(1));
        }
    }
}

#[track_caller]
fn write(store: &dyn BlobStore, name: &str, bytes: &[u8]) -> Tag {
    wait(|| store.write(name, bytes.into(), WriteIf::Any)).unwrap()
}

fn read(store: &dyn BlobStore, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
    wait(|| store.read(name, range.clone()))
}

#[track_caller]
fn read_all(store: &dyn BlobStore, name: &str) -> (Vec<u8>, Tag) {
    wait(|| store.read_all(name)).unwrap()
}

#[track_caller]
fn list(store: &dyn BlobStore, prefix: &str) -> Vec<BlobInfo> {
    wait(|| store.list(prefix)).unwrap()
}

#[track_caller]
fn listed(store: &dyn BlobStore, prefix: &str) -> Vec<String> {
    list(store, prefix).into_iter().map(|info| info.name).collect()
}

/// Bytes that differ between nearby offsets, so that a shift is detected.
fn pattern(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

fn write_read_list_remove(store: &dyn BlobStore) {
    assert!(list(store, "").is_empty(), "a new store lists nothing");
    expect_error(read(store, "a", 0..1), ErrorKind::NotFound, "read of a missing blob");
    expect_error(wait(|| store.read_all("a")), ErrorKind::NotFound, "read_all of a missing blob");
    wait(|| store.remove("a")).expect("removing a missing blob is no error");
    write(store, "a", b"content");
    write(store, "seg/00/b", b"other");
    assert_eq!(read(store, "a", 0..7).unwrap(), b"content");
    assert_eq!(read_all(store, "seg/00/b").0, b"other");
    let lens: Vec<_> = list(store, "").into_iter().map(|info| (info.name, info.len)).collect();
    assert_eq!(lens, [("a".to_string(), 7), ("seg/00/b".to_string(), 5)]);
    wait(|| store.remove("a")).unwrap();
    wait(|| store.remove("a")).expect("a removed blob can be removed again");
    expect_error(read(store, "a", 0..1), ErrorKind::NotFound, "read of a removed blob");
    assert_eq!(listed(store, ""), ["seg/00/b"]);
    expect_error(read(store, "seg", 0..1), ErrorKind::NotFound, "read of what is only a folder");
    expect_error(wait(|| store.read_all("seg/00")), ErrorKind::NotFound, "read_all of a folder");
    wait(|| store.remove("seg/00/b")).unwrap();
    assert!(list(store, "").is_empty(), "removing the last blob leaves nothing");
}

fn names(store: &dyn BlobStore) {
    let longest = format!("{}/{}", "x".repeat(100), "y".repeat(99));
    let good =
        ["-", "A", "Z9", "_", "a.b/c.tmp/d", "log-00000000000000ff", "m/1", longest.as_str()];
    for name in good {
        let tag = wait(|| store.write(name, name.as_bytes().into(), WriteIf::Absent))
            .unwrap_or_else(|e| panic!("{name:?} is a possible name: {e}"));
        assert_eq!(read_all(store, name), (name.as_bytes().to_vec(), tag), "{name:?}");
    }
    assert_eq!(listed(store, ""), good, "every name is listed, in the order of its bytes");
    let too_long = "x".repeat(201);
    for name in [
        "", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a/.b", ".hidden", "a\\b", "a b", "ä",
        "a\0", "a%2Fb", "a?b", "a#b", "a+b", &too_long,
    ] {
        expect_error(read(store, name, 0..1), ErrorKind::Io, &format!("read of {name:?}"));
        expect_error(
            wait(|| store.read_all(name)),
            ErrorKind::Io,
            &format!("read_all of {name:?}"),
        );
        let write = wait(|| store.write(name, b"x"[..].into(), WriteIf::Any));
        expect_error(write, ErrorKind::Io, &format!("write of {name:?}"));
        expect_error(wait(|| store.remove(name)), ErrorKind::Io, &format!("remove of {name:?}"));
    }
    assert_eq!(listed(store, "").len(), good.len(), "refused names leave nothing behind");
}

fn ranges(store: &dyn BlobStore) {
    let bytes = pattern(200_000, 1);
    write(store, "f", &bytes);
    for range in [0..200_000, 0..1, 199_999..200_000, 4095..4098, 65_535..131_073, 77..77] {
        let within = range.start as usize..range.end as usize;
        assert!(read(store, "f", range.clone()).unwrap() == bytes[within], "{range:?}");
    }
}

fn reads_past_the_end_are_corrupt(store: &dyn BlobStore) {
    write(store, "f", b"0123456789");
    for range in [9..11, 10..11, 0..11, 4..1000, 1_000_000..1_000_001] {
        let what = format!("read of {range:?} of ten bytes");
        expect_error(read(store, "f", range), ErrorKind::Corrupt, &what);
    }
    assert_eq!(read(store, "f", 0..10).unwrap(), b"0123456789");
}

fn empty_blobs(store: &dyn BlobStore) {
    let tag = write(store, "empty", b"");
    assert_eq!(read_all(store, "empty"), (Vec::new(), tag));
    assert_eq!(read(store, "empty", 0..0).unwrap(), b"");
    expect_error(read(store, "empty", 0..1), ErrorKind::Corrupt, "read of an empty blob's byte");
    assert_eq!(list(store, "").iter().map(|info| info.len).collect::<Vec<_>>(), [0]);
}

fn overwrites(store: &dyn BlobStore) {
    for len in [100_000, 10, 50_000] {
        let bytes = pattern(len, len as u8);
        write(store, "f", &bytes);
        assert!(read_all(store, "f").0 == bytes, "a blob is replaced whole");
        assert_eq!(list(store, "")[0].len, len as u64);
    }
}

fn tags_follow_the_content(store: &dyn BlobStore) {
    let first = write(store, "f", b"first");
    assert_eq!(read_all(store, "f").1, first, "a write returns the tag that readers get");
    assert_eq!(read_all(store, "f").1, first, "reading does not change a tag");
    let second = write(store, "f", b"other");
    assert_ne!(second, first, "another content of the same length has another tag");
    assert_eq!(read_all(store, "f").1, second);
}

fn writes_if_absent(store: &dyn BlobStore) {
    let create = |bytes: &[u8]| wait(|| store.write("f", bytes.into(), WriteIf::Absent));
    let tag = create(b"first").unwrap();
    expect_error(create(b"second"), ErrorKind::Conflict, "creating a blob that is there");
    expect_error(create(b"first"), ErrorKind::Conflict, "creating it with the same content");
    assert_eq!(read_all(store, "f"), (b"first".to_vec(), tag), "a conflict changes nothing");
    wait(|| store.remove("f")).unwrap();
    create(b"third").expect("a blob that was removed can be created again");
}

fn writes_if_tagged(store: &dyn BlobStore) {
    let update = |bytes: &[u8], tag: &Tag| {
        wait(|| store.write("f", bytes.into(), WriteIf::Tagged(tag.clone())))
    };
    let first = write(store, "f", b"first");
    let second = update(b"second", &first).unwrap();
    expect_error(update(b"third", &first), ErrorKind::Conflict, "a write with an old tag");
    assert_eq!(read_all(store, "f"), (b"second".to_vec(), second.clone()));
    let third = update(b"third", &second).unwrap();
    let read = read_all(store, "f").1;
    assert_eq!(read, third);
    update(b"fourth", &read).expect("a tag that was read holds as one of a write does");
    wait(|| store.remove("f")).unwrap();
    expect_error(update(b"fifth", &third), ErrorKind::Conflict, "a write to a removed blob");
    assert!(list(store, "").is_empty(), "a conflict creates nothing");
}

fn listings_by_prefix(store: &dyn BlobStore) {
    for name in ["a-b", "a/b", "a/bc/d", "aa", "b", "log/01", "log/02"] {
        write(store, name, name.as_bytes());
    }
    let cases: [(&str, &[&str]); 10] = [
        ("", &["a-b", "a/b", "a/bc/d", "aa", "b", "log/01", "log/02"]),
        ("a", &["a-b", "a/b", "a/bc/d", "aa"]),
        ("a/", &["a/b", "a/bc/d"]),
        ("a/b", &["a/b", "a/bc/d"]),
        ("a/bc/", &["a/bc/d"]),
        ("aa", &["aa"]),
        ("aa/", &[]),
        ("log/0", &["log/01", "log/02"]),
        ("log/010", &[]),
        ("zzz/nothing", &[]),
    ];
    for (prefix, names) in cases {
        assert_eq!(listed(store, prefix), names, "names that begin with {prefix:?}");
    }
}

/// More blobs than S3 lists in one answer.
fn long_listings(store: &dyn BlobStore) {
    let names: Vec<String> = (0..1_100).map(|i| format!("many/{i:05}")).collect();
    wait_all(names.iter().map(|name| store.write(name, name.as_bytes().into(), WriteIf::Absent)));
    assert!(listed(store, "many/") == names, "all blobs are listed");
    assert_eq!(listed(store, "many/0109").len(), 10);
}

fn large_blobs(store: &dyn BlobStore) {
    let bytes = pattern(9 << 20, 3);
    write(store, "large", &bytes);
    assert_eq!(list(store, "large")[0].len, 9 << 20);
    assert!(read_all(store, "large").0 == bytes, "a large blob comes back");
    let range = 1 << 20..(9 << 20) - 5;
    assert!(
        read(store, "large", range).unwrap() == bytes[1 << 20..(9 << 20) - 5],
        "and a large part of it"
    );
}

fn many_reads_at_once(store: &dyn BlobStore) {
    let bytes = pattern(300_000, 9);
    write(store, "f", &bytes);
    let ranges: Vec<Range<u64>> = (0..60).map(|i| i * 4_999..i * 4_999 + 5_000).collect();
    let parts = wait_all(ranges.iter().map(|range| store.read("f", range.clone())));
    for (range, part) in ranges.iter().zip(parts) {
        assert!(part == bytes[range.start as usize..range.end as usize], "{range:?}");
    }
}

fn answers_begin_when_they_are_polled(store: &dyn BlobStore) {
    drop(store.write("f", b"x"[..].into(), WriteIf::Any));
    thread::sleep(Duration::from_millis(30));
    assert!(list(store, "").is_empty(), "a write that was never polled has not begun");
}

/// What is given up has taken effect or not, and the store goes on.
fn answers_that_are_given_up(store: &dyn BlobStore) {
    let bytes: Arc<[u8]> = pattern(100_000, 5).into();
    for round in 0..20 {
        let mut write = store.write("f", bytes.clone(), WriteIf::Any);
        let _ = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        thread::sleep(Duration::from_micros(round * 100));
        drop(write);
        let mut read = store.read("f", 0..100_000);
        let _ = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(read);
    }
    match wait(|| store.read_all("f")) {
        Ok((read, _)) => assert!(read[..] == bytes[..], "a blob is there whole or not at all"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
    }
    write(store, "g", b"after");
    assert_eq!(read_all(store, "g").0, b"after");
}

fn handles_see_each_other((one, two): Pair) {
    let tag = write(&*one, "f", b"one");
    assert_eq!(read_all(&*two, "f"), (b"one".to_vec(), tag.clone()));
    let tag = wait(|| two.write("f", b"two"[..].into(), WriteIf::Tagged(tag.clone()))).unwrap();
    assert_eq!(read_all(&*one, "f"), (b"two".to_vec(), tag));
    wait(|| one.remove("f")).unwrap();
    assert!(list(&*two, "").is_empty());
}

fn one_of_many_creates((one, two): Pair) {
    for round in 0..10 {
        let name = format!("f{round}");
        let create = |writer: u8| {
            let store = if writer.is_multiple_of(2) { &one } else { &two };
            wait(|| store.write(&name, [writer; 1000][..].into(), WriteIf::Absent))
        };
        let outcomes: Vec<Result<Tag>> = thread::scope(|scope| {
            let writers: Vec<_> =
                (0..6).map(|writer| scope.spawn(move || create(writer))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let (content, tag) = read_all(&*one, &name);
        assert_eq!(content, [content[0]; 1000], "a blob is of one writer");
        for (writer, outcome) in outcomes.into_iter().enumerate() {
            match writer == usize::from(content[0]) {
                true => assert_eq!(outcome.unwrap(), tag, "the first writer succeeds"),
                false => expect_error(outcome, ErrorKind::Conflict, "any other writer"),
            }
        }
    }
}

/// Each writer reads a list of numbers and writes it with one more, if it is unchanged.
fn no_update_is_lost((one, two): Pair) {
    const WRITERS: u8 = 4;
    const EACH: u8 = 10;
    write(&*one, "f", b"");
    let append = |store: &dyn BlobStore, number: u8| {
        loop {
            let (mut content, tag) = read_all(store, "f");
            // A write that was `unavailable` may have taken effect.
            if content.contains(&number) {
                return;
            }
            content.push(number);
            match wait_once(store.write("f", content.into(), WriteIf::Tagged(tag))) {
                Ok(_) => return,
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable),
                    "{error}"
                ),
            }
        }
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = if writer.is_multiple_of(2) { &*one } else { &*two };
            scope.spawn(move || {
                (0..EACH).for_each(|step| append(store, writer * EACH + step));
            });
        }
    });
    let content = read_all(&*one, "f").0;
    let distinct: BTreeSet<u8> = content.iter().copied().collect();
    assert_eq!(content.len(), usize::from(WRITERS * EACH), "an update was lost or made twice");
    assert_eq!(distinct.len(), content.len(), "an update was made twice");
}
