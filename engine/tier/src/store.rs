//! The local store of the engine over the tiers.

use crate::attach;
use crate::entry::{Kind, Meta};
use crate::evict::with_space;
use crate::fetch;
use crate::file::TierFile;
use crate::follow;
use crate::history::AsOf;
use crate::lease;
use crate::options::TierOptions;
use crate::shared::Shared;
use crate::upload;
use crate::warm;
use crate::warmer::Warmer;
use nacre_host::{
    Answer, BlobReads, BlobStore, ErrorKind, Fetch, Host, Lag, LocalFile, LocalStore, Missing,
    Rest, Result, Uploads, Warming,
};
use nacre_types::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A local store whose files are uploaded to a blob store, and may then leave the local disk.
pub struct Tier(pub(crate) Arc<Shared>);

impl Tier {
    /// Attaches a local store to the blobs, as their writer: any other one is stopped. The store must be empty,
    /// and then gets the log and the newest snapshot, or be the one of the last writer.
    ///
    /// # Errors
    /// `in_use` with [`Reason::Fenced`](nacre_types::Reason::Fenced) if another writer has had the blobs since
    /// this store was attached to them; `already_exists` if the store holds another database than the blobs;
    /// `corrupt` if the blobs hold nothing although the store was attached before; `unavailable`; `unsupported` for
    /// a newer format; those of both stores.
    pub async fn open(
        host: &Host,
        blobs: Arc<dyn BlobStore>,
        options: TierOptions,
    ) -> Result<Arc<Tier>> {
        attach::as_writer(host, blobs, options).await.map(|shared| Arc::new(Tier(shared)))
    }

    /// Attaches an empty local store to the newest manifest of the blobs, only to read it. It does not change
    /// the blobs.
    ///
    /// # Errors
    /// `not_found` if the blobs hold no database; otherwise as [`Tier::open`].
    pub async fn open_to_read(
        host: &Host,
        blobs: Arc<dyn BlobStore>,
        options: TierOptions,
    ) -> Result<Arc<Tier>> {
        attach::as_reader(host, blobs, options, None).await.map(|shared| Arc::new(Tier(shared)))
    }

    /// Attaches an empty local store to the state of the blobs at a point in time, only to read it. It stays what
    /// it is.
    ///
    /// # Errors
    /// `not_found` if the blobs do not have that state, any more or yet; otherwise as [`Tier::open`].
    pub async fn open_as_of(
        host: &Host,
        blobs: Arc<dyn BlobStore>,
        options: TierOptions,
        at: AsOf,
    ) -> Result<Arc<Tier>> {
        let shared = attach::as_reader(host, blobs, options, Some(at)).await?;
        Ok(Arc::new(Tier(shared)))
    }

    /// Position of the log that the newest manifest reaches: what survives the loss of the local disk.
    pub fn position(&self) -> u64 {
        self.0.state().remote.position
    }
}

impl LocalStore for Tier {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.0.state().files.keys().map(|name| name.to_string()).collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        nacre_host::check_file_name(name)?;
        let shared = &self.0;
        let entry = shared.state().files.get(name).cloned();
        let Some(entry) = entry else {
            return Err(Error::not_found(format!("file {name} does not exist")));
        };
        if entry.kind == Kind::Local {
            return shared.local.open(name);
        }
        let handle = entry.open(&*shared.local)?;
        Ok(Arc::new(TierFile { shared: shared.clone(), entry, handle }))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let shared = &self.0;
        if shared.state().files.contains_key(name) {
            return Err(Error::already_exists(format!("file {name} already exists")));
        }
        let file = with_space(shared, || shared.local.create(name))?;
        let meta = Meta { is_here: true, is_dirty: true, ..Meta::default() };
        let entry = shared.state().add(name, meta);
        if entry.kind == Kind::Local {
            return Ok(file);
        }
        let handle = entry.created(file);
        Ok(Arc::new(TierFile { shared: shared.clone(), entry, handle }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        nacre_host::check_file_name(name)?;
        upload::remove(&self.0, name)
    }

    fn is_in_memory(&self) -> bool {
        self.0.local.is_in_memory()
    }

    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        self.0.local.prepare()
    }

    fn ran_short(&self) -> bool {
        self.0.local.ran_short()
    }

    fn note_named(&self, name: &str) {
        let mut state = self.0.state();
        let Some(entry) = state.files.get(name).cloned() else { return };
        {
            let mut meta = entry.meta();
            if !std::mem::replace(&mut meta.is_named, true) {
                meta.named_at = state.syncs;
            }
        }
        if let Kind::Snapshot(_) = entry.kind {
            self.0.note_change(&mut state);
        }
        drop(state);
        self.0.local.note_named(name);
    }

    fn admit_write(&self) -> Result<()> {
        let unsent = self.0.unsent.load(Ordering::Relaxed);
        let limit = self.0.options.unsent_limit;
        if unsent <= limit {
            return Ok(());
        }
        let state = self.0.state();
        let why = state.last_error.as_ref().map_or("", |error| error.message());
        let message = format!("{unsent} bytes wait for the blob store, at most {limit} may: {why}");
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
        Box::pin(fetch::fetch(self.0.clone(), missing))
    }
}

impl Uploads for Tier {
    fn step(&self) -> Answer<'_, Rest> {
        Box::pin(async {
            let rest = match self.0.is_read_only() {
                true => lease::step(&self.0).await,
                false => upload::step(&self.0).await,
            };
            Ok(warm::step(&self.0, rest).await)
        })
    }

    fn warm(&self, next: Warming) {
        if self.0.options.warms {
            *self.0.warmer() = Some(Warmer::new(next));
            self.0.call_soon();
        }
    }

    fn finish(&self) -> Answer<'_, ()> {
        Box::pin(upload::finish(&self.0, None))
    }

    fn reach(&self, position: u64) -> Answer<'_, ()> {
        Box::pin(upload::finish(&self.0, Some(position)))
    }

    fn holds_commits(&self) -> bool {
        self.0.options.holds_commits && !self.0.is_read_only()
    }

    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>) {
        // Set once: a database is opened once over a store.
        self.0.wake.set(wake).ok();
    }

    fn position(&self) -> u64 {
        Tier::position(self)
    }

    fn advance(&self, from: u64) -> Answer<'_, bool> {
        Box::pin(async move {
            if !self.0.is_read_only() || self.0.is_past {
                return Ok(false);
            }
            follow::advance(&self.0, from).await
        })
    }

    fn note_reads(&self, from: u64) {
        if self.0.is_read_only() {
            lease::note_needs(&self.0, from);
        }
    }

    fn close(&self) -> Answer<'_, ()> {
        match self.0.is_read_only() {
            true => Box::pin(lease::release(&self.0)),
            false => Box::pin(upload::finish(&self.0, None)),
        }
    }

    fn lag(&self) -> Lag {
        follow::lag(&self.0)
    }

    fn reads(&self) -> BlobReads {
        self.0.blob_reads()
    }
}
