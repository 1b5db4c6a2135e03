//! Uploads of a database with [`Options::blobs`](crate::Options::blobs).

use crate::database::Database;
use core::time::Duration;
use nacre_host::{BlobReads, Lag, Rest};
use nacre_types::Result;

impl Database {
    /// Position of the log up to which everything is in the blob store: what the loss of the local disk leaves.
    /// `None` of a database without [`Options::blobs`](crate::Options::blobs).
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// let db = Database::open(memory_host(), Options::default()).await?;
    /// assert_eq!(db.uploaded_position(), None);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn uploaded_position(&self) -> Option<u64> {
        self.engine().uploads().map(|uploads| uploads.position())
    }

    /// What is known of the newest upload: its position in the log, when it was written, and how long ago it
    /// was known to be the newest. Of a database that is only read, it shows this upload since the last
    /// [`Database::refresh`]. `None` of a database without [`Options::blobs`](crate::Options::blobs).
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{Blobs, Database, Options};
    /// # use std::sync::Arc;
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let options = Options { blobs: Some(Blobs::new(store)), ..Options::default() };
    /// let db = Database::open(memory_host(), options.clone()).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.upload().await?;
    ///
    /// let reader = Options { read_only: true, ..options };
    /// let reader = Database::open(memory_host(), reader).await?;
    /// let lag = reader.lag().unwrap();
    /// assert_eq!(lag.position, db.log_position());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn lag(&self) -> Option<Lag> {
        self.engine().uploads().map(|uploads| uploads.lag())
    }

    /// Waits until what this database shows has reached a position of the log, such as another instance's
    /// [`Database::log_position`] after a commit: refreshes a database that is only read, at intervals.
    ///
    /// Errors: `unavailable` if that takes longer than the timeout; those of [`Database::refresh_async`], but
    /// `unavailable`.
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{Blobs, Database, Options};
    /// # use std::{sync::Arc, time::Duration};
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let options = Options { blobs: Some(Blobs::new(store)), ..Options::default() };
    /// let db = Database::open(memory_host(), options.clone()).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.upload().await?;
    ///
    /// let reader = Options { read_only: true, ..options };
    /// let reader = Database::open(memory_host(), reader).await?;
    /// db.session().execute("insert into t values (1)", &[]).await?;
    /// reader.wait_for(db.log_position(), Duration::from_secs(30)).await?;
    /// let rows = reader.session().execute("select * from t", &[]).await?;
    /// assert_eq!(rows.to_rows().len(), 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait_for(&self, position: u64, timeout: Duration) -> Result<()> {
        self.engine().wait_for(position, timeout, &|| false).await
    }

    /// What was read of files whose bytes were not on the local disk, since the database was opened: requests,
    /// bytes, waits and hits. `None` of a database without [`Options::blobs`](crate::Options::blobs).
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{Blobs, Database, Options};
    /// # use std::sync::Arc;
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let options = Options { blobs: Some(Blobs::new(store)), ..Options::default() };
    /// let db = Database::open(memory_host(), options).await?;
    /// assert_eq!(db.blob_reads().unwrap().requests, 0);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn blob_reads(&self) -> Option<BlobReads> {
        self.engine().uploads().map(|uploads| uploads.reads())
    }

    /// Uploads everything that was committed before, without waiting for
    /// [`TierOptions::lag`](crate::TierOptions::lag). Does nothing in a database without blobs.
    ///
    /// Errors: `unavailable` if the blob store is away; `in_use` if another writer has taken over the blobs;
    /// `io`, `closed`.
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{Blobs, Database, Options};
    /// # use std::sync::Arc;
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let blobs = Some(Blobs::new(store));
    /// let db = Database::open(memory_host(), Options { blobs, ..Options::default() }).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.upload().await?;
    /// assert_eq!(db.uploaded_position(), Some(db.log_position()));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn upload(&self) -> Result<()> {
        let Some(uploads) = self.engine().uploads() else { return Ok(()) };
        self.flush()?;
        uploads.finish().await
    }

    /// Does a piece of the uploads that are due, and says when to call again. For hosts whose threads cannot
    /// block: others have a thread for it.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, host::Rest};
    /// # block_on(async {
    /// let db = Database::open(memory_host(), Options::default()).await?;
    /// assert_eq!(db.upload_step().await?, Rest::UntilWoken);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn upload_step(&self) -> Result<Rest> {
        match self.engine().uploads() {
            Some(uploads) => uploads.step().await,
            None => Ok(Rest::UntilWoken),
        }
    }
}
