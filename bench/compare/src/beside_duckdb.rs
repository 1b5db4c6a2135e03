//! Queries that Nacre and DuckDB run on the same data, interleaved, with one thread and with two.
//! A query that does not run is named and omitted from the means; the number of queries that ran
//! is printed.

use crate::duckdb::{self, DuckDb};
use crate::measure::{Folder, Outcome, check, median, timed};
use crate::tpch_data::ddl_without_key;
use nacre_native::block_on;
use nacredb::{Batch, DataType, Database, OnDuplicate, Session, Value};
use std::sync::Arc;

/// A query: its name and its text.
pub type Query = (String, String);

/// Nacre and DuckDB, each with one database in a folder of its own.
pub struct Beside {
    /// Dropped after the databases.
    _folder: Folder,
    db: Database,
    pub session: Session,
    pub connection: duckdb::Connection,
    _peer: Arc<DuckDb>,
}

/// How answers are compared before anything is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// By their number of rows; tests compare the values.
    Counts,
    /// By all values, in any order.
    Rows,
}

/// Time of Nacre over time of DuckDB, a value a query, for one thread and for two.
pub type Ratios = [Vec<f64>; 2];

impl Beside {
    /// Opens both. Nacre's cache keeps the data in memory once it is warm; DuckDB may use most of
    /// the machine's.
    pub fn open(name: &str) -> Outcome<Beside> {
        let folder = Folder::new(name)?;
        let host = nacre_native::open_folder(&folder.join("nacre"))?;
        let settings = nacredb::Options { cache_bytes: 4 << 30, ..nacredb::Options::default() };
        let db = block_on(Database::open(host, settings))?;
        let peer = DuckDb::open(&folder.join("duckdb.db"), 2)?;
        let (session, connection) = (db.session(), peer.connect()?);
        Ok(Beside { _folder: folder, db, session, connection, _peer: peer })
    }

    /// Creates a table in both, without its key in DuckDB, and loads the same batches. `batch` makes
    /// the rows of a range.
    pub fn load(
        &mut self,
        name: &str,
        ddl: &str,
        rows: i64,
        batch: impl Fn(std::ops::Range<i64>, &[DataType]) -> Batch,
    ) -> Outcome<()> {
        block_on(self.session.execute(ddl, &[]))?;
        self.connection.execute(&ddl_without_key(ddl))?;
        let mut ours = block_on(self.session.appender(name, OnDuplicate::Error))?;
        let types = ours.schema().types();
        let mut theirs = self.connection.appender(name, &types)?;
        for start in (0..rows).step_by(8_192) {
            let batch = batch(start..(start + 8_192).min(rows), &types);
            ours.append(&batch)?;
            theirs.append(&batch)?;
        }
        block_on(ours.finish())?;
        theirs.finish()
    }

    /// Writes both to their files in the order that each likes best.
    pub fn settle(&mut self, tables: &[&str]) -> Outcome<()> {
        for table in tables {
            block_on(self.session.execute(&format!("optimize table {table} full"), &[]))?;
        }
        self.connection.execute("checkpoint")?;
        Ok(())
    }

    /// Runs every query in both, in turns, after a round that warms up, and prints a line for each.
    pub fn compare(
        &mut self,
        queries: &[Query],
        rounds: usize,
        compare: Compare,
    ) -> Outcome<Ratios> {
        println!(
            "{:6} {:>7} {:>10} {:>10} {:>7}",
            "query", "threads", "nacre ms", "duckdb ms", "ratio"
        );
        let mut ratios = Ratios::default();
        let mut left_out = Vec::new();
        for (name, sql) in queries {
            if let Err(error) = block_on(self.session.execute(sql, &[])) {
                println!("{name:6} does not run: {error}");
                left_out.push(name.as_str());
                continue;
            }
            if compare == Compare::Rows {
                self.same_rows(name, sql)?;
            }
            for threads in [1, 2] {
                let (ours, theirs) = self.measure(name, sql, threads, rounds)?;
                println!(
                    "{name:6} {threads:>7} {ours:>10.1} {theirs:>10.1} {:>7.2}",
                    ours / theirs
                );
                ratios[threads - 1].push(ours / theirs);
            }
        }
        check(&self.db)?;
        println!(
            "{} of {} queries ran; left out: {}",
            ratios[0].len(),
            queries.len(),
            left_out.join(" ")
        );
        Ok(ratios)
    }

    /// Returns the median milliseconds of both.
    fn measure(
        &mut self,
        name: &str,
        sql: &str,
        threads: usize,
        rounds: usize,
    ) -> Outcome<(f64, f64)> {
        self.session.set_threads(threads);
        self.connection.execute(&format!("set threads to {threads}"))?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let (our_rows, our_seconds) =
                timed(|| Ok(block_on(self.session.execute(sql, &[]))?.rows() as u64))?;
            let (their_rows, their_seconds) = timed(|| self.connection.execute(sql))?;
            if our_rows != their_rows {
                return Err(format!("{name}: {our_rows} rows, DuckDB has {their_rows}").into());
            }
            if round > 0 {
                ours.push(our_seconds * 1e3);
                theirs.push(their_seconds * 1e3);
            }
        }
        Ok((median(&mut ours), median(&mut theirs)))
    }

    fn same_rows(&mut self, name: &str, sql: &str) -> Outcome<()> {
        let ours = block_on(self.session.execute(sql, &[]))?.to_rows();
        let mut ours: Vec<Vec<String>> =
            ours.iter().map(|row| row.iter().map(our_text).collect()).collect();
        let theirs = self.connection.rows(sql)?;
        let mut theirs: Vec<Vec<String>> = theirs
            .into_iter()
            .map(|row| row.into_iter().map(|v| v.map_or("NULL".into(), |v| rounded(&v))).collect())
            .collect();
        ours.sort();
        theirs.sort();
        match ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs) {
            Some((ours, theirs)) => Err(format!("{name}: {ours:?}, DuckDB has {theirs:?}").into()),
            None if ours.len() != theirs.len() => {
                Err(format!("{name}: {} rows, DuckDB has {}", ours.len(), theirs.len()).into())
            }
            None => Ok(()),
        }
    }
}

fn our_text(value: &Value) -> String {
    if value.is_null() { "NULL".into() } else { rounded(&value.to_string()) }
}

/// Numbers with a fraction to six digits, since sums of reals depend on their order and means of
/// integers are decimals in Nacre; times without zeroes at their end, which DuckDB leaves out.
fn rounded(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if text.contains(['.', 'e']) => format!("{number:.5e}"),
        Err(_) if is_time(text) => text.trim_end_matches('0').to_string(),
        _ => text.to_string(),
    }
}

fn is_time(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(whole, fraction)| {
        whole.contains(':') && fraction.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The queries of a file: each follows a line `-- name`.
pub fn parse(text: &str) -> Vec<Query> {
    let mut queries: Vec<Query> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("-- "), queries.last_mut()) {
            (Some(name), _) => queries.push((name.to_string(), String::new())),
            (None, Some((_, sql))) => {
                sql.push_str(line.trim_end_matches(';'));
                sql.push('\n');
            }
            (None, None) => {}
        }
    }
    queries
}

/// Like [`parse`], of the queries with these names, divided by commas; all if there are none.
pub fn parse_some(text: &str, names: Option<&str>) -> Vec<Query> {
    let mut queries = parse(text);
    queries.retain(|(name, _)| names.is_none_or(|names| names.split(',').any(|n| n == name)));
    queries
}

/// Geometric mean.
pub fn geomean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// The worst ratio of all.
pub fn worst(ratios: &Ratios) -> f64 {
    ratios.iter().flatten().copied().fold(f64::NAN, f64::max)
}
