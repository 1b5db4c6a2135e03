//! Documents read, deleted and updated by key: the orders of "SingleStore Universal Storage 8.0",
//! appendix 1, with random articles. Nacre stores them as columns of their paths; SQLite as text by row
//! id, DuckDB as text with a primary key.

use crate::duckdb::{Connection, DuckDb};
use crate::measure::{Folder, Outcome, check, folder_bytes, median, open, open_sqlite, seconds};
use crate::options::Options;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, DataType, Database, OnDuplicate, Value, VectorBuilder};
use std::path::Path;
use std::sync::Arc;

const READS: usize = 5_000;
/// DuckDB reads a whole row group for a row.
const READS_DUCKDB: usize = 50;
const CHANGES: usize = 40;
const BATCH_ROWS: usize = 8_192;
const SELECT: &str = "select id, order_doc from orders where id = ?";

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 8_388_608)?;
    let rounds: usize = options.get("rounds", 5)?;
    let folder = Folder::new("json-seek")?;
    println!("loading {rows} documents into Nacre, SQLite and DuckDB");
    let settings = nacredb::Options { cache_bytes: 4 << 30, ..nacredb::Options::default() };
    let db = open(&folder.join("nacre"), settings)?;
    fill(&db, rows)?;
    let sqlite = sqlite(&folder.join("sqlite.db"), rows)?;
    let duck = DuckDb::open(&folder.join("duck.db"), 1)?;
    let duck = duck.connect()?;
    fill_duckdb(&duck, rows)?;
    let parquet = folder.join("orders.parquet");
    let copy = "copy (select * from orders order by id) to";
    duck.execute(&format!("{copy} '{}' (format parquet)", parquet.display()))?;

    let (ours_bytes, file) = (folder_bytes(&folder.join("nacre"))?, |path: &Path| {
        Ok::<f64, std::io::Error>(std::fs::metadata(path)?.len() as f64)
    });
    let over_parquet = ours_bytes as f64 / file(&parquet)?;
    let over_sqlite = ours_bytes as f64 / file(&folder.join("sqlite.db"))?;

    let mut session = db.session();
    let select = session.prepare(SELECT)?;
    let mut theirs = sqlite.prepare(SELECT)?;
    let [mut nacre, mut lite, mut ducks, mut scans]: [Vec<f64>; 4] = Default::default();
    for round in 0..=rounds as u64 {
        let key = |random: &mut Random| 1 + random.below(rows as u64) as i64;
        let mut random = Random::new(round);
        let ours = seconds(|| {
            for _ in 0..READS {
                let id = key(&mut random);
                let row = session.get(&select, &[Value::Int(id)])?.unwrap_or_default();
                is_order(id, row.get(1).map(ToString::to_string).as_deref())?;
            }
            Ok(())
        })?;
        let mut random = Random::new(round);
        let sqlites = seconds(|| {
            for _ in 0..READS {
                let id = key(&mut random);
                let text: String = theirs.query_row([id], |row| row.get(1))?;
                is_order(id, Some(&text))?;
            }
            Ok(())
        })?;
        let mut random = Random::new(round);
        let duckdbs = seconds(|| {
            for _ in 0..READS_DUCKDB {
                let id = key(&mut random);
                let found = duck.rows(&SELECT.replace('?', &id.to_string()))?;
                is_order(id, found.first().and_then(|row| row[1].as_deref()))?;
            }
            Ok(())
        })?;
        // What a read would take that has to go through the documents of a segment.
        let segment_rows = rows.min(1 << 20);
        let scan =
            format!("select max(length(order_doc::text)) from orders where id <= {segment_rows}");
        let scanned = seconds(|| {
            block_on(session.execute(&scan, &[]))?;
            Ok(())
        })?;
        // The first round warms up.
        if round > 0 {
            nacre.push(ours / READS as f64);
            lite.push(sqlites / READS as f64);
            ducks.push(duckdbs / READS_DUCKDB as f64);
            scans.push(scanned);
        }
    }
    let [nacre, lite, ducks, scan] =
        [nacre, lite, ducks, scans].map(|mut times| median(&mut times));
    println!(
        "read one: nacre {:.1} µs, sqlite {:.1} µs, duckdb {:.1} µs; all documents of a segment {:.0} ms",
        nacre * 1e6,
        lite * 1e6,
        ducks * 1e6,
        scan * 1e3
    );
    let change = |sql: &str| -> Outcome<f64> {
        let mut session = db.session();
        let statement = session.prepare(sql)?;
        let mut times = Vec::new();
        for at in 0..CHANGES as i64 {
            let id = Value::Int(1 + at * (rows / CHANGES as i64) + i64::from(sql.starts_with('u')));
            let taken = seconds(|| {
                block_on(session.run(&statement, &[id]))?;
                Ok(())
            })?;
            times.push(taken * 1e3);
        }
        Ok(median(&mut times))
    };
    let delete_ms = change("delete from orders where id = ?")?;
    let update =
        "update orders set order_doc = json_set(order_doc, '$.time', 'later') where id = ?";
    let update_ms = change(update)?;
    check(&db)?;
    println!(
        "json-seek: seek_over_scan={:.0} delete_ms={delete_ms:.2} update_ms={update_ms:.2} ratio_sqlite={:.2} \
         ratio_duckdb={:.1} bytes_over_parquet={over_parquet:.2} bytes_over_sqlite={over_sqlite:.2}",
        scan / nacre,
        lite / nacre,
        ducks / nacre,
    );
    Ok(())
}

/// The document of an order: three articles, with random numbers and names.
fn order(id: i64) -> String {
    let mut random = Random::new(id as u64);
    let mut items = String::new();
    for line in 1..=3 {
        let (sku, qty) = (random.below(10_000_000), 1 + random.below(3));
        let (a, b) = (random.bits(), random.bits());
        let name = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 50),
            b & 0xffff_ffff_ffff
        );
        let comma = if line > 1 { "," } else { "" };
        items += &format!(
            r#"{comma}{{"line_num":{line},"SKU":{sku},"description":"{name}","qty":{qty}}}"#
        );
    }
    let (hour, minute, second) = (id / 3_600 % 24, id / 60 % 60, id % 60);
    let time = format!("2022-11-17 {hour:02}:{minute:02}:{second:02}");
    format!(r#"{{"id":{id},"time":"{time}","lineitems":[{items}]}}"#)
}

fn is_order(id: i64, found: Option<&str>) -> Outcome<()> {
    match found {
        Some(text) if text == order(id) => Ok(()),
        found => Err(format!("order {id} is {found:?}").into()),
    }
}

/// Some orders as a batch, with documents of a type.
fn batch(ids: std::ops::Range<i64>, document: DataType) -> Batch {
    let count = (ids.end - ids.start) as usize;
    let mut numbers = VectorBuilder::new(DataType::Int64);
    let mut documents = VectorBuilder::new(document);
    for id in ids {
        numbers.push_i64(id);
        documents.push_bytes(order(id).as_bytes());
    }
    Batch::new(vec![Arc::new(numbers.finish()), Arc::new(documents.finish())], count)
}

fn batches(rows: i64, document: DataType) -> impl Iterator<Item = Batch> {
    let starts = (1..=rows).step_by(BATCH_ROWS);
    starts.map(move |start| batch(start..(start + BATCH_ROWS as i64).min(rows + 1), document))
}

fn fill(db: &Database, rows: i64) -> Outcome<()> {
    let mut session = db.session();
    let create =
        "create table orders (id bigint primary key, order_doc json not null, sort key (id))";
    block_on(session.execute(create, &[]))?;
    let mut appender = block_on(session.appender("orders", OnDuplicate::Error))?;
    for batch in batches(rows, DataType::Json) {
        appender.append(&batch)?;
    }
    block_on(appender.finish())?;
    block_on(session.execute("optimize table orders full", &[]))?;
    Ok(())
}

fn sqlite(path: &Path, rows: i64) -> Outcome<rusqlite::Connection> {
    let mut connection = open_sqlite(path)?;
    connection.execute("create table orders (id integer primary key, order_doc text)", [])?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("insert into orders values (?, ?)")?;
        for id in 1..=rows {
            insert.execute((id, order(id)))?;
        }
    }
    transaction.commit()?;
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
    connection.pragma_update(None, "cache_size", -4_000_000)?;
    connection.pragma_update(None, "mmap_size", 8u64 << 30)?;
    Ok(connection)
}

fn fill_duckdb(duck: &Connection, rows: i64) -> Outcome<()> {
    duck.execute("create table orders (id bigint primary key, order_doc varchar)")?;
    let mut appender = duck.appender("orders", &[DataType::Int64, DataType::TEXT])?;
    for batch in batches(rows, DataType::TEXT) {
        appender.append(&batch)?;
    }
    appender.finish()?;
    duck.execute("checkpoint")?;
    Ok(())
}
