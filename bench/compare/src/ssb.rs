//! The 13 queries of the Star Schema Benchmark on generated data of its shape, beside DuckDB.

use crate::beside_duckdb::{Beside, Compare, geomean, parse_some, worst};
use crate::cells::{Cell, batch, random};
use crate::duckdb;
use crate::measure::Outcome;
use crate::options::Options;

const QUERIES: &str = include_str!("../queries/ssb.sql");

const LINEORDER: &str = "create table lineorder (
  lo_orderkey int not null, lo_linenumber int not null, lo_custkey int not null,
  lo_partkey int not null, lo_suppkey int not null, lo_orderdate int not null,
  lo_orderpriority text not null, lo_shippriority int not null, lo_quantity int not null,
  lo_extendedprice int not null, lo_ordtotalprice int not null, lo_discount int not null,
  lo_revenue int not null, lo_supplycost int not null, lo_tax int not null,
  lo_commitdate int not null, lo_shipmode text not null,
  primary key (lo_orderkey, lo_linenumber))";
const CUSTOMER: &str = "create table customer (
  c_custkey int not null, c_name text not null, c_address text not null, c_city text not null,
  c_nation text not null, c_region text not null, c_phone text not null,
  c_mktsegment text not null,
  primary key (c_custkey))";
const SUPPLIER: &str = "create table supplier (
  s_suppkey int not null, s_name text not null, s_address text not null, s_city text not null,
  s_nation text not null, s_region text not null, s_phone text not null,
  primary key (s_suppkey))";
const PART: &str = "create table part (
  p_partkey int not null, p_name text not null, p_mfgr text not null, p_category text not null,
  p_brand1 text not null, p_color text not null, p_type text not null, p_size int not null,
  p_container text not null,
  primary key (p_partkey))";
const DATES: &str = "create table dates (
  d_datekey int not null, d_dayofweek text not null, d_month text not null, d_year int not null,
  d_yearmonthnum int not null, d_yearmonth text not null, d_daynuminweek int not null,
  d_daynuminmonth int not null, d_daynuminyear int not null, d_monthnuminyear int not null,
  d_weeknuminyear int not null, d_sellingseason text not null,
  primary key (d_datekey))";

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
/// Five nations of each region, in its order.
const NATIONS: [[&str; 5]; 5] = [
    ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
];
const MONTHS: [(&str, i64); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];
const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW"];
const MODES: [&str; 7] = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
const COLORS: [&str; 8] = ["almond", "beige", "coral", "forest", "khaki", "navy", "plum", "snow"];

/// A day of the table of dates.
struct Day {
    year: i64,
    month: usize,
    of_month: i64,
    of_year: i64,
    of_week: usize,
}

impl Day {
    fn key(&self) -> i64 {
        (self.year * 100 + self.month as i64 + 1) * 100 + self.of_month
    }
}

/// All days of 1992 to 1998.
fn days() -> Vec<Day> {
    let mut days = Vec::new();
    for year in 1992..=1998 {
        let mut of_year = 0;
        for (month, (_, length)) in MONTHS.iter().enumerate() {
            let leap = i64::from(month == 1 && year % 4 == 0);
            for of_month in 1..=length + leap {
                of_year += 1;
                // 1992 began on a Wednesday.
                let of_week = (days.len() + 3) % 7;
                days.push(Day { year, month, of_month, of_year, of_week });
            }
        }
    }
    days
}

fn pick<T: Copy>(list: &[T], row: i64, salt: u64) -> T {
    list[random(row, salt, list.len() as i64) as usize]
}

/// City, nation and region; a city is the first nine letters of its nation and a digit.
fn place(row: i64) -> [Cell; 3] {
    let region = random(row, 1, 5) as usize;
    let nation = pick(&NATIONS[region], row, 2);
    [format!("{nation:9.9}{}", random(row, 3, 10)).into(), nation.into(), REGIONS[region].into()]
}

fn lineorder(days: &[Day], [customers, suppliers, parts]: [i64; 3], row: i64) -> Vec<Cell> {
    let (order, line) = (row / 4, row % 4);
    let day = random(order, 4, days.len() as i64 - 90);
    let (part, quantity) = (random(row, 5, parts), random(row, 6, 50) + 1);
    let (price, discount) = (90_000 + part % 20_000, random(row, 7, 11));
    let extended = price * quantity;
    vec![
        (order + 1).into(),
        (line + 1).into(),
        (random(order, 8, customers) + 1).into(),
        (part + 1).into(),
        (random(row, 9, suppliers) + 1).into(),
        days[day as usize].key().into(),
        pick(&PRIORITIES, order, 10).into(),
        0.into(),
        quantity.into(),
        extended.into(),
        (extended * 4).into(),
        discount.into(),
        (extended * (100 - discount) / 100).into(),
        (price * 6 / 10).into(),
        random(row, 11, 9).into(),
        days[(day + 30 + random(row, 12, 60)) as usize].key().into(),
        pick(&MODES, row, 13).into(),
    ]
}

fn customer(row: i64) -> Vec<Cell> {
    let [city, nation, region] = place(row);
    vec![
        (row + 1).into(),
        format!("Customer#{:09}", row + 1).into(),
        format!("street {}", random(row, 5, 1 << 30)).into(),
        city,
        nation,
        region,
        format!("{}-{:07}", random(row, 6, 25) + 10, random(row, 7, 10_000_000)).into(),
        pick(&SEGMENTS, row, 8).into(),
    ]
}

fn supplier(row: i64) -> Vec<Cell> {
    let [city, nation, region] = place(row + (1 << 40));
    vec![
        (row + 1).into(),
        format!("Supplier#{:09}", row + 1).into(),
        format!("road {}", random(row, 5, 1 << 30)).into(),
        city,
        nation,
        region,
        format!("{}-{:07}", random(row, 6, 25) + 10, random(row, 7, 10_000_000)).into(),
    ]
}

fn part(row: i64) -> Vec<Cell> {
    let (maker, category) = (random(row, 1, 5) + 1, random(row, 2, 5) + 1);
    vec![
        (row + 1).into(),
        format!("{} {}", pick(&COLORS, row, 3), pick(&COLORS, row, 4)).into(),
        format!("MFGR#{maker}").into(),
        format!("MFGR#{maker}{category}").into(),
        format!("MFGR#{maker}{category}{}", random(row, 5, 40) + 1).into(),
        pick(&COLORS, row, 3).into(),
        format!("TYPE {}", random(row, 6, 150)).into(),
        (random(row, 7, 50) + 1).into(),
        format!("BOX {}", random(row, 8, 40)).into(),
    ]
}

fn date(day: &Day) -> Vec<Cell> {
    let (month, number) = (MONTHS[day.month].0, day.month as i64 + 1);
    let season = match day.month {
        11 => "Christmas",
        5..=7 => "Summer",
        2..=4 => "Spring",
        8..=10 => "Fall",
        _ => "Winter",
    };
    vec![
        day.key().into(),
        WEEKDAYS[day.of_week].into(),
        month.into(),
        day.year.into(),
        (day.year * 100 + number).into(),
        format!("{month:3.3}{}", day.year).into(),
        (day.of_week as i64 + 1).into(),
        day.of_month.into(),
        day.of_year.into(),
        number.into(),
        ((day.of_year - 1) / 7 + 1).into(),
        season.into(),
    ]
}

pub fn run(options: &Options) -> Outcome<()> {
    let scale: f64 = options.get("scale", 1.0)?;
    let rounds: usize = options.get("rounds", 5)?;
    let of_scale = |rows: f64| ((rows * scale) as i64).max(1);
    let (lines, customers, suppliers) =
        (of_scale(6_000_000.0), of_scale(30_000.0), of_scale(2_000.0));
    let parts = (200_000.0 * if scale < 1.0 { scale } else { 1.0 + scale.log2() }) as i64;
    let days = days();
    let mut beside = Beside::open("ssb")?;
    println!("loading {lines} rows of lineorder into Nacre and DuckDB {}", duckdb::version()?);
    let counts = [customers, suppliers, parts];
    beside.load("lineorder", LINEORDER, lines, |rows, types| {
        batch(rows, types, |row| lineorder(&days, counts, row))
    })?;
    beside.load("customer", CUSTOMER, customers, |rows, types| batch(rows, types, customer))?;
    beside.load("supplier", SUPPLIER, suppliers, |rows, types| batch(rows, types, supplier))?;
    beside.load("part", PART, parts, |rows, types| batch(rows, types, part))?;
    beside.load("dates", DATES, days.len() as i64, |rows, types| {
        batch(rows, types, |row| date(&days[row as usize]))
    })?;
    beside.settle(&["lineorder", "customer", "supplier", "part", "dates"])?;
    let queries = parse_some(QUERIES, options.text("queries"));
    let ratios = beside.compare(&queries, rounds, Compare::Rows)?;
    println!(
        "ssb: geomean_ratio1={:.2} geomean_ratio2={:.2} worst={:.2}",
        geomean(&ratios[0]),
        geomean(&ratios[1]),
        worst(&ratios)
    );
    Ok(())
}
