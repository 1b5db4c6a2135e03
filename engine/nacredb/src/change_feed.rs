//! The changes of a table since the last call.

use crate::result::QueryResult;
use nacre_types::{Result, TableId};

/// Follows the rows of a table, from commits of all sessions; see
/// [`Database::change_feed`](crate::Database::change_feed). Keeps a snapshot, as an open transaction does:
/// call it often, or drop it.
pub struct ChangeFeed(pub(crate) nacre_session::TableChanges);

impl ChangeFeed {
    /// The rows that differ from those of the last call, by key. The first column, `change`, is
    /// `insert`, `update` or `delete`; the others are those of the table, of a deleted row the old
    /// ones. A row that changed several times is there once, and one that is as it was is not. After
    /// an error the feed is where it was.
    ///
    /// Errors: `not_found` if the table was dropped, `conflict` if its columns were changed or it was
    /// truncated, `limit` if a million rows have changed: read the table, and begin anew. `io`,
    /// `closed`.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// session.execute("create table t (id bigint primary key, n int)", &[]).await?;
    /// session.execute("insert into t values (1, 0)", &[]).await?;
    /// let mut feed = db.change_feed("t")?;
    /// session.execute("update t set n = n + 1", &[]).await?;
    /// session.execute("update t set n = n + 1", &[]).await?;
    /// let update = [Value::Text("update".into()), Value::Int(1), Value::Int(2)];
    /// assert_eq!(feed.next().await?.row(0), update);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Result<QueryResult> {
        self.0.next().await.map(QueryResult::from)
    }

    /// The table, for [`Database::newest_change`](crate::Database::newest_change).
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// session.execute("create table t (id bigint primary key)", &[]).await?;
    /// let feed = db.change_feed("t")?;
    /// let seen = db.newest_change(&[feed.table()]);
    /// session.execute("insert into t values (1)", &[]).await?;
    /// assert!(db.newest_change(&[feed.table()]) > seen);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn table(&self) -> TableId {
        self.0.table()
    }
}
