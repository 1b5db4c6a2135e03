//! Sums and groups over properties of documents and over the line items in them: documents stored
//! as columns of their paths, beside the same data as ordinary columns, DuckDB on its JSON and on
//! structs, and SQLite on text.

use crate::beside_duckdb::geomean;
use crate::duckdb::{Connection, DuckDb};
use crate::measure::{Folder, Outcome, check, median, open, open_sqlite, seconds};
use crate::options::Options;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, DataType, Database, OnDuplicate, Session, Value, VectorBuilder};
use std::path::Path;
use std::sync::Arc;

const BATCH_ROWS: usize = 8_192;
const ITEMS: i64 = 3;
const STATES: [&str; 5] = ["open", "paid", "packed", "sent", "returned"];

/// One question in the words of each.
struct Query {
    name: &'static str,
    documents: &'static str,
    columns: &'static str,
    duckdb_json: &'static str,
    duckdb_struct: &'static str,
    sqlite: &'static str,
}

const QUERIES: [Query; 6] = [
    Query {
        name: "sum",
        documents: "select sum((doc->>'customer.id')::bigint) from orders",
        columns: "select sum(customer_id) from plain",
        duckdb_json: "select sum((doc->>'$.customer.id')::bigint) from orders",
        duckdb_struct: "select sum(doc.customer.id) from structs",
        sqlite: "select sum(doc->>'$.customer.id') from orders",
    },
    Query {
        name: "group",
        documents: "select doc->>'status', count(*), sum((doc->>'total')::double) from orders
            group by doc->>'status'",
        columns: "select status, count(*), sum(total) from plain group by status",
        duckdb_json: "select doc->>'$.status', count(*), sum((doc->>'$.total')::double) from orders
            group by doc->>'$.status'",
        duckdb_struct: "select doc.status, count(*), sum(doc.total) from structs
            group by doc.status",
        sqlite: "select doc->>'$.status', count(*), sum(doc->>'$.total') from orders
            group by doc->>'$.status'",
    },
    Query {
        name: "filter",
        documents: "select count(*) from orders where doc->>'customer.city' = 'city 17'
            and doc->'total' > 500",
        columns: "select count(*) from plain where city = 'city 17' and total > 500",
        duckdb_json: "select count(*) from orders where doc->>'$.customer.city' = 'city 17'
            and (doc->>'$.total')::double > 500",
        duckdb_struct: "select count(*) from structs where doc.customer.city = 'city 17'
            and doc.total > 500",
        sqlite: "select count(*) from orders where doc->>'$.customer.city' = 'city 17'
            and doc->>'$.total' > 500",
    },
    Query {
        name: "cities",
        documents: "select doc->>'customer.city', max((doc->>'total')::double) from orders
            where (doc->>'id')::bigint % 10 = 0 group by doc->>'customer.city'",
        columns: "select city, max(total) from plain where id % 10 = 0 group by city",
        duckdb_json: "select doc->>'$.customer.city', max((doc->>'$.total')::double) from orders
            where (doc->>'$.id')::bigint % 10 = 0 group by doc->>'$.customer.city'",
        duckdb_struct: "select doc.customer.city, max(doc.total) from structs
            where doc.id % 10 = 0 group by doc.customer.city",
        sqlite: "select doc->>'$.customer.city', max(doc->>'$.total') from orders
            where doc->>'$.id' % 10 = 0 group by doc->>'$.customer.city'",
    },
    Query {
        name: "items",
        documents: "select sum(qty) from orders,
            json_table(doc, '$.lineitems[*]' columns (qty bigint path '$.qty')) i",
        columns: "select sum(qty) from items",
        duckdb_json: "select sum((i->>'$.qty')::bigint) from
            (select unnest(from_json(doc->'$.lineitems', '[\"JSON\"]')) i from orders)",
        duckdb_struct: "select sum(i.qty) from (select unnest(doc.lineitems) i from structs)",
        sqlite: "select sum(value->>'$.qty') from orders, json_each(doc, '$.lineitems')",
    },
    Query {
        name: "lines",
        documents: "select line, count(*), sum(sku) from orders, json_table(doc, '$.lineitems[*]'
            columns (line bigint path '$.line_num', sku bigint path '$.SKU')) i group by line",
        columns: "select line_num, count(*), sum(sku) from items group by line_num",
        duckdb_json: "select (i->>'$.line_num')::bigint, count(*), sum((i->>'$.SKU')::bigint) from
            (select unnest(from_json(doc->'$.lineitems', '[\"JSON\"]')) i from orders) group by 1",
        duckdb_struct: "select i.line_num, count(*), sum(i.\"SKU\") from
            (select unnest(doc.lineitems) i from structs) group by 1",
        sqlite: "select value->>'$.line_num', count(*), sum(value->>'$.SKU')
            from orders, json_each(doc, '$.lineitems') group by 1",
    },
];

/// What DuckDB makes structs of.
const STRUCTURE: &str = r#"{"id":"BIGINT","time":"VARCHAR","status":"VARCHAR",
    "customer":{"id":"BIGINT","city":"VARCHAR"},"total":"DOUBLE",
    "lineitems":[{"line_num":"BIGINT","SKU":"BIGINT","description":"VARCHAR","qty":"BIGINT"}]}"#;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 1_048_576)?;
    let rounds: usize = options.get("rounds", 5)?;
    let folder = Folder::new("json-scan")?;
    println!("loading {rows} documents into Nacre, SQLite and DuckDB");
    let settings = nacredb::Options { cache_bytes: 4 << 30, ..nacredb::Options::default() };
    let db = open(&folder.join("nacre"), settings)?;
    fill(&db, rows)?;
    let sqlite = sqlite(&folder.join("sqlite.db"), rows)?;
    let duck = DuckDb::open(&folder.join("duck.db"), 1)?;
    let duck = duck.connect()?;
    fill_duckdb(&duck, rows)?;
    let mut session = db.session();
    session.set_threads(1);
    let [mut over_columns, mut over_json, mut over_struct, mut over_sqlite]: [Vec<f64>; 4] =
        Default::default();
    println!(
        "{:8} {:>10} {:>10} {:>10} {:>12} {:>10}",
        "ms", "documents", "columns", "duck json", "duck struct", "sqlite"
    );
    for query in &QUERIES {
        same(&mut session, &duck, &sqlite, query)?;
        let mut times: [Vec<f64>; 5] = Default::default();
        for round in 0..=rounds {
            let mut ours = |sql: &str| {
                seconds(|| block_on(session.execute(sql, &[])).map(drop).map_err(Into::into))
            };
            let taken = [
                ours(query.documents)?,
                ours(query.columns)?,
                seconds(|| duck.rows(query.duckdb_json).map(drop))?,
                seconds(|| duck.rows(query.duckdb_struct).map(drop))?,
                // SQLite takes seconds.
                if round < 2 {
                    seconds(|| of_sqlite(&sqlite, query.sqlite).map(drop))?
                } else {
                    0.0
                },
            ];
            // The first round warms up.
            for (times, taken) in times.iter_mut().zip(taken).filter(|(_, t)| round > 0 && *t > 0.0)
            {
                times.push(taken * 1e3);
            }
        }
        let [ours, columns, json, structs, lite] = times.map(|mut times| median(&mut times));
        let name = query.name;
        println!("{name:8} {ours:>10.1} {columns:>10.1} {json:>10.1} {structs:>12.1} {lite:>10.1}");
        over_columns.push(ours / columns);
        over_json.push(ours / json);
        over_struct.push(ours / structs);
        over_sqlite.push(ours / lite);
    }
    check(&db)?;
    println!(
        "json-scan: over_columns={:.2} over_duckdb_json={:.3} over_duckdb_struct={:.2} \
         over_sqlite={:.3}",
        geomean(&over_columns),
        geomean(&over_json),
        geomean(&over_struct),
        geomean(&over_sqlite)
    );
    Ok(())
}

/// Fails unless all give one answer.
fn same(
    session: &mut Session,
    duck: &Connection,
    sqlite: &rusqlite::Connection,
    query: &Query,
) -> Outcome<()> {
    let mut ours = |sql: &str| -> Outcome<Vec<String>> {
        let rows = block_on(session.execute(sql, &[]))?.to_rows();
        let text = |row: &Vec<Value>| line(row.iter().map(|v| Some(v.to_string())));
        Ok(sorted(rows.iter().map(text).collect()))
    };
    let duck = |sql: &str| -> Outcome<Vec<String>> {
        Ok(sorted(duck.rows(sql)?.into_iter().map(|row| line(row.into_iter())).collect()))
    };
    let expected = ours(query.documents)?;
    let answers = [
        ("columns", ours(query.columns)?),
        ("DuckDB's JSON", duck(query.duckdb_json)?),
        ("DuckDB's structs", duck(query.duckdb_struct)?),
        ("SQLite", of_sqlite(sqlite, query.sqlite)?),
    ];
    match answers.into_iter().find(|(_, answer)| *answer != expected) {
        None => Ok(()),
        Some((who, answer)) => {
            Err(format!("{}: {expected:?}, {who} {answer:?}", query.name).into())
        }
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// A row as text, with numbers to six digits: sums of doubles depend on their order.
fn line(row: impl Iterator<Item = Option<String>>) -> String {
    let text = |value: Option<String>| match value.as_deref().map(str::parse::<f64>) {
        Some(Ok(number)) => format!("{number:.5e}"),
        _ => value.unwrap_or_default(),
    };
    row.map(text).collect::<Vec<_>>().join("|")
}

fn of_sqlite(sqlite: &rusqlite::Connection, sql: &str) -> Outcome<Vec<String>> {
    let mut statement = sqlite.prepare(sql)?;
    let width = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let value = |at| -> Outcome<Option<String>> {
            Ok(match row.get_ref(at)? {
                rusqlite::types::ValueRef::Null => None,
                rusqlite::types::ValueRef::Integer(value) => Some(value.to_string()),
                rusqlite::types::ValueRef::Real(value) => Some(value.to_string()),
                rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                    Some(String::from_utf8_lossy(text).into_owned())
                }
            })
        };
        lines.push(line((0..width).map(value).collect::<Outcome<Vec<_>>>()?.into_iter()));
    }
    Ok(sorted(lines))
}

/// An order with its articles: number, and how many of it.
struct Order {
    id: i64,
    time: String,
    status: &'static str,
    customer: i64,
    city: String,
    total: f64,
    items: Vec<(i64, i64, String, i64)>,
}

fn order(id: i64) -> Order {
    let mut random = Random::new(id as u64);
    let mut items = Vec::new();
    for line in 1..=ITEMS {
        let (sku, qty) = (random.below(10_000_000) as i64, 1 + random.below(3) as i64);
        let name = format!("{:016x}-{:016x}", random.bits(), random.bits());
        items.push((line, sku, name, qty));
    }
    let customer = random.below(50_000) as i64;
    let (hour, minute, second) = (id / 3_600 % 24, id / 60 % 60, id % 60);
    Order {
        id,
        time: format!("2022-11-17 {hour:02}:{minute:02}:{second:02}"),
        status: STATES[random.below(STATES.len() as u64) as usize],
        customer,
        city: format!("city {}", customer % 200),
        total: random.below(100_000) as f64 / 100.0,
        items,
    }
}

fn document(order: &Order) -> String {
    let item = |(line, sku, name, qty): &(i64, i64, String, i64)| {
        format!(r#"{{"line_num":{line},"SKU":{sku},"description":"{name}","qty":{qty}}}"#)
    };
    let items: Vec<String> = order.items.iter().map(item).collect();
    let Order { id, time, status, customer, city, total, .. } = order;
    let customer = format!(r#"{{"id":{customer},"city":"{city}"}}"#);
    let head = format!(r#""id":{id},"time":"{time}","status":"{status}","customer":{customer}"#);
    format!(r#"{{{head},"total":{total},"lineitems":[{}]}}"#, items.join(","))
}

/// Appends rows to a table in batches of columns, numbered from one, and merges them.
pub fn append(
    session: &mut Session,
    table: &str,
    rows: i64,
    row: impl Fn(i64, &mut Vec<Vec<Value>>),
) -> Outcome<()> {
    let mut appender = block_on(session.appender(table, OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (1..=rows).step_by(BATCH_ROWS) {
        let mut made = Vec::new();
        (start..(start + BATCH_ROWS as i64).min(rows + 1)).for_each(|id| row(id, &mut made));
        let vector = |(at, data_type): (usize, &DataType)| {
            let mut builder = VectorBuilder::new(*data_type);
            made.iter().for_each(|row| builder.push(&row[at]));
            Arc::new(builder.finish())
        };
        let columns = types.iter().enumerate().map(vector).collect();
        appender.append(&Batch::new(columns, made.len()))?;
    }
    block_on(appender.finish())?;
    block_on(session.execute(&format!("optimize table {table} full"), &[]))?;
    Ok(())
}

fn fill(db: &Database, rows: i64) -> Outcome<()> {
    let mut session = db.session();
    for create in [
        "create table orders (id bigint primary key, doc json not null)",
        "create table plain (id bigint primary key, time text not null, status text not null,
            customer_id bigint not null, city text not null, total double not null)",
        "create table items (order_id bigint not null, line_num bigint not null,
            sku bigint not null, description text not null, qty bigint not null)",
    ] {
        block_on(session.execute(create, &[]))?;
    }
    let text = |text: &str| Value::Text(text.into());
    append(&mut session, "orders", rows, |id, out| {
        out.push(vec![Value::Int(id), Value::Json(document(&order(id)))]);
    })?;
    append(&mut session, "plain", rows, |id, out| {
        let order = order(id);
        out.push(vec![
            Value::Int(id),
            text(&order.time),
            text(order.status),
            Value::Int(order.customer),
            text(&order.city),
            Value::Float(order.total),
        ]);
    })?;
    append(&mut session, "items", rows, |id, out| {
        for (line, sku, name, qty) in order(id).items {
            let numbers = [id, line, sku].map(Value::Int);
            out.push(numbers.into_iter().chain([text(&name), Value::Int(qty)]).collect());
        }
    })
}

fn sqlite(path: &Path, rows: i64) -> Outcome<rusqlite::Connection> {
    let mut connection = open_sqlite(path)?;
    connection.execute("create table orders (id integer primary key, doc text)", [])?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("insert into orders values (?, ?)")?;
        for id in 1..=rows {
            insert.execute((id, document(&order(id))))?;
        }
    }
    transaction.commit()?;
    connection.pragma_update(None, "cache_size", -4_000_000)?;
    connection.pragma_update(None, "mmap_size", 8u64 << 30)?;
    Ok(connection)
}

fn fill_duckdb(duck: &Connection, rows: i64) -> Outcome<()> {
    load_duckdb(duck, "orders", rows, &|id| document(&order(id)))?;
    duck.execute(&format!(
        "create table structs as select id, from_json(doc, '{STRUCTURE}') as doc from orders"
    ))?;
    duck.execute("checkpoint")?;
    Ok(())
}

/// Creates a table of documents, numbered from one, as JSON of DuckDB.
pub fn load_duckdb(
    duck: &Connection,
    table: &str,
    rows: i64,
    document: &dyn Fn(i64) -> String,
) -> Outcome<()> {
    duck.execute("create table loaded (id bigint, doc varchar)")?;
    let mut appender = duck.appender("loaded", &[DataType::Int64, DataType::TEXT])?;
    for start in (1..=rows).step_by(BATCH_ROWS) {
        let end = (start + BATCH_ROWS as i64).min(rows + 1);
        let mut numbers = VectorBuilder::new(DataType::Int64);
        let mut documents = VectorBuilder::new(DataType::TEXT);
        for id in start..end {
            numbers.push_i64(id);
            documents.push_bytes(document(id).as_bytes());
        }
        let columns = vec![Arc::new(numbers.finish()), Arc::new(documents.finish())];
        appender.append(&Batch::new(columns, (end - start) as usize))?;
    }
    appender.finish()?;
    duck.execute(&format!("create table {table} as select id, doc::json as doc from loaded"))?;
    duck.execute("drop table loaded")?;
    Ok(())
}
