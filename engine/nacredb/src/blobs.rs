//! The settings of a database whose files are kept in a blob store.
//!
//! The code of the tiers is reached through [`Blobs::new`] only, so that a build without it has none.

use nacre_host::{BlobStore, Host, LocalStore, Uploads};
use nacre_tier::{Tier, TierOptions};
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
pub struct Attach(for<'a> fn(&'a Host, &'a Blobs, bool) -> Attaching<'a>);

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
            attach: Attach(|host, blobs, read_only| Box::pin(attach(host, blobs, read_only))),
        }
    }

    pub(crate) async fn attach(&self, host: &Host, read_only: bool) -> Result<Attached> {
        (self.attach.0)(host, self, read_only).await
    }
}

async fn attach(host: &Host, blobs: &Blobs, read_only: bool) -> Result<Attached> {
    let options = blobs.options.clone();
    let tier = match read_only {
        true => Tier::open_to_read(host, blobs.store.clone(), options).await?,
        false => Tier::open(host, blobs.store.clone(), options).await?,
    };
    Ok((tier.clone(), tier))
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("options", &self.options).finish_non_exhaustive()
    }
}
