//! Records power meters in an embedded database and reports on them.
//!
//! `record` plays the meters: it writes readings in transactions, as they would arrive. `report`
//! asks the same table for the current reading of each meter and for every hour's consumption.
//! `latest` reads one meter by its key.

mod meters;

use meters::{METERS, Meters, Reading};
use nacre_native::block_on;
use std::process::ExitCode;

const USAGE: &str = "usage: nacre-example-embed record FOLDER HOURS
       nacre-example-embed report FOLDER
       nacre-example-embed latest FOLDER METER";

/// 2026-06-01 00:00:00 UTC, in microseconds since 1970.
const FIRST_HOUR: i64 = 1_780_272_000_000_000;
const QUARTER_MICROS: i64 = 900_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["record", folder, hours] => {
            hours.parse().ok().map(|hours| block_on(record(folder, hours)))
        }
        ["report", folder] => Some(block_on(report(folder))),
        ["latest", folder, meter] => {
            meter.parse().ok().map(|meter| block_on(latest(folder, meter)))
        }
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Writes a reading of every meter for each quarter of an hour, one transaction a quarter.
async fn record(folder: &str, hours: i64) -> nacredb::Result<()> {
    let mut meters = Meters::open(folder).await?;
    let first = meters.last_time().await?.map_or(FIRST_HOUR, |last| last + QUARTER_MICROS);
    for quarter in 0..4 * hours {
        let time = first + quarter * QUARTER_MICROS;
        let readings: Vec<Reading> =
            (1..=METERS).map(|meter| Reading { meter, time, watts: watts(meter, time) }).collect();
        meters.record(&readings).await?;
    }
    println!("{} readings, {} in all", 4 * hours * METERS, meters.count().await?);
    meters.close().await
}

/// A synthetic load: a base by the meter, more in the evening, and some noise that is the same for
/// the same arguments.
fn watts(meter: i64, time: i64) -> i64 {
    let hour = time / (4 * QUARTER_MICROS) % 24;
    let evening = if (17..22).contains(&hour) { 600 } else { 0 };
    let mixed = (meter * 7_919 + time / QUARTER_MICROS).wrapping_mul(6_364_136_223_846_793_005);
    80 + 10 * (meter % 9) + evening + (mixed >> 33).rem_euclid(200)
}

async fn report(folder: &str) -> nacredb::Result<()> {
    let mut meters = Meters::open(folder).await?;
    println!("{:<16} {:>8}  peak meter", "hour", "kWh");
    for hour in meters.hours(24).await? {
        let bar = "█".repeat((hour.watt_hours / 1_500) as usize);
        let kwh = hour.watt_hours as f64 / 1_000.0;
        println!("{:<16} {kwh:>8.1}  {:>10} {bar}", hour.start, hour.peak_meter);
    }
    meters.close().await
}

async fn latest(folder: &str, meter: i64) -> nacredb::Result<()> {
    let mut meters = Meters::open(folder).await?;
    match meters.latest(meter)? {
        Some((time, watts)) => println!("meter {meter}: {watts} W at {time}"),
        None => println!("meter {meter} has no reading"),
    }
    meters.close().await
}
