//! A folder keeps the contract of blob stores.

use crate::support::{Scratch, wait};
use nacre_blobs::{BlobOptions, EncryptionKey, FolderBlobs, open_blobs};
use nacre_contract_tests::{check_blob_store, check_blob_times};
use nacre_host::{BlobStore, ErrorKind, WriteIf};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn blobs(scratch: &Scratch) -> FolderBlobs {
    FolderBlobs::open(scratch.path()).unwrap()
}

#[test]
fn a_folder_keeps_the_contract() {
    let scratch = Scratch::new();
    let number = std::cell::Cell::new(0);
    check_blob_store(|| {
        number.set(number.get() + 1);
        let url = format!("file://{}/{}", scratch.path().display(), number.get());
        let open = || open_blobs(&url, &BlobOptions::default()).unwrap();
        (open(), open())
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
    check_blob_times(&blobs(&Scratch::new()), now);
}

#[test]
fn an_encrypted_folder_keeps_the_contract() {
    let scratch = Scratch::new();
    let number = std::cell::Cell::new(0);
    let options = |byte: u8| BlobOptions {
        encryption_key: Some(EncryptionKey::new(&[byte; 32])),
        ..BlobOptions::default()
    };
    check_blob_store(|| {
        number.set(number.get() + 1);
        let url = format!("file://{}/{}", scratch.path().display(), number.get());
        let open = || open_blobs(&url, &options(7)).unwrap();
        (open(), open())
    });
    let url = |name: &str| format!("file://{}/{name}", scratch.path().display());
    let store = open_blobs(&url("one"), &options(7)).unwrap();
    wait(store.write("a", b"content"[..].into(), WriteIf::Absent)).unwrap();
    assert!(!fs::read(scratch.path().join("one/a")).unwrap().ends_with(b"content"));
    // A branch is read with the key of its origin.
    let branch = open_blobs(&url("two"), &options(7)).unwrap();
    let origin = branch.elsewhere(&url("one")).unwrap();
    assert_eq!(wait(origin.read("a", 1..4)).unwrap(), b"ont");
    for (options, why) in [(options(8), "another key"), (BlobOptions::default(), "is encrypted")] {
        let error = wait(open_blobs(&url("one"), &options).unwrap().read_all("a")).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains(why), "{error}");
    }
}

#[test]
fn blobs_are_there_when_the_folder_is_opened_again() {
    let scratch = Scratch::new();
    let tag = wait(blobs(&scratch).write("a/b", b"kept"[..].into(), WriteIf::Absent)).unwrap();
    let again = blobs(&scratch);
    assert_eq!(wait(again.read_all("a/b")).unwrap(), (b"kept".to_vec(), tag.clone()));
    wait(again.write("a/b", b"new"[..].into(), WriteIf::Tagged(tag))).unwrap();
}

#[test]
fn writes_leave_no_other_files() {
    let scratch = Scratch::new();
    let store = blobs(&scratch);
    wait(store.write("a", b"x"[..].into(), WriteIf::Any)).unwrap();
    let error = wait(store.write("a", b"y"[..].into(), WriteIf::Absent)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = wait(store.write("a/b", b"y"[..].into(), WriteIf::Any)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(fs::read_dir(scratch.path().join(".new")).unwrap().count(), 0);
}

#[test]
fn files_of_abandoned_writes_are_removed_when_they_are_old() {
    let scratch = Scratch::new();
    drop(blobs(&scratch));
    let new = scratch.path().join(".new");
    fs::write(new.join("young"), b"x").unwrap();
    let old = fs::File::create(new.join("old")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60)).unwrap();
    let store = blobs(&scratch);
    assert!(new.join("young").exists() && !new.join("old").exists());
    assert!(wait(store.list("")).unwrap().is_empty());
}

#[test]
fn foreign_files_are_not_listed() {
    let scratch = Scratch::new();
    let store = blobs(&scratch);
    for name in [".hidden", "a b", "ä", "Icon\r"] {
        fs::write(scratch.path().join(name), b"x").unwrap();
    }
    fs::create_dir_all(scratch.path().join(".git/objects")).unwrap();
    fs::write(scratch.path().join(".git/objects/a"), b"x").unwrap();
    wait(store.write("mine", b"x"[..].into(), WriteIf::Any)).unwrap();
    let names: Vec<_> = wait(store.list("")).unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("file"), b"x").unwrap();
    let error = FolderBlobs::open(&scratch.path().join("file/blobs")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("file/blobs"), "{error}");
}

/// An application's own runtime polls answers, and its threads end before those of the store.
#[test]
fn answers_work_inside_another_runtime() {
    let scratch = Scratch::new();
    let store: Arc<dyn BlobStore> = Arc::new(blobs(&scratch));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.write("a", b"x"[..].into(), WriteIf::Any).await.unwrap();
        assert_eq!(store.read("a", 0..1).await.unwrap(), b"x");
    });
    drop(runtime);
    assert_eq!(wait(store.read("a", 0..1)).unwrap(), b"x");
}
