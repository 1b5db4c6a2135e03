//! `nacre-tpch FOLDER --scale F --verify ANSWERS`: the 22 queries against known answers, a line a
//! query, then how many are right. The tables are generated into a database in FOLDER unless they
//! are there.
//!
//! Numbers agree within 1e-9 of each other or 0.01, everything else exactly; rows in order, but for
//! queries whose order leaves ties, where the rows need only be the same ones.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::Parser;
use nacre_native::{ThreadPool, block_on};
use nacre_tpch::{QUERIES, generate, read};
use nacredb::{Database, Error, Options, QueryResult, Result, Session, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Queries that may have rows of equal sort keys.
const WITH_TIES: [u32; 5] = [3, 5, 10, 11, 18];
const RELATIVE: f64 = 1e-9;
const ABSOLUTE: f64 = 0.01;

/// Runs TPC-H and compares the answers.
#[derive(Parser)]
struct Arguments {
    /// Folder of the database, or memory://
    database: String,
    /// Scale factor
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Folder with queries/qNN.sql and answers/sfF/qNN.csv
    #[arg(long, value_name = "FOLDER")]
    verify: PathBuf,
    /// Only this query, by its number
    #[arg(long, value_name = "N")]
    query: Vec<u32>,
    /// Threads a query may use; all processors otherwise
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How scans filter, as in SET scan_strategy
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Run each query this many times and show the best time
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Write the tables into this folder, as NAME.sql and NAME.tbl, and run no query
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Show the plan of each query
    #[arg(long)]
    explain: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Generates, runs and compares; answers whether all are right.
fn run(args: &Arguments) -> Result<bool> {
    let answers = args.verify.join("answers").join(format!("sf{}", args.scale));
    if !answers.is_dir() {
        return Err(Error::not_found(format!(
            "no answers for scale {} in {}",
            args.scale,
            args.verify.display()
        )));
    }
    let mut host = nacre_native::open_url(&args.database)?;
    if let Some(threads) = args.threads {
        host.parallelism = Arc::new(ThreadPool::new(threads));
    }
    let database = block_on(Database::open(host, Options::default()))?;
    let mut session = database.session();
    if let Some(strategy) = &args.strategy {
        block_on(session.execute(&format!("set scan_strategy = '{strategy}'"), &[]))?;
    }
    if block_on(session.execute("select 1 from lineitem limit 0", &[])).is_err() {
        generate(&mut session, args.scale)?;
    }
    if let Some(folder) = &args.write {
        write_tables(&mut session, folder)?;
        block_on(database.close())?;
        return Ok(true);
    }
    let (mut right, mut asked, mut total) = (0, 0, Duration::ZERO);
    for query in (1..=QUERIES).filter(|q| args.query.is_empty() || args.query.contains(q)) {
        asked += 1;
        let sql = read(&args.verify.join("queries").join(format!("q{query:02}.sql")))?;
        let answer = read(&answers.join(format!("q{query:02}.csv")))?;
        if args.explain {
            for row in text(&block_on(session.execute(&format!("explain {sql}"), &[]))?).rows {
                println!("    {}", row.join(" "));
            }
        }
        match timed(&mut session, &sql, args.repeat) {
            Ok((rows, elapsed)) => {
                total += elapsed;
                let verdict = match compare(query, &rows, &answer) {
                    Ok(()) => {
                        right += 1;
                        "right".to_string()
                    }
                    Err(difference) => format!("WRONG: {difference}"),
                };
                println!(
                    "q{query:02} {:>10.1} ms {:>7} rows  {verdict}",
                    millis(elapsed),
                    rows.rows.len()
                );
            }
            Err(error) => println!("q{query:02} FAILED: {error}"),
        }
    }
    block_on(database.close())?;
    println!("total {:.1} ms", millis(total));
    println!("tpch: right={right} of {asked}");
    Ok(right == asked)
}

/// For loading them elsewhere: one line per row, `|` between values, which never contain one.
fn write_tables(session: &mut Session, folder: &Path) -> Result<()> {
    let save = |name: String, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| Error::io(format!("{}: {e}", path.display())))
    };
    for (name, ddl) in nacre_tpch::tables() {
        save(format!("{name}.sql"), ddl)?;
        let rows = text(&block_on(session.execute(&format!("select * from {name}"), &[]))?).rows;
        let lines: Vec<String> = rows.iter().map(|row| row.join("|") + "\n").collect();
        save(format!("{name}.tbl"), &lines.concat())?;
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn timed(session: &mut Session, sql: &str, repeat: u32) -> Result<(Rows, Duration)> {
    let mut best: Option<(Rows, Duration)> = None;
    for _ in 0..repeat.max(1) {
        let started = Instant::now();
        let result = block_on(session.execute(sql, &[]))?;
        let elapsed = started.elapsed();
        if best.as_ref().is_none_or(|(_, time)| elapsed < *time) {
            best = Some((text(&result), elapsed));
        }
    }
    best.ok_or_else(|| Error::not_found("no run"))
}

/// A result as text, with what is a number.
struct Rows {
    numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

fn text(result: &QueryResult) -> Rows {
    let numeric = result.columns.iter().map(|c| c.data_type.is_numeric()).collect();
    let mut rows = Vec::new();
    for batch in &result.batches {
        for row in 0..batch.rows {
            let field =
                |value: Value| if value.is_null() { "NULL".to_string() } else { value.to_string() };
            rows.push(batch.columns.iter().map(|c| field(c.value(row))).collect());
        }
    }
    Rows { numeric, rows }
}

fn compare(query: u32, found: &Rows, answer: &str) -> Result<(), String> {
    let expected: Vec<Vec<&str>> =
        answer.lines().skip(1).map(|line| line.split('|').collect()).collect();
    if found.rows.len() != expected.len() {
        return Err(format!("{} rows instead of {}", found.rows.len(), expected.len()));
    }
    let same =
        |at: usize, other: usize| same_row(&found.rows[at], &expected[other], &found.numeric);
    let Some(first) = (0..expected.len()).find(|at| !same(*at, *at)) else { return Ok(()) };
    if WITH_TIES.contains(&query) {
        let mut left: Vec<usize> = (first..expected.len()).collect();
        let all = (first..expected.len()).all(|at| {
            match left.iter().position(|other| same(at, *other)) {
                Some(found) => {
                    left.remove(found);
                    true
                }
                None => false,
            }
        });
        if all {
            return Ok(());
        }
    }
    let mut message = format!("row {}: ", first + 1);
    let _ =
        write!(message, "{} instead of {}", found.rows[first].join("|"), expected[first].join("|"));
    Err(message)
}

fn same_row(found: &[String], expected: &[&str], numeric: &[bool]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).zip(numeric).all(|((found, expected), numeric)| {
            found == expected || (*numeric && same_number(found, expected))
        })
}

fn same_number(found: &str, expected: &str) -> bool {
    let (Ok(a), Ok(b)) = (found.parse::<f64>(), expected.parse::<f64>()) else { return false };
    let difference = (a - b).abs();
    difference <= ABSOLUTE || difference <= RELATIVE * a.abs().max(b.abs())
}
