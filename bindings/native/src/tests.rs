//! Runs the contract suites against this host, and tests the guarantees that only this host gives.
#![allow(clippy::unwrap_used, reason = "a test may end in a panic")]

use crate::{
    FileIo, FolderStore, NativeClock, NativeEntropy, ThreadPool, block_on, folder_of, has_database,
    memory_host, open_folder, open_url,
};
use nacre_contract_tests::{
    check_clock, check_entropy, check_local_store, check_local_store_reopen, check_parallelism,
};
use nacre_host::{ErrorKind, LocalStore, Parallelism, Reason};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A test's own folder, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-native-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn folder_store_keeps_the_contract_however_files_are_read() {
    for io in [FileIo::Auto, FileIo::Plain, FileIo::Uring] {
        let scratch = Scratch::new();
        let next = AtomicUsize::new(0);
        let open = |path: &Path| Arc::new(FolderStore::open_with(path, io).unwrap());
        check_local_store(|| {
            open(&scratch.0.join(next.fetch_add(1, Ordering::Relaxed).to_string()))
        });
        let path = scratch.0.join("reopen");
        check_local_store_reopen(open(&path), || open(&path));
    }
}

#[test]
fn folder_store_keeps_the_contract_with_one_open_file() {
    for io in [FileIo::Plain, FileIo::Auto] {
        let scratch = Scratch::new();
        let next = AtomicUsize::new(0);
        let open = |path: &Path| {
            let store = FolderStore::open_with(path, io).unwrap();
            store.limit_open_files(1);
            Arc::new(store)
        };
        check_local_store(|| {
            open(&scratch.0.join(next.fetch_add(1, Ordering::Relaxed).to_string()))
        });
        let path = scratch.0.join("reopen");
        check_local_store_reopen(open(&path), || open(&path));
    }
}

#[test]
fn open_files_are_bounded_and_closed_files_are_read() {
    use nacre_host::{LocalFile, ReadRange};
    let scratch = Scratch::new();
    let store = FolderStore::open(&scratch.0).unwrap();
    store.limit_open_files(10);
    let byte_of = |file: &Arc<dyn LocalFile>| {
        let mut byte = [0];
        file.read(&mut [ReadRange { offset: 0, buffer: &mut byte }]).map(|()| byte[0])
    };
    let files: Vec<_> = (0..100u8)
        .map(|n| {
            let file = store.create(&format!("f{n}")).unwrap();
            file.write_synced(0, &[n]).unwrap();
            assert!(store.open_files() <= 11, "{}", store.open_files());
            file
        })
        .collect();
    for (n, file) in files.iter().enumerate().chain(files.iter().enumerate().rev()) {
        assert_eq!(byte_of(file).unwrap() as usize, n);
        assert!(store.open_files() <= 10, "{}", store.open_files());
    }
    // Files with changes that are not synced stay open.
    for file in &files[..30] {
        file.write(1, b"x").unwrap();
    }
    assert!(store.open_files() >= 30, "{}", store.open_files());
    files[..30].iter().for_each(|file| file.sync().unwrap());
    assert_eq!(byte_of(&files[70]).unwrap(), 70);
    assert!(store.open_files() <= 10, "{}", store.open_files());
    // A handle of a removed file does not read a new file of its name.
    for name in ["f1", "f99"] {
        store.remove(name).unwrap();
        store.create(name).unwrap().write_synced(0, &[200]).unwrap();
    }
    for (at, own) in [(1, 1), (99, 99)] {
        match byte_of(&files[at]) {
            Ok(byte) => assert_eq!(byte, own),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        }
    }
    drop(files);
    assert_eq!(store.open_files(), 0);
}

/// If the system has io_uring, the ring must do the work, not the fallback to plain calls.
#[cfg(target_os = "linux")]
#[test]
fn the_ring_does_what_it_is_asked_and_leaves_the_rest() {
    use crate::uring::{Uring, Written};
    use nacre_host::ReadRange;
    let Some(uring) = Uring::new() else { return };
    let scratch = Scratch::new();
    std::fs::create_dir_all(&scratch.0).unwrap();
    let path = scratch.0.join("f");
    let file = std::fs::File::create_new(&path).unwrap();
    assert!(matches!(uring.write_synced(&file, 0, b"0123456789"), Written::Durable));
    assert!(matches!(uring.write_synced(&file, u64::MAX, b"far away"), Written::NotDone));

    let file = std::fs::File::open(&path).unwrap();
    assert!(matches!(uring.write_synced(&file, 0, b"read only"), Written::NotDone));
    let mut buffers = vec![[0; 4]; 300];
    let offsets = (0..).map(|i| if i == 200 { 8 } else { i % 7 });
    let mut ranges: Vec<_> = offsets
        .zip(&mut buffers)
        .map(|(offset, buffer)| ReadRange { offset, buffer: buffer.as_mut_slice() })
        .collect();
    let filled = uring.read(&file, &mut ranges);
    assert!(
        filled.iter().enumerate().all(|(at, filled)| *filled == (at != 200)),
        "all but the one past the end"
    );
    assert_eq!((&buffers[0], &buffers[299]), (b"0123", b"5678"));
}

#[test]
fn how_files_are_read_is_named_in_words() {
    for (word, io) in [("auto", FileIo::Auto), ("plain", FileIo::Plain), ("uring", FileIo::Uring)] {
        assert_eq!(FileIo::named(word).unwrap(), io);
    }
    assert_eq!(FileIo::named("fast").unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn clock_entropy_and_threads_keep_the_contract() {
    check_clock(&NativeClock::new(), &|sleep| block_on(sleep));
    check_entropy(&NativeEntropy::new());
    for width in [1, 2, 5] {
        check_parallelism(&ThreadPool::new(width));
    }
    check_parallelism(ThreadPool::shared().as_ref());
}

#[test]
fn two_entropies_differ() {
    use nacre_host::Entropy;
    assert_ne!(NativeEntropy::new().next_u64(), NativeEntropy::new().next_u64());
}

#[test]
fn a_panic_in_a_task_reaches_the_caller_and_the_pool_lives_on() {
    let pool = ThreadPool::new(3);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.run(10, &|i| {
            if i == 4 {
                std::panic::resume_unwind(Box::new("four"))
            }
        });
    }));
    assert!(caught.is_err_and(|panic| *panic.downcast::<&str>().unwrap() == "four"));
    check_parallelism(&pool);
}

#[test]
fn a_folder_is_locked_until_its_last_file_is_dropped() {
    let scratch = Scratch::new();
    let host = open_folder(&scratch.0).unwrap();
    let error = open_folder(&scratch.0).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    assert!(error.message().contains(scratch.0.to_str().unwrap()), "{error}");
    let file = host.store.create("f").unwrap();
    drop(host);
    assert_eq!(open_folder(&scratch.0).map(|_| ()).unwrap_err().kind(), ErrorKind::InUse);
    drop(file);
    open_folder(&scratch.0).unwrap();
}

#[test]
fn other_things_in_the_folder_are_left_alone() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.0.join("folder")).unwrap();
    std::fs::write(scratch.0.join("Read me.txt"), "hello").unwrap();
    let store = FolderStore::open(&scratch.0).unwrap();
    assert!(store.list().unwrap().is_empty());
    assert!(scratch.0.join("LOCK").exists());
}

#[test]
fn a_link_to_a_file_is_a_file() {
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    std::fs::create_dir_all(&elsewhere.0).unwrap();
    std::fs::write(elsewhere.0.join("moved"), b"bytes").unwrap();
    let store = FolderStore::open(&scratch.0).unwrap();
    std::os::unix::fs::symlink(elsewhere.0.join("moved"), scratch.0.join("seg-1")).unwrap();
    std::os::unix::fs::symlink(&elsewhere.0, scratch.0.join("folder")).unwrap();
    std::os::unix::fs::symlink(elsewhere.0.join("missing"), scratch.0.join("nowhere")).unwrap();
    assert_eq!(store.list().unwrap(), ["seg-1"]);
    assert_eq!(store.open("seg-1").unwrap().len().unwrap(), 5);
}

/// A process may change its current folder while a database is open.
#[test]
fn a_relative_path_means_where_it_was_opened() {
    let name = format!("nacre-relative-{}", std::process::id());
    let store = FolderStore::open(Path::new(&name)).unwrap();
    let path = store.path().to_path_buf();
    assert!(path.is_absolute() && path.ends_with(&name));
    drop(store);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn refusals_are_io_errors_that_name_the_path() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = open_folder(&path).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains(file.to_str().unwrap()), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_says_so() {
    let scratch = Scratch::new();
    let store = FolderStore::open(&scratch.0).unwrap();
    if std::os::unix::fs::symlink("/dev/full", scratch.0.join("full")).is_err() {
        return;
    }
    let error = store.open("full").unwrap().write(0, b"x").unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Io, "53100"));
    assert_eq!(error.reason(), Some(Reason::NoSpace));
    assert!(error.message().starts_with("no space left on"), "{error}");
}

#[test]
fn urls() {
    let scratch = Scratch::new();
    let path = scratch.0.to_str().unwrap();
    let create = |url: &str| drop(open_url(url).unwrap().store.create("f").unwrap());
    create("memory://");
    create(path);
    assert!(Path::new(path).join("f").exists());
    create(&format!("file://{path}/a%20b"));
    assert!(Path::new(path).join("a b/f").exists());
    create(&format!("file://localhost{path}/c"));
    assert!(Path::new(path).join("c/f").exists());
    for url in [
        "opfs://name",
        "s3://bucket/prefix",
        "file://elsewhere/path",
        "memory://name",
        "http://a/b",
    ] {
        assert_eq!(open_url(url).map(|_| ()).unwrap_err().kind(), ErrorKind::Unsupported, "{url}");
    }
    for url in [":memory:", "file:/nowhere/x", "file:x"] {
        let error = folder_of(url).unwrap_err();
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Unsupported, true), "{url}");
    }
    assert_eq!(folder_of("./:memory:").unwrap(), Some("./:memory:".into()));
    for url in ["", "file:///a%2", "file:///a%zz", "file:///a%00b"] {
        assert_eq!(open_url(url).map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound, "{url}");
    }
}

#[test]
fn folders_of_other_things_have_no_database() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("f");
    assert!(!has_database(&folder).unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["notes.txt", "log-1", "seg-000000000000000G", "log-00000000000000000", "LOCK"] {
        std::fs::write(folder.join(name), "").unwrap();
        assert!(!has_database(&folder.join(name)).unwrap(), "{name}");
    }
    assert!(!has_database(&folder).unwrap());
    std::fs::write(folder.join("snap-00000000000000af"), "").unwrap();
    assert!(has_database(&folder).unwrap());
}

#[test]
fn block_on_runs_sleeps_beside_each_other() {
    let host = memory_host();
    let clock = host.clock.as_ref();
    let start = clock.monotonic_ns();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| block_on(clock.sleep_until(start + 30_000_000)));
        }
    });
    assert!(clock.monotonic_ns() - start >= 30_000_000);
}
