//! Attaching a local store to the blobs: as their writer, or to read them.
//!
//! A writer first takes the next number, by a conditional write of the manifest, which stops the one before; only
//! then it reads what the blobs hold. The claim of the folder says before that write which token it uses.

use crate::apart;
use crate::at_once::{AT_ONCE, at_once};
use crate::blocks::BLOCKS;
use crate::claim::{CLAIM, Claim};
use crate::entry::{Kind, Meta};
use crate::history::{self, AsOf, Past};
use crate::hold::LEASES;
use crate::kept::{self, KEPT};
use crate::manifest::{Blob, Chunk, MANIFEST, Manifest, blob_name, piece_name};
use crate::options::TierOptions;
use crate::origins;
use crate::retry::{backoff_ns, is_transient, retried};
use crate::shared::{Beginning, Shared, State};
use nacre_host::{
    Answer, BlobStore, Clock, Entropy, ErrorKind, Host, LocalFile, LocalStore, ReadRange, Tag,
    WriteIf,
};
use nacre_types::checksum::Checksum;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Reason, Result};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a request when a file is read whole.
const READ_BYTES: u64 = 4 << 20;

/// How often a blob is read that is not what the manifest names.
const ATTEMPTS: usize = 3;

/// What an attachment works with.
#[derive(Clone, Copy)]
pub(crate) struct Attach<'a> {
    pub local: &'a Arc<dyn LocalStore>,
    pub clock: &'a Arc<dyn Clock>,
    pub entropy: &'a Arc<dyn Entropy>,
    pub blobs: &'a Arc<dyn BlobStore>,
    pub options: &'a TierOptions,
}

/// A number that was taken.
pub(crate) struct Taken {
    /// The manifest that says so.
    pub manifest: Manifest,
    pub tag: Tag,
    /// Whether the folder is to be filled from it.
    pub is_filling: bool,
}

pub(crate) type Found = Option<(Manifest, Tag)>;

/// See [`Tier::open`](crate::Tier::open).
pub(crate) async fn as_writer(
    host: &Host,
    blobs: Arc<dyn BlobStore>,
    options: TierOptions,
) -> Result<Arc<Shared>> {
    let Some(known) = apart::known(&*host.store)? else {
        return with_number(host, &blobs, &options).await;
    };
    let until_ns = host.clock.monotonic_ns().saturating_add(apart::PATIENCE_NS);
    let with_number = with_number(host, &blobs, &options);
    match apart::until(&*host.clock, until_ns, with_number).await {
        Some(Err(error)) if is_transient(&error) => {}
        Some(Err(error)) if error.reason() == Some(Reason::Fenced) => {
            apart::note_overtaken(&*host.store);
            return Err(error);
        }
        Some(attached) => return attached,
        None => {}
    }
    let blobs = origins::store_of(&blobs, &known.origins)?;
    let attach = Attach::new(host, &blobs, &options);
    let (token, writer) = (known.token, known.writer);
    // What the process before has written and not uploaded has no history, as below. The copy may be older than what
    // is in the blob store, which only makes the gap longer.
    let is_longer = nacre_log::goes_on_after(&*host.store, known.position).unwrap_or(true);
    let (options, tag, remote) = (options.clone(), None, known);
    let beginning =
        Beginning { options, token, writer, remote, tag, is_past: false, is_apart: true };
    let shared = attach.begin(beginning)?;
    shared.state().is_resumed = is_longer;
    Ok(shared)
}

/// Attaches as a writer that has taken the next number.
async fn with_number(
    host: &Host,
    blobs: &Arc<dyn BlobStore>,
    options: &TierOptions,
) -> Result<Arc<Shared>> {
    let attach = Attach::new(host, blobs, options);
    let token = host.entropy.next_u64() | 1;
    let patience_ns = options.patience.as_nanos() as u64;
    let until_ns = host.clock.monotonic_ns().saturating_add(patience_ns);
    let Taken { manifest: remote, tag, is_filling } = loop {
        match attach.take(token).await {
            Ok(Some(taken)) => break taken,
            Ok(None) if host.clock.monotonic_ns() < until_ns => {}
            Ok(None) => return Err(Error::in_use("others take over these blobs all the time")),
            Err(error) if is_transient(&error) && host.clock.monotonic_ns() < until_ns => {
                let delay_ns = backoff_ns(0, &*host.entropy);
                let next_ns = host.clock.monotonic_ns().saturating_add(delay_ns);
                host.clock.sleep_until(next_ns).await;
            }
            Err(error) => return Err(error),
        }
    };
    let blobs = origins::store_of(blobs, &remote.origins)?;
    let attach = Attach::new(host, &blobs, options);
    let mut claim = Claim::read(&*host.store)?.unwrap_or_default();
    if is_filling {
        claim = claim.replace(&*host.store, Claim { is_filling, ..claim })?;
        attach.fill(&remote).await?;
    }
    let next = Claim { confirmed: remote.writer, is_filling: false, ..claim };
    claim.replace(&*host.store, next)?;
    let writer = remote.writer;
    let (options, tag) = (options.clone(), Some(tag));
    let beginning =
        Beginning { options, token, writer, remote, tag, is_past: false, is_apart: false };
    let shared = attach.begin(beginning)?;
    let remote = shared.state().remote.clone();
    let _ = apart::note(&shared, &remote);
    let position = shared.state().remote.position;
    // What was filled is what the manifest has.
    let store = &*host.store;
    // Recovery says what is wrong with a log that cannot be read.
    let goes_on = || nacre_log::goes_on_after(store, position).unwrap_or(true);
    let is_longer = !is_filling && goes_on();
    shared.state().is_resumed = is_longer;
    Ok(shared)
}

/// See [`Tier::open_to_read`](crate::Tier::open_to_read).
pub(crate) async fn as_reader(
    host: &Host,
    blobs: Arc<dyn BlobStore>,
    options: TierOptions,
    as_of: Option<AsOf>,
) -> Result<Arc<Shared>> {
    let attach = Attach::new(host, &blobs, &options);
    if !host.store.list()?.is_empty() {
        return Err(Error::unsupported("reading blobs into a folder that has files")
            .with_hint("use an empty folder"));
    }
    let found = attach.newest().await?.filter(|(manifest, _)| manifest.has_state());
    let Some((mut remote, tag)) = found else {
        return Err(Error::not_found("no database: the blobs have no manifest that names one"));
    };
    let blobs = origins::store_of(&blobs, &remote.origins)?;
    let attach = Attach::new(host, &blobs, &options);
    match as_of {
        None => attach.fill(&remote).await?,
        Some(at) => {
            let past = Box::pin(attach.past(&remote, at)).await?;
            attach.fill(&past.manifest).await?;
            let position = cut_log(&**attach.local, &past)?;
            remote = Manifest { position, ..past.manifest };
        }
    }
    let (options, tag, is_past) = (options.clone(), Some(tag), as_of.is_some());
    let (token, writer, is_apart) = (0, 0, false);
    attach.begin(Beginning { options, token, writer, remote, tag, is_past, is_apart })
}

/// Cuts the log of a state of the past after the last record that belongs to it. Returns its position.
pub(crate) fn cut_log(store: &dyn LocalStore, past: &Past) -> Result<u64> {
    let Some(last) = past.manifest.chunks.last() else { return Ok(past.position) };
    let file = store.open(&nacre_log::chunk_name(last.start))?;
    let end = nacre_log::end_of_records(&*file, last.start, past.position.max(last.start))?;
    file.truncate(nacre_log::HEADER_BYTES + (end - last.start))?;
    file.sync()?;
    let snapshot = past.manifest.snapshot.map_or(0, |(at, _)| at);
    match end >= snapshot {
        true => Ok(end),
        false => Err(Error::corrupt(format!("the log ends at {end}, before a snapshot"))),
    }
}

/// Checks that a folder which is opened without blobs is not one that was being filled from them.
///
/// # Errors
/// `in_use` if it is, with what to do.
pub fn check_filled(store: &dyn LocalStore) -> Result<()> {
    match Claim::read(store)? {
        Some(claim) if claim.is_filling => {
            Err(Error::in_use("the folder was being filled from blobs, and that did not end")
                .with_hint("open it with its blobs"))
        }
        _ => Ok(()),
    }
}

/// Whether a folder may go on from a manifest, and whether it is to be filled from it. Removes what a filling
/// that did not end has left.
fn claimed(store: &dyn LocalStore, remote: Option<&Manifest>) -> Result<(Claim, bool)> {
    let known = Claim::read(store)?;
    let claim = known.unwrap_or_default();
    let mut names = store.list()?;
    names.retain(|name| !is_own(name));
    if claim.is_filling {
        for name in names.drain(..) {
            store.remove(&name)?;
        }
    }
    let has_log = nacre_log::has_log(&names);
    if !has_log && !names.is_empty() && remote.is_some_and(Manifest::has_state) {
        return Err(Error::corrupt("the folder has files of a database, but no log"));
    }
    match remote {
        None if claim.confirmed != 0 => Err(Error::corrupt(format!(
            "the {MANIFEST} is missing, although this folder was uploaded to these blobs"
        ))),
        None => Ok((claim, false)),
        Some(manifest) if !has_log => Ok((claim, manifest.has_state())),
        Some(manifest) => {
            let is_claimed = claim.has(manifest.folder, manifest.writer);
            match is_claimed && is_log_of(store, &names, manifest)? {
                true => Ok((claim, false)),
                false if is_claimed || known.is_none() => Err(Error::already_exists(
                    "the blobs hold a database already, and the folder holds another one",
                )
                .with_hint("use an empty folder, or an empty place for the blobs")),
                false if plant::is(Bug::JoinUnfenced) => Ok((claim, false)),
                false => Err(Error::fenced()),
            }
        }
    }
}

/// Whether the log of a folder is that of a manifest's database. A folder that took a number and was not filled may
/// have got another one since, without blobs. Recovery reports a log that cannot be read.
fn is_log_of(store: &dyn LocalStore, names: &[String], remote: &Manifest) -> Result<bool> {
    let first = names.iter().filter_map(|name| nacre_log::chunk_of(name)).min();
    let Some(name) = first.filter(|_| remote.has_state()).map(nacre_log::chunk_name) else {
        return Ok(true);
    };
    let (file, mut head) = (store.open(&name)?, vec![0; nacre_log::HEADER_BYTES as usize]);
    if file.len()? < nacre_log::HEADER_BYTES {
        return Ok(true);
    }
    file.read(&mut [ReadRange { offset: 0, buffer: &mut head }])?;
    Ok(nacre_log::database_of(&head, &name).map_or(true, |database| database == remote.database))
}

impl<'a> Attach<'a> {
    fn new(host: &'a Host, blobs: &'a Arc<dyn BlobStore>, options: &'a TierOptions) -> Attach<'a> {
        let Host { store: local, clock, entropy, .. } = host;
        Attach { local, clock, entropy, blobs, options }
    }

    /// The state at a point in time. See [`history::past`].
    async fn past(&self, newest: &Manifest, at: AsOf) -> Result<Past> {
        history::past(async |name: &str| self.read_whole(name).await, newest, at).await
    }

    /// What an instance works with.
    pub fn of(shared: &'a Shared) -> Attach<'a> {
        let Shared { local, clock, entropy, blobs, options, .. } = shared;
        Attach { local, clock, entropy, blobs, options }
    }

    /// Repeats a call until the blob store answers.
    async fn read(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let (clock, entropy) = (&**self.clock, &**self.entropy);
        let patience_ns = self.options.patience.as_nanos() as u64;
        let call = || self.blobs.read(name, range.clone());
        let bytes = retried(clock, entropy, patience_ns, call).await?;
        match bytes.len() as u64 == range.end - range.start {
            true => Ok(bytes),
            false => Err(Error::corrupt(format!("{name}: {} bytes for {range:?}", bytes.len()))),
        }
    }

    /// A small blob.
    pub async fn read_whole(&self, name: &str) -> Result<Vec<u8>> {
        let (clock, entropy) = (&**self.clock, &**self.entropy);
        let patience_ns = self.options.patience.as_nanos() as u64;
        let call = || self.blobs.read_all(name);
        retried(clock, entropy, patience_ns, call).await.map(|(bytes, _)| bytes)
    }

    /// The newest manifest, if there is one.
    pub async fn newest(&self) -> Result<Found> {
        let (clock, entropy) = (&**self.clock, &**self.entropy);
        let patience_ns = self.options.patience.as_nanos() as u64;
        let call = || -> Answer<'_, (Manifest, Tag)> {
            Box::pin(async {
                let (bytes, tag) = self.blobs.read_all(MANIFEST).await?;
                Ok((Manifest::decode(&bytes)?, tag))
            })
        };
        match retried(clock, entropy, patience_ns, call).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tries to take the next number for the local folder, if that may go on from the newest manifest. `None` if there
    /// is a newer one now.
    ///
    /// # Errors
    /// As [`Tier::open`](crate::Tier::open); `unavailable` if it must be tried again.
    pub async fn take(&self, token: u64) -> Result<Option<Taken>> {
        let before = self.newest().await?;
        let (known, is_filling) = claimed(&**self.local, before.as_ref().map(|found| &found.0))?;
        // A write that seemed to fail has taken effect since.
        if let Some((manifest, tag)) = &before
            && manifest.token == token
        {
            let (manifest, tag) = (manifest.clone(), tag.clone());
            return Ok(Some(Taken { manifest, tag, is_filling }));
        }
        if before.is_none() {
            self.must_be_empty().await?;
        }
        let number = before.as_ref().map_or(1, |(manifest, _)| manifest.writer + 1);
        let folder = if known.folder == 0 { token } else { known.folder };
        let attempted = known.attempted.max(number);
        // A folder that is being filled is emptied later, so that is noted only once the number is taken.
        let next = Claim { folder, attempted, is_filling: false, ..known };
        known.replace(&**self.local, next)?;
        let taken = self.take_number(before, token, folder).await?;
        Ok(taken.map(|(manifest, tag)| Taken { manifest, tag, is_filling }))
    }

    /// Checks that nothing is in the place where a first manifest would be written. Leases do not count: a reader of
    /// a database that was removed may leave one behind, and it ends by itself.
    ///
    /// # Errors
    /// `already_exists` with the name of what is there.
    pub async fn must_be_empty(&self) -> Result<()> {
        let (clock, entropy) = (&**self.clock, &**self.entropy);
        let patience_ns = self.options.patience.as_nanos() as u64;
        let listed = retried(clock, entropy, patience_ns, || self.blobs.list("")).await?;
        let is_other = |name: &str| name != MANIFEST && !name.starts_with(LEASES);
        match listed.iter().find(|blob| is_other(&blob.name)) {
            None => Ok(()),
            Some(blob) => Err(Error::already_exists(format!(
                "the place of the blobs has no {MANIFEST}, but other things, such as {}",
                blob.name
            ))
            .with_hint("use an empty place")),
        }
    }

    /// Becomes the writer after the one of a manifest. `None` if there is a newer manifest.
    ///
    /// # Errors
    /// `unavailable` if it must be tried again.
    async fn take_number(&self, before: Found, token: u64, folder: u64) -> Result<Found> {
        let (before, tag) = before.unzip();
        let when = tag.map_or(WriteIf::Absent, WriteIf::Tagged);
        let before = before.unwrap_or_default();
        let next = Manifest {
            writer: before.writer + 1,
            token,
            folder,
            sequence: before.sequence + 1,
            // Times do not go back, though clocks may, and are apart.
            written_us: self.clock.wall_us().max(before.written_us),
            ..before
        };
        let written = self.blobs.write(MANIFEST, next.encode().into(), when).await;
        match written {
            Ok(tag) => Ok(Some((next, tag))),
            Err(error) if error.kind() == ErrorKind::Conflict || is_transient(&error) => {
                // The answer may have been lost.
                match self.newest().await? {
                    Some((found, tag)) if found.token == token => Ok(Some((found, tag))),
                    _ if is_transient(&error) => Err(error),
                    _ => Ok(None),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the log and the snapshot of a manifest to the local store, all requests at once.
    async fn fill(&self, remote: &Manifest) -> Result<()> {
        let mut copies = Copies::default();
        if let Some((at, blob)) = &remote.snapshot {
            copies.add_snapshot(*at, blob);
        }
        for (number, chunk) in remote.chunks.iter().enumerate() {
            let end = chunk.pieces.last().map_or(0, |last| last.to);
            let reached = nacre_log::position_at(chunk.start, end);
            let expected = remote.chunks.get(number + 1).map_or(remote.position, |next| next.start);
            if reached != expected {
                let name = nacre_log::chunk_name(chunk.start);
                return Err(Error::corrupt(format!(
                    "the {MANIFEST} names {name} up to position {reached} instead of {expected}"
                )));
            }
            copies.add_chunk(chunk);
        }
        let mut files = Vec::with_capacity(copies.files.len());
        for name in &copies.files {
            // Where files are made ahead of need.
            self.local.prepare().await?;
            files.push(self.local.create(name)?);
        }
        self.write(&copies, &files).await
    }

    /// Writes files to the local store.
    pub async fn fetch(&self, copies: Copies) -> Result<()> {
        let files = copies.files.iter().map(|name| self.local.create(name));
        let files: Vec<_> = files.collect::<Result<_>>()?;
        self.write(&copies, &files).await
    }

    async fn write(&self, copies: &Copies, files: &[Arc<dyn LocalFile>]) -> Result<()> {
        let copy = async |part: &Part| {
            let write = |offset, bytes: &[u8]| files[part.file].write(part.at + offset, bytes);
            self.copy(&part.source, part.len, part.checksum, &write).await
        };
        at_once(copies.parts.iter().map(copy), AT_ONCE).await?;
        files.iter().try_for_each(|file| file.sync())
    }

    /// Reads a blob whole, some bytes at a time, and verifies it; again if the answer was wrong.
    pub async fn copy(
        &self,
        name: &str,
        len: u64,
        checksum: u64,
        write: &(dyn Fn(u64, &[u8]) -> Result<()> + Sync),
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let (mut at, mut sum) = (0, Checksum::default());
            while at < len {
                let end = len.min(at + READ_BYTES);
                let bytes = self.read(name, at..end).await?;
                sum.add(&bytes);
                write(at, &bytes)?;
                at = end;
            }
            if sum.value() == checksum {
                return Ok(());
            }
        }
        Err(Error::corrupt(format!("{name}: checksum does not match")))
    }

    /// The parts of the store, once the local one has the log.
    fn begin(&self, beginning: Beginning) -> Result<Arc<Shared>> {
        let store = self.local;
        let names = store.list()?;
        let (clock, entropy) = (self.clock.clone(), self.entropy.clone());
        let shared = Shared::new(store.clone(), self.blobs.clone(), clock, entropy, beginning);
        {
            let mut state = shared.state();
            for name in names.iter().filter(|name| !is_own(name)) {
                let meta = local(&**store, name, &state)?;
                state.add(name, meta);
            }
            let remote = state.remote.files.clone();
            for (name, blob) in remote {
                if !state.files.contains_key(&name) {
                    state.add(&name, away(blob));
                }
            }
        }
        kept::adopt(&shared, &names)?;
        Ok(shared)
    }
}

/// Whether a file is one of this store itself, not of the database.
fn is_own(name: &str) -> bool {
    [CLAIM, BLOCKS, KEPT, MANIFEST].contains(&name)
}

/// Files to be made of blobs.
#[derive(Default)]
pub(crate) struct Copies {
    files: Vec<String>,
    parts: Vec<Part>,
}

/// A blob that becomes bytes of a file.
struct Part {
    source: String,
    len: u64,
    checksum: u64,
    /// Which of the files, and where in it.
    file: usize,
    at: u64,
}

impl Copies {
    pub fn add_chunk(&mut self, chunk: &Chunk) {
        let file = self.files.len();
        self.files.push(nacre_log::chunk_name(chunk.start));
        self.parts.extend(chunk.pieces.iter().map(|piece| Part {
            source: piece_name(chunk.start, piece),
            len: piece.to - piece.from,
            checksum: piece.checksum,
            file,
            at: piece.from,
        }));
    }

    pub fn add_snapshot(&mut self, at: u64, blob: &Blob) {
        let (name, file) = (nacre_log::snapshot_name(at), self.files.len());
        let source = blob_name(blob.writer, &name);
        let Blob { len, checksum, .. } = *blob;
        self.parts.push(Part { source, len, checksum, file, at: 0 });
        self.files.push(name);
    }
}

/// What is known of a file whose bytes are only in the blob store.
pub(crate) fn away(blob: Blob) -> Meta {
    let (written, synced) = (blob.len, blob.len);
    Meta { written, synced, is_named: true, blob: Some(blob), ..Meta::default() }
}

/// What is known of a file of the local store when it is attached.
fn local(store: &dyn LocalStore, name: &str, state: &State) -> Result<Meta> {
    let remote = &state.remote;
    let blob = match Kind::of(name) {
        Kind::Local => return Ok(Meta { is_here: true, ..Meta::default() }),
        // One that the log was not known to name may have been replaced by another since.
        Kind::Data => remote.files.get(name).copied().filter(|blob| blob.is_named),
        Kind::Snapshot(at) => {
            remote.snapshot.filter(|(newest, _)| *newest == at).map(|(_, blob)| blob)
        }
        Kind::Chunk(start) => {
            let pieces = remote.chunks.iter().find(|chunk| chunk.start == start);
            let pieces = pieces.map_or(Vec::new(), |chunk| chunk.pieces.clone());
            // Recovery cuts what is torn, and syncs; then it is known how far it is durable.
            let written = store.open(name)?.len()?;
            return Ok(Meta { is_here: true, written, pieces, ..Meta::default() });
        }
    };
    let len = match blob {
        Some(blob) => blob.len,
        None => store.open(name)?.len()?,
    };
    // The log says which snapshot stands for it, and recovery removes what no record names.
    let is_named = Kind::of(name) == Kind::Data;
    let (written, synced, is_found) = (len, len, true);
    Ok(Meta { is_here: true, written, synced, is_named, is_found, blob, ..Meta::default() })
}
