//! Opening from the blobs, on an empty disk or the one of before; writers that take over from each other.

use super::world::{
    Fault, Faulty, Hands, Small, host_at, host_of, local_names, name_of, options, poll_some, wait,
};
use crate::{MANIFEST, Tier, TierOptions, check_filled, describe};
use core::time::Duration;
use nacre_host::memory::MemoryStore;
use nacre_host::{ErrorKind, Host, LocalStore, Reason, Uploads};
use nacre_log::{Log, LogOptions};
use nacre_testing::{Call, Watched};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn local() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new())
}

#[test]
fn what_was_uploaded_survives_the_loss_of_the_disk() {
    let blobs = Faulty::new();
    let mut small = Small::open(&local(), &blobs, options()).unwrap();
    for number in 1..=20 {
        small.add(number).unwrap();
        if number % 3 == 0 {
            small.drop(number - 1).unwrap();
        }
        if number == 7 || number == 15 {
            small.snapshot().unwrap();
        }
        small.upload();
        assert_eq!(small.tier.position(), small.log.position());
        let again = Small::open(&local(), &blobs, options()).unwrap();
        again.check(&small.records);
        small = again;
    }
}

#[test]
fn a_local_folder_goes_on_where_it_was() {
    let (local, blobs) = (local(), Faulty::new());
    let mut records = Vec::new();
    for number in 1..=12 {
        let mut small = Small::open(&local, &blobs, options()).unwrap();
        small.check(&records);
        small.add(number).unwrap();
        if number % 4 == 0 {
            small.snapshot().unwrap();
        }
        if number % 3 == 0 {
            small.upload();
        }
        records.clone_from(&small.records);
    }
    let small = Small::open(&local, &blobs, options()).unwrap();
    let before = blobs.calls();
    assert!(small.upload() > 0, "what the last instances have not uploaded");
    let names = describe(&blobs.blobs.get(MANIFEST).unwrap()).unwrap();
    assert!(blobs.calls() - before < names.len() as u64, "most files were uploaded by others");
    for name in &names[1..] {
        assert!(blobs.blobs.get(name).is_some(), "{name} is a blob");
    }
    Small::open(&Arc::new(MemoryStore::new()), &blobs, options()).unwrap().check(&records);
}

#[test]
fn the_older_writer_is_fenced_before_it_acknowledges_more() {
    let (first_files, blobs) = (local(), Faulty::new());
    let mut first = Small::open(&first_files, &blobs, options()).unwrap();
    first.add(1).unwrap();
    first.upload();
    let mut second = Small::open(&local(), &blobs, options()).unwrap();
    // It cannot know yet, and what it commits is on its own disk.
    first.add(2).unwrap();
    first.upload();
    let error = first.add(3).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::InUse, Some(Reason::Fenced)));
    assert!(error.message().contains("fenced"), "{error}");
    let error = first.log.append(b"x").unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Fenced), "later ones say so, too");
    assert_eq!(wait(first.tier.finish()).unwrap_err().reason(), Some(Reason::Fenced));
    second.add(4).unwrap();
    second.upload();
    Small::open(&local(), &blobs, options()).unwrap().check(&second.records);
    // The folder of the first has commits that the blobs do not have.
    let error = Small::open(&first_files, &blobs, options()).err().unwrap();
    assert_eq!(error.reason(), Some(Reason::Fenced));
}

#[test]
fn blobs_of_another_database_are_refused() {
    let (files, blobs) = (local(), Faulty::new());
    let mut small = Small::open(&files, &blobs, options()).unwrap();
    small.add(1).unwrap();
    small.upload();
    let other_files = local();
    drop(Small::open(&other_files, &Faulty::new(), options()).unwrap());
    let error = Small::open(&other_files, &blobs, options()).err().unwrap();
    assert_eq!(error.reason(), Some(Reason::Fenced), "{error}");
    // Never attached.
    let plain = local();
    let mut refuse = |_: &[u8]| Ok(());
    let log = nacre_log::Log::open(
        plain.clone(),
        nacre_log::LogOptions::default(),
        &mut refuse,
        &mut |_, _| Ok(()),
    );
    drop(log.unwrap());
    let error = Small::open(&plain, &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    // The blobs are gone.
    let error = Small::open(&files, &Faulty::new(), options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("manifest is missing"), "{error}");
    // Something else is there.
    let foreign = Faulty::new();
    foreign
        .blobs
        .put(MANIFEST, (*b"hello, this is a text").into(), &nacre_host::WriteIf::Any)
        .unwrap();
    let error = Small::open(&local(), &foreign, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let foreign = Faulty::new();
    foreign.blobs.put("photo.jpg", [1].as_slice().into(), &nacre_host::WriteIf::Any).unwrap();
    let error = Small::open(&local(), &foreign, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.message().contains("such as photo.jpg"), "{error}");
}

#[test]
fn a_writer_of_a_newer_version_takes_over_as_any_other() {
    let blobs = Faulty::new();
    let mut small = Small::open(&local(), &blobs, options()).unwrap();
    small.add(1).unwrap();
    small.upload();
    let mut newer = blobs.blobs.get(MANIFEST).unwrap().to_vec();
    newer[8] = 99;
    let end = newer.len() - 8;
    let sum = nacre_types::checksum::checksum(&newer[..end]);
    newer[end..].copy_from_slice(&sum.to_le_bytes());
    blobs.blobs.put(MANIFEST, newer.into(), &nacre_host::WriteIf::Any).unwrap();
    small.add(2).unwrap();
    small.upload();
    assert_eq!(small.add(3).unwrap_err().reason(), Some(Reason::Fenced));
    let error = Small::open(&local(), &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("99"), "{error}");
}

#[test]
fn an_existing_database_can_be_uploaded() {
    let (files, blobs) = (local(), Faulty::new());
    let other = Faulty::new();
    let mut small = Small::open(&files, &other, options()).unwrap();
    for number in 1..8 {
        small.add(number).unwrap();
    }
    files.remove("claim").unwrap();
    let again = Small::open(&files, &blobs, options()).unwrap();
    again.upload();
    Small::open(&local(), &blobs, options()).unwrap().check(&small.records);
}

#[test]
fn readers_see_the_newest_upload_and_change_nothing() {
    let blobs = Faulty::new();
    let open = || wait(Tier::open_to_read(&host_of(local()), blobs.clone(), options()));
    assert_eq!(open().err().unwrap().kind(), ErrorKind::NotFound);
    let mut small = Small::open(&local(), &blobs, options()).unwrap();
    small.add(1).unwrap();
    small.upload();
    let before = blobs.blobs.get(MANIFEST).unwrap();
    let reader = open().unwrap();
    assert_eq!(reader.position(), small.log.position());
    assert_eq!(reader.list().unwrap().len(), 2, "a chunk and a segment");
    wait(reader.finish()).unwrap();
    assert_eq!(blobs.blobs.get(MANIFEST).unwrap(), before);
    small.add(2).unwrap();
    small.upload();
    assert!(reader.position() < small.log.position());
}

#[test]
fn blobs_that_nothing_names_are_removed_after_their_time() {
    let (blobs, files, clock) = (Faulty::new(), local(), Arc::new(Hands::default()));
    let host = || Host { clock: clock.clone(), ..host_of(files.clone()) };
    let keep = TierOptions { retention: Duration::MAX, ..options() };
    let mut small = Small::open_at(host(), &blobs, keep).unwrap();
    for number in 1..=6 {
        small.add(number).unwrap();
        small.upload();
    }
    for number in 1..=4 {
        small.drop(number).unwrap();
    }
    small.snapshot().unwrap();
    small.upload();
    let all = blobs.blobs.names().len();
    drop(small);
    // Their time is over at once.
    let now = Duration::ZERO;
    let forget = TierOptions { retention: now, history: now, ..options() };
    let mut small = Small::open_at(host(), &blobs, forget.clone()).unwrap();
    small.upload();
    clock.pass(Duration::from_secs(60));
    small.add(7).unwrap();
    small.upload();
    let names = describe(&blobs.blobs.get(MANIFEST).unwrap()).unwrap();
    let left = blobs.blobs.names().len();
    assert!(left < all, "{left} of {all} are left");
    assert!(left <= names.len() + 3, "{left} blobs, {} are named", names.len());
    assert_eq!(local_names(&files, "seg-").len(), 3);
    Small::open(&local(), &blobs, forget).unwrap().check(&small.records);
}

/// Each machine's clock is an hour behind that of the one before.
#[test]
fn writers_whose_clocks_are_apart_take_over_from_each_other() {
    let (blobs, mut records) = (Faulty::new(), Vec::new());
    for machine in 0..4 {
        let clock = Arc::new(Hands::default());
        clock.pass(Duration::from_secs(3_600 * (4 - machine)));
        let mut small = Small::open_at(host_at(&clock), &blobs, options()).unwrap();
        small.check(&records);
        for number in 1..=3 {
            clock.pass(Duration::from_secs(2));
            small.add(10 * machine + number).unwrap();
            small.upload();
        }
        records.clone_from(&small.records);
    }
}

/// The number is not given, so nothing is downloaded: what the folder gets meanwhile is its own.
#[test]
fn a_folder_that_got_no_number_is_not_emptied() {
    let blobs = Faulty::new();
    let mut first = Small::open(&local(), &blobs, options()).unwrap();
    first.add(1).unwrap();
    first.upload();
    let folder = local();
    blobs.refuse(MANIFEST);
    let error = Small::open(&folder, &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    check_filled(&*folder).unwrap();
    // A database without blobs.
    folder.create(&nacre_host::numbered_file_name("seg-", 7)).unwrap();
    blobs.allow();
    let error = Small::open(&folder, &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(local_names(&folder, "seg-").len(), 1);
}

/// The folder has the number of the manifest, and nothing of its database: the answer was lost.
#[test]
fn a_folder_that_got_another_database_does_not_go_on_with_the_blobs() {
    let (blobs, folder, clock) = (Faulty::new(), local(), Arc::new(Hands::default()));
    let mut first = Small::open(&local(), &blobs, options()).unwrap();
    first.add(1).unwrap();
    first.upload();
    // The manifest is read and replaced.
    blobs.fail(1, u64::MAX, Fault::Lost);
    let host = Host { clock, ..host_of(folder.clone()) };
    let error = Small::open_at(host, &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    blobs.fail(0, 0, Fault::Lost);
    check_filled(&*folder).unwrap();
    // A database without blobs, whose log is longer.
    let log_options = LogOptions { database_id: 9, ..LogOptions::default() };
    let log = Log::open(folder.clone(), log_options, &mut |_| Ok(()), &mut |_, _| Ok(())).unwrap();
    log.append(&[b'x'; 10_000]).unwrap();
    log.sync(log.position()).unwrap();
    drop(log);
    let error = Small::open(&folder, &blobs, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    Small::open(&local(), &blobs, options()).unwrap().check(&first.records);
}

#[test]
fn a_folder_that_was_being_filled_is_not_opened_without_its_blobs() {
    let (blobs, folder) = (Faulty::new(), local());
    let mut first = Small::open(&local(), &blobs, options()).unwrap();
    first.add(1).unwrap();
    first.upload();
    // The manifest is read and replaced.
    blobs.fail(2, u64::MAX, Fault::Stuck);
    let host = host_of(folder.clone());
    assert!(poll_some(Box::pin(Tier::open(&host, blobs.clone(), options())), 9).is_none());
    let error = check_filled(&*folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("blobs")), "{error}");
    blobs.fail(0, 0, Fault::Stuck);
    Small::open(&folder, &blobs, options()).unwrap().check(&first.records);
    check_filled(&*folder).unwrap();
}

#[test]
fn uploads_go_on_while_the_disk_refuses_to_remove_files() {
    let (files, blobs, clock) = (local(), Faulty::new(), Arc::new(Hands::default()));
    let refuses = Arc::new(AtomicBool::new(false));
    let is_refused = refuses.clone();
    let store = Watched::new(files.clone(), move |_, call| {
        match call == Call::Remove && is_refused.load(Ordering::Relaxed) {
            true => Err(nacre_host::Error::io("the disk is read-only")),
            false => Ok(()),
        }
    });
    let host = Host { store, clock: clock.clone(), ..host_of(files.clone()) };
    let mut small = Small::open_at(host, &blobs, options()).unwrap();
    // From here on the history is kept, so a file is uploaded before it is removed.
    small.upload();
    small.add(1).unwrap();
    refuses.store(true, Ordering::Relaxed);
    small.drop(1).unwrap();
    small.add(2).unwrap();
    let steps = small.upload();
    assert!(steps < 20, "{steps} steps");
    assert_eq!(small.tier.position(), small.log.position());
    wait(small.tier.finish()).unwrap();
    refuses.store(false, Ordering::Relaxed);
    clock.pass(Duration::from_secs(2));
    small.upload();
    assert!(!local_names(&files, "seg-").contains(&name_of(1)), "{:?}", files.list());
}
