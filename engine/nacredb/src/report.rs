//! Storage reports of tables, returned by [`Database::inspect`].

use crate::database::Database;
use nacre_table::{PathMeta, RunSegments, SegmentState, Table, hidden_column};
use nacre_types::{DataType, Result, Value};

/// Storage report of a table.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// session.execute("optimize table items flush", &[]).await?;
/// let table = &db.inspect()?[0];
/// assert_eq!((table.name.as_str(), table.segments.len()), ("items", 1));
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct TableReport {
    /// Name.
    pub name: String,
    /// Number of rows, approximate.
    pub rows: u64,
    /// Nodes in the rowstore, including tombstones and old versions not yet freed.
    pub rowstore_rows: u64,
    /// Bytes of the rowstore.
    pub rowstore_bytes: u64,
    /// Names of the primary key's columns; empty if rows have hidden numbers.
    pub primary_key: Vec<String>,
    /// Columns, aggregated over all segments.
    pub columns: Vec<ColumnReport>,
    /// Number of sorted runs of segments, over all partitions.
    pub runs: u64,
    /// Segments, by run, oldest run first.
    pub segments: Vec<SegmentReport>,
}

/// Storage report of a column over all segments.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// session.execute("optimize table items flush", &[]).await?;
/// for column in &db.inspect()?[0].columns {
///     println!("{}: {} of {} bytes", column.name, column.bytes, column.raw_bytes);
/// }
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ColumnReport {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Bytes in segments.
    pub bytes: u64,
    /// Bytes of the same values without encoding.
    pub raw_bytes: u64,
    /// Encodings and the number of segments that use each.
    pub encodings: Vec<(String, usize)>,
    /// Of JSON: the columns into which its documents are taken apart.
    pub paths: Vec<PathReport>,
}

/// Storage report of a path of a JSON column over all segments.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table n (n int); insert into n values (1), (2), (3), (4), (5), (6), (7)", &[]).await?;
/// session.execute("create table docs (id int primary key, doc json)", &[]).await?;
/// let row = "a.n * 49 + b.n * 7 + c.n as id";
/// let document = "('{\"nr\": ' || cast(id as text) || ', \"tags\": [\"a\", \"b\"]}')::json";
/// let rows = format!("select id, {document} from (select {row} from n as a, n as b, n as c) as t");
/// session.execute(&format!("insert into docs {rows}; optimize table docs full"), &[]).await?;
/// let tables = db.inspect()?;
/// let docs = tables.iter().find(|table| table.name == "docs").unwrap();
/// let of = |path: &str| docs.columns[1].paths.iter().find(|p| p.path == path).unwrap();
/// assert_eq!((of(".nr").kind.as_str(), of(".tags[]").kind.as_str()), ("integer", "string"));
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Where the values are in documents, as `.a[].b`; empty for whole documents.
    pub path: String,
    /// What is stored of them: `integer`, `string`, the `shape` of objects, and so on.
    pub kind: String,
    /// Bytes in segments.
    pub bytes: u64,
    /// Encodings and the number of segments that use each.
    pub encodings: Vec<(String, usize)>,
}

/// Storage report of a segment.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// session.execute("optimize table items flush", &[]).await?;
/// let segment = &db.inspect()?[0].segments[0];
/// assert_eq!((segment.rows, segment.min_key.as_str(), segment.max_key.as_str()), (2, "1", "2"));
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Id.
    pub id: u64,
    /// File name.
    pub name: String,
    /// Number of its sorted run. Segments of a run do not overlap in the order of their rows.
    pub run: u64,
    /// Level of the run: how often its rows were merged, counting large runs as merged before.
    pub level: u8,
    /// Number of rows, including deleted ones.
    pub rows: u64,
    /// Number of deleted rows.
    pub deleted: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Smallest value of the first key column; empty without a primary key.
    pub min_key: String,
    /// Largest value of the first key column.
    pub max_key: String,
    /// Columns in file order.
    pub columns: Vec<SegmentColumnReport>,
}

/// Storage report of a column in a segment.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// session.execute("optimize table items flush", &[]).await?;
/// for column in &db.inspect()?[0].segments[0].columns {
///     println!("{}: {} in {} bytes", column.name, column.encoding, column.bytes);
/// }
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SegmentColumnReport {
    /// Column name; in parentheses, as `(row number)`, if it is not a column of the table.
    pub name: String,
    /// Encoding.
    pub encoding: String,
    /// Bytes.
    pub bytes: u64,
}

impl Database {
    /// Returns the storage report of every table.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// for table in db.inspect()? {
    ///     println!("{}: {} rows, {} segments", table.name, table.rows, table.segments.len());
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn inspect(&self) -> Result<Vec<TableReport>> {
        self.engine().store().tables().iter().map(|t| table_report(t)).collect()
    }
}

fn table_report(table: &Table) -> Result<TableReport> {
    let schema = table.schema();
    let runs = table.runs();
    let states = || runs.iter().flat_map(|run| &run.segments);
    let columns = schema
        .columns
        .iter()
        .map(|column| {
            let mut report = ColumnReport {
                name: column.name.clone(),
                data_type: column.data_type,
                nullable: column.nullable,
                bytes: 0,
                raw_bytes: 0,
                encodings: Vec::new(),
                paths: Vec::new(),
            };
            for state in states() {
                let Some(index) = state.segment.column_index(column.id) else { continue };
                let stored = state.segment.columns()?;
                let Some(meta) = stored.get(index) else { continue };
                report.bytes += meta.bytes;
                report.raw_bytes += meta.raw_bytes;
                count(&mut report.encodings, meta.encoding);
                add_paths(&mut report.paths, state.segment.paths(index)?);
            }
            Ok(report)
        })
        .collect::<Result<_>>()?;
    let (rowstore_rows, rowstore_bytes) = table.rowstore_size();
    Ok(TableReport {
        name: schema.name.clone(),
        rows: table.row_count_estimate(),
        rowstore_rows: rowstore_rows as u64,
        rowstore_bytes: rowstore_bytes as u64,
        primary_key: table
            .key_columns()
            .map(|key| key.iter().map(|c| schema.columns[*c].name.clone()).collect())
            .unwrap_or_default(),
        columns,
        runs: runs.len() as u64,
        segments: runs
            .iter()
            .flat_map(|run| run.segments.iter().map(|state| segment_report(table, run, state)))
            .collect::<Result<_>>()?,
    })
}

/// Counts a segment that uses an encoding.
fn count(encodings: &mut Vec<(String, usize)>, encoding: &str) {
    match encodings.iter_mut().find(|(name, _)| name == encoding) {
        Some((_, count)) => *count += 1,
        None => encodings.push((encoding.to_string(), 1)),
    }
}

/// Adds the paths of a segment.
fn add_paths(reports: &mut Vec<PathReport>, paths: Vec<PathMeta>) {
    for PathMeta { path, kind, encoding, bytes, .. } in paths {
        let known = reports.iter().position(|report| report.path == path && report.kind == kind);
        let at = known.unwrap_or_else(|| {
            let (kind, encodings) = (kind.to_string(), Vec::new());
            reports.push(PathReport { path, kind, bytes: 0, encodings });
            reports.len() - 1
        });
        reports[at].bytes += bytes;
        count(&mut reports[at].encodings, encoding);
    }
}

fn segment_report(table: &Table, run: &RunSegments, state: &SegmentState) -> Result<SegmentReport> {
    let schema = table.schema();
    let segment = &state.segment;
    let stored = segment.columns()?;
    let bound = |pick: fn(&(Value, Value)) -> &Value| {
        let key = table.key_columns().and_then(|k| k.first()).and_then(|c| schema.columns.get(*c));
        let meta = key.and_then(|c| segment.column_index(c.id)).and_then(|index| stored.get(index));
        meta.map_or(String::new(), |m| pick(&(m.min.clone(), m.max.clone())).to_string())
    };
    Ok(SegmentReport {
        id: segment.id(),
        name: segment.name().to_string(),
        run: run.number,
        level: run.level,
        rows: segment.rows() as u64,
        deleted: state.deleted_rows(),
        bytes: segment.bytes(),
        min_key: bound(|b| &b.0),
        max_key: bound(|b| &b.1),
        columns: stored
            .iter()
            .map(|meta| SegmentColumnReport {
                name: schema
                    .columns
                    .iter()
                    .find(|c| c.id == meta.id)
                    .map_or(hidden_column(meta.id), |c| &c.name)
                    .to_string(),
                encoding: meta.encoding.to_string(),
                bytes: meta.bytes,
            })
            .collect(),
    })
}
