//! The settings of a database whose files are kept in a blob store.
//!
//! The code of the tiers is reached through [`Blobs::new`] only, so that a build without it has none.

use nacre_host::{BlobStore, Host, LocalStore, Uploads};
use nacre_tier::{AsOf, Place, Tier, TierOptions};
use nacre_types::Result;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The local store and the uploads of an attached database.
pub(crate) type Attached = (Arc<dyn LocalStore>, Arc<dyn Uploads>);

/// How a host's files are attached to blobs.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Attach(for<'a> fn(&'a Host, &'a Blobs, BlobAccess) -> Attaching<'a>);

/// What a database does with its blobs.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum BlobAccess {
    /// It is their writer.
    Write,
    /// It shows the newest upload.
    Read,
    /// It shows a state of the past.
    ReadAsOf(AsOf),
}

type Attaching<'a> = Pin<Box<dyn Future<Output = Result<Attached>> + 'a>>;

/// Where the files of a database are kept beside the local disk, and how. What is committed is uploaded in the
/// background; commits do not wait for it, unless [`TierOptions::holds_commits`].
///
/// ```
/// # use nacre_native::{NativeClock, block_on, memory_host};
/// # use nacre_testing::MemoryBlobs;
/// # use nacredb::{Blobs, Database, Options, Value};
/// # use std::sync::Arc;
/// # block_on(async {
/// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
/// let blobs = Blobs::new(store);
/// let options = Options { blobs: Some(blobs), ..Options::default() };
/// let db = Database::open(memory_host(), options.clone()).await?;
/// db.session().execute("create table t (id bigint primary key)", &[]).await?;
/// db.session().execute("insert into t values (1)", &[]).await?;
/// db.close().await?;
///
/// // Another machine, whose disk is empty.
/// let db = Database::open(memory_host(), options).await?;
/// let count = db.session().execute("select count(*) from t", &[]).await?;
/// assert_eq!(count.to_rows()[0][0], Value::Int(1));
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Blobs {
    /// The blob store. One place holds one database.
    pub store: Arc<dyn BlobStore>,
    /// Its settings.
    pub options: TierOptions,
    /// Where bytes are kept that a database fetches which is only read: an empty store. In memory if `None`.
    pub cache: Option<Arc<dyn LocalStore>>,
    /// The code of the tiers, which [`Blobs::new`] brings.
    #[doc(hidden)]
    pub attach: Attach,
}

impl Blobs {
    /// The default settings with a blob store.
    pub fn new(store: Arc<dyn BlobStore>) -> Blobs {
        Blobs {
            store,
            options: TierOptions::default(),
            cache: None,
            attach: Attach(|host, blobs, access| Box::pin(attach(host, blobs, access))),
        }
    }

    pub(crate) async fn attach(&self, host: &Host, access: BlobAccess) -> Result<Attached> {
        (self.attach.0)(host, self, access).await
    }

    /// Writes the state of the database at a point in time, or the newest one, to the store of a host, which must
    /// be empty. It is an ordinary database then, without blobs. Returns its position in the log. States begin
    /// with the first upload.
    ///
    /// Errors: `not_found` if the blobs do not have that state, any more or yet; `already_exists` if the store is
    /// not empty; `unavailable`, `io`, `corrupt`. Nothing that was written stays then.
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{AsOf, Blobs, Database, Options};
    /// # use std::sync::Arc;
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let blobs = Blobs::new(store);
    /// let options = Options { blobs: Some(blobs.clone()), ..Options::default() };
    /// let db = Database::open(memory_host(), options).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.upload().await?;
    /// let before = db.log_position();
    /// db.session().execute("drop table t", &[]).await?;
    /// db.close().await?;
    ///
    /// let folder = memory_host();
    /// blobs.restore(&folder, Some(AsOf::Position(before))).await?;
    /// let db = Database::open(folder, Options::default()).await?;
    /// db.session().execute("insert into t values (1)", &[]).await?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn restore(&self, host: &Host, at: Option<AsOf>) -> Result<u64> {
        host.store.prepare().await?;
        nacre_tier::restore(host, self.store.clone(), self.options.clone(), at).await
    }

    /// Makes a branch of the database, as it was at a point in time or is now, in other blobs without a database.
    /// Both can be written then. Only a manifest is written: what they have in common is read where it is, so the
    /// branch's blob store must reach `url` ([`BlobStore::elsewhere`]). Returns the position in the log at which it
    /// begins.
    ///
    /// Errors: `not_found` if there is no such database or state; `already_exists` if the other blobs have a database;
    /// `unavailable`, `io`, `corrupt`.
    pub async fn branch(
        &self,
        host: &Host,
        url: &str,
        (to, to_url): (&Blobs, &str),
        at: Option<AsOf>,
    ) -> Result<u64> {
        let from = Place { blobs: self.store.clone(), url };
        let to = Place { blobs: to.store.clone(), url: to_url };
        nacre_tier::branch(host, &from, &to, &self.options, at).await
    }

    /// Removes a branch with all of its blobs, and what its origin has kept for it. Nothing may have it open.
    ///
    /// Errors: `not_found` if there is no database; `unsupported` if it is no branch; `in_use` if there are branches
    /// of it; `unavailable`, `io`, `corrupt`.
    pub async fn drop_branch(&self, url: &str) -> Result<()> {
        nacre_tier::drop_branch(&Place { blobs: self.store.clone(), url }).await
    }
}

async fn attach(host: &Host, blobs: &Blobs, access: BlobAccess) -> Result<Attached> {
    let (store, options) = (blobs.store.clone(), blobs.options.clone());
    let tier = match access {
        BlobAccess::Write => Tier::open(host, store, options).await?,
        BlobAccess::Read => Tier::open_to_read(host, store, options).await?,
        BlobAccess::ReadAsOf(at) => Tier::open_as_of(host, store, options, at).await?,
    };
    Ok((tier.clone(), tier))
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("options", &self.options).finish_non_exhaustive()
    }
}
