//! Prepared statements.

use nacre_session::PreparedStatement;
use nacre_sql::Field;
use nacre_types::{DataType, Result, TableId, Value};

/// A statement parsed and bound once, by [`crate::Session::prepare`]. Cheap to clone.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options, Value};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// let by_name = session.prepare("select id from items where name = ?")?;
/// for name in ["pearl", "shell"] {
///     let result = session.run(&by_name, &[Value::Text(name.into())]).await?;
///     println!("{name}: {:?}", result.row(0));
/// }
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Prepared(PreparedStatement);

impl Prepared {
    pub(crate) fn new(statement: PreparedStatement) -> Prepared {
        Prepared(statement)
    }

    pub(crate) fn statement(&self) -> &PreparedStatement {
        &self.0
    }

    /// Columns of its result; empty if it returns no rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = ?")?;
    /// assert_eq!(by_id.columns()[0].name, "name");
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn columns(&self) -> Vec<Field> {
        self.0.columns()
    }

    /// How often it was bound again since it was prepared, because the catalog or the types of its
    /// parameters had changed. As long as this stays, so do its columns.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// session.execute("create table items (id bigint primary key)", &[]).await?;
    /// let all = session.prepare("select * from items")?;
    /// assert_eq!((all.rebindings(), all.columns().len()), (0, 1));
    /// session.execute("alter table items add column name text", &[]).await?;
    /// session.run(&all, &[]).await?;
    /// assert_eq!((all.rebindings(), all.columns().len()), (1, 2));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn rebindings(&self) -> u64 {
        self.0.rebindings()
    }

    /// Types of its parameters, as far as the statement determines them.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{DataType, Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = ?")?;
    /// assert_eq!(by_id.parameters(), [DataType::Int64]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn parameters(&self) -> Vec<DataType> {
        self.0.parameters()
    }

    /// Names of its parameters: `None` for `?` and `$1`.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = :id")?;
    /// assert_eq!(by_id.parameter_names(), [Some("id".to_string())]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn parameter_names(&self) -> Vec<Option<String>> {
        self.0.parameter_names()
    }

    /// Arranges named parameters (`:name`; without the colon) in the statement's order.
    ///
    /// Errors: `type` if one is missing.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = :id")?;
    /// let parameters = by_id.named(&[("id".to_string(), Value::Int(1))])?;
    /// assert_eq!(session.run(&by_id, &parameters).await?.rows(), 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn named(&self, parameters: &[(String, Value)]) -> Result<Vec<Value>> {
        self.0.named(parameters)
    }

    /// The tables that a query reads, for [`crate::Database::newest_change`].
    ///
    /// Errors: `unsupported` for any other statement.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// let count = session.prepare("select count(*) from items")?;
    /// let seen = db.newest_change(&count.tables()?);
    /// session.execute("insert into items values (1, 'pearl')", &[]).await?;
    /// assert!(db.newest_change(&count.tables()?) > seen);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn tables(&self) -> Result<Vec<TableId>> {
        self.0.tables()
    }
}
