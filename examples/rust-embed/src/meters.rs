//! The database of the meters: its tables, and every statement of the program.
//!
//! Two tables, written in one transaction: every reading, and the latest reading of each meter,
//! which an upsert keeps.

use nacre_native::open_url;
use nacredb::{Budget, Database, Options, Prepared, Result, Session, Value};

/// Number of meters.
pub const METERS: i64 = 40;

/// Steps of background work (flushing, merging) after each transaction.
const STEPS: Budget = Budget::Steps(1);

const SCHEMA: &str = "
    create table if not exists reading (
      meter bigint, time timestamp, watts int not null, primary key (meter, time)
    );
    create table if not exists latest (
      meter bigint primary key, time timestamp not null, watts int not null
    )";

/// A measurement: average power over a quarter of an hour.
pub struct Reading {
    pub meter: i64,
    /// End of the quarter, in microseconds since 1970.
    pub time: i64,
    pub watts: i64,
}

/// Consumption of all meters in one hour.
pub struct Hour {
    pub start: String,
    pub watt_hours: i64,
    /// The meter that used the most.
    pub peak_meter: i64,
}

/// The open database.
pub struct Meters {
    db: Database,
    session: Session,
    insert: Prepared,
    upsert: Prepared,
    find: Prepared,
}

impl Meters {
    /// Opens the database in a folder, creating both if they do not exist.
    pub async fn open(folder: &str) -> Result<Meters> {
        let db = Database::open(open_url(folder)?, Options::default()).await?;
        let mut session = db.session();
        session.execute(SCHEMA, &[]).await?;
        let insert = session.prepare("insert into reading values (?, ?, ?)")?;
        let upsert = session.prepare(
            "insert into latest values (?, ?, ?)
             on conflict (meter) do update set time = excluded.time, watts = excluded.watts",
        )?;
        let find = session.prepare("select time, watts from latest where meter = ?")?;
        Ok(Meters { db, session, insert, upsert, find })
    }

    /// Stores readings: all of them, durably, or none.
    pub async fn record(&mut self, readings: &[Reading]) -> Result<()> {
        self.session.execute("begin", &[]).await?;
        let stored = self.store(readings).await;
        let end = if stored.is_ok() { "commit" } else { "rollback" };
        self.session.execute(end, &[]).await?;
        stored?;
        self.db.maintain(STEPS)?;
        Ok(())
    }

    async fn store(&mut self, readings: &[Reading]) -> Result<()> {
        for Reading { meter, time, watts } in readings {
            let values = [Value::Int(*meter), Value::Timestamp(*time), Value::Int(*watts)];
            self.session.run(&self.insert, &values).await?;
            self.session.run(&self.upsert, &values).await?;
        }
        Ok(())
    }

    /// The latest reading of a meter: its time, and its power in watts. A read by key waits for
    /// nothing, so it is not asynchronous.
    pub fn latest(&mut self, meter: i64) -> Result<Option<(String, i64)>> {
        let row = self.session.get(&self.find, &[Value::Int(meter)])?;
        Ok(row.map(|row| match row.as_slice() {
            [time, Value::Int(watts)] => (time.to_string(), *watts),
            other => unreachable!("`find` selects a time and an integer, not {other:?}"),
        }))
    }

    /// The number of readings.
    pub async fn count(&mut self) -> Result<i64> {
        let row = self.session.execute("select count(*) from reading", &[]).await?.row(0);
        Ok(row.first().map_or(0, integer))
    }

    /// The time of the newest reading, in microseconds since 1970.
    pub async fn last_time(&mut self) -> Result<Option<i64>> {
        let row = self.session.execute("select max(time) from latest", &[]).await?.row(0);
        Ok(row.first().filter(|value| !value.is_null()).map(integer))
    }

    /// Consumption by hour, the last hours first.
    pub async fn hours(&mut self, limit: i64) -> Result<Vec<Hour>> {
        let sql = "
            with used as (
              select date_trunc('hour', time) as start, meter, cast(sum(watts) / 4 as bigint) as watt_hours
              from reading
              group by date_trunc('hour', time), meter
            ), ranked as (
              select start, meter, watt_hours,
                     row_number() over (partition by start order by watt_hours desc, meter) as place
              from used
            )
            select start, cast(sum(watt_hours) as bigint), min(meter) filter (where place = 1)
            from ranked
            group by start
            order by start desc
            limit ?";
        let result = self.session.execute(sql, &[Value::Int(limit)]).await?;
        let hour = |row: Vec<Value>| match row.as_slice() {
            [start, watt_hours, meter] => Hour {
                start: start.to_string(),
                watt_hours: integer(watt_hours),
                peak_meter: integer(meter),
            },
            other => unreachable!("three columns, not {other:?}"),
        };
        Ok(result.to_rows().into_iter().map(hour).collect())
    }

    /// Closes the database. Without it, nothing that was committed is lost either.
    pub async fn close(self) -> Result<()> {
        self.db.close().await
    }
}

/// The number in an integer or a timestamp.
fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Timestamp(number) => *number,
        other => unreachable!("the query selects integers and times, not {other:?}"),
    }
}
