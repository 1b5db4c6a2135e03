//! Forty queries over one wide table of visits to web pages, beside DuckDB: counts, groups of few
//! and of many values, text, few rows out of many, the newest rows.

use crate::beside_duckdb::{Beside, Compare, geomean, parse_some, worst};
use crate::cells::{Cell, batch, random, skewed};
use crate::duckdb;
use crate::measure::Outcome;
use crate::options::Options;

const QUERIES: &str = include_str!("../queries/wide.sql");

/// The columns that queries name. [`FILLERS`] more columns make the table wide.
const COLUMNS: &str = "visit_id bigint not null, seen_at timestamp not null, day date not null,
  counter_id int not null, user_id bigint not null, client_ip bigint not null,
  region_id int not null, engine_id int not null, source_id int not null, device_id int not null,
  width int not null, height int not null, refresh int not null, hidden int not null,
  url_hash bigint not null, phone int not null, phone_model text not null, phrase text not null,
  url text not null, referrer text not null, title text not null";
const FILLERS: usize = 80;

const TOPICS: [&str; 12] = [
    "garden", "travel", "cooking", "music", "cars", "houses", "sports", "books", "health", "games",
    "news", "tools",
];
const TITLES: [&str; 12] = [
    "Garden", "Travel", "Cooking", "Music", "Cars", "Houses", "Sports", "Books", "Health", "Games",
    "News", "Tools",
];
/// 1 July 2026, in days since 1970.
const FIRST_DAY: i64 = 20_635;
const DAY_US: i64 = 86_400_000_000;

fn ddl() -> String {
    let fillers: String = (0..FILLERS)
        .map(|at| match at % 8 {
            7 => format!(", t{at} text not null"),
            _ => format!(", n{at} int not null"),
        })
        .collect();
    format!("create table visits ({COLUMNS}{fillers})")
}

fn page(row: i64, salt: u64) -> String {
    let topic = skewed(row, salt, 1_200) as usize % TOPICS.len();
    let shop = if random(row, salt + 1, 10) == 0 { ".shop" } else { "" };
    let number = skewed(row, salt + 2, 100_000);
    format!("https://{}{shop}.example/{}/{number}.html", TOPICS[topic], topic * 31 % 97)
}

/// One row; `rows` is the number of all.
fn visit(row: i64, rows: i64) -> Vec<Cell> {
    // Visits come in the order of time, thirty-one days of them.
    let seen = FIRST_DAY * DAY_US + (row as i128 * 31 * DAY_US as i128 / rows as i128) as i64;
    let user = skewed(row, 1, rows / 5);
    let phone = if random(user, 2, 5) == 0 { random(user, 3, 90) + 1 } else { 0 };
    let searches = random(row, 4, 7) == 0;
    let topic = random(row, 5, 12) as usize;
    let text =
        |is_there: bool, text: String| -> Cell { if is_there { text.into() } else { "".into() } };
    let width = [1_920, 1_366, 1_536, 390, 414, 2_560][random(user, 6, 6) as usize];
    let mut cells: Vec<Cell> = vec![
        (nacredb::hash::hash_u64(row as u64) as i64 >> 2).into(),
        (seen + random(row, 7, 1_000_000)).into(),
        (seen / DAY_US).into(),
        skewed(row, 8, 6_500).into(),
        user.into(),
        (random(user, 9, 1 << 32)).into(),
        skewed(user, 10, 5_000).into(),
        if searches { random(row, 11, 30) + 1 } else { 0 }.into(),
        random(row, 12, 8).into(),
        random(user, 13, 3).into(),
        width.into(),
        (width * 9 / 16 + random(user, 14, 40)).into(),
        i64::from(random(row, 15, 9) == 0).into(),
        i64::from(random(row, 16, 50) == 0).into(),
        random(row, 17, 100).into(),
        phone.into(),
        text(phone > 0, format!("model {}", phone * 7 % 61)),
        text(searches, format!("{} for {}", TOPICS[topic], skewed(row, 18, 200_000))),
        page(row, 19).into(),
        text(random(row, 22, 3) > 0, page(row, 23)),
        format!("{} and {} - page {}", TITLES[topic], TOPICS[topic], skewed(row, 26, 50_000))
            .into(),
    ];
    for at in 0..FILLERS {
        let salt = at as u64;
        cells.push(match at % 8 {
            7 => text(random(row, salt, 20) == 0, format!("value {}", random(row, salt, 500))),
            6 => random(row, salt, 1 << 30).into(),
            5 => skewed(row, salt, 1_000).into(),
            kind if kind % 2 == 0 => i64::from(random(row, salt, 100) == 0).into(),
            _ => random(user, salt, 16).into(),
        });
    }
    cells
}

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 2_000_000)?;
    let rounds: usize = options.get("rounds", 5)?;
    let mut beside = Beside::open("wide")?;
    println!("loading {rows} rows into Nacre and DuckDB {}", duckdb::version()?);
    beside
        .load("visits", &ddl(), rows, |range, types| batch(range, types, |row| visit(row, rows)))?;
    beside.settle(&["visits"])?;
    let queries = parse_some(QUERIES, options.text("queries"));
    let ratios = beside.compare(&queries, rounds, Compare::Rows)?;
    println!(
        "wide: geomean_ratio1={:.2} geomean_ratio2={:.2} worst={:.2}",
        geomean(&ratios[0]),
        geomean(&ratios[1]),
        worst(&ratios)
    );
    Ok(())
}
