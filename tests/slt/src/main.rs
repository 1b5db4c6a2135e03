//! `nacre-slt PATH…`: runs scripts, ours (`.slt`) or SQLite's (`.test`), and reports. The last line
//! is `slt: passed=… failed=… skipped=… share=…`, counting records; the lines before it list the reasons
//! for skipped records.

use clap::Parser;
use nacre_slt::{Mode, Reasons, Settings, duckdb, find_scripts, run_script};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Runs sqllogictest scripts
#[derive(Parser)]
struct Cli {
    /// Scripts (.slt, .test), or folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// What is done before every statement: plain, flush, reopen or threads
    #[arg(long, default_value = "plain", value_parser = mode)]
    mode: Mode,
    /// Names to answer to in `onlyif` and `skipif`; `nacre`, and in SQLite's corpus `mysql` too,
    /// when not given
    #[arg(long = "as", value_name = "ENGINE")]
    names: Vec<String>,
    /// Whose tests the scripts are, if neither ours nor SQLite's: duckdb
    #[arg(long, value_parser = ["duckdb"])]
    dialect: Option<String>,
    /// Time of each script
    #[arg(long)]
    times: bool,
    /// Failures shown for each script
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Most frequent reasons of failed records shown, each with its number of scripts and of records
    #[arg(long, default_value_t = 0)]
    reasons: usize,
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| "plain, flush, reopen or threads".into())
}

fn main() -> std::io::Result<ExitCode> {
    let cli = Cli::parse();
    let mut out = std::io::stdout().lock();
    let started = Instant::now();
    let (mut scripts, mut passed, mut failed) = (0, 0, 0);
    let mut others = 0;
    let mut reasons = Reasons::default();
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    for path in &cli.paths {
        for script in find_scripts(path, &["slt", "test"])? {
            let text = String::from_utf8_lossy(&std::fs::read(&script)?).into_owned();
            let name = script.display().to_string();
            let mut settings = Settings::of(&script, cli.mode);
            if !cli.names.is_empty() {
                settings.names.clone_from(&cli.names);
            }
            let begun = Instant::now();
            let report = match cli.dialect {
                Some(_) => duckdb::run_script(&text, cli.mode),
                None => run_script(&name, &text, &settings),
            };
            scripts += 1;
            passed += report.passed;
            report
                .skipped
                .iter()
                .for_each(|(reason, count)| *skipped.entry(reason).or_default() += count);
            failed += report.failures.len();
            others += report.others;
            reasons.add(&name, &report.failures);
            if cli.times {
                writeln!(
                    out,
                    "{:8.2} s {name}: {} records",
                    begun.elapsed().as_secs_f64(),
                    report.passed
                )?;
            }
            if !report.failures.is_empty() {
                writeln!(
                    out,
                    "{name}: {} of {} failed",
                    report.failures.len(),
                    report.failures.len() + report.passed
                )?;
                for failure in report.failures.iter().take(cli.show) {
                    writeln!(out, "  {}", failure.to_string().replace('\n', "\n  "))?;
                }
            }
        }
    }
    writeln!(out, "{scripts} scripts in {:.1} s", started.elapsed().as_secs_f64())?;
    if others > 0 {
        writeln!(out, "not counted {others}: for other engines (onlyif, skipif)")?;
    }
    for (reason, count) in &skipped {
        writeln!(out, "skipped {count}: {reason}")?;
    }
    for reason in reasons.most_frequent(cli.reasons) {
        writeln!(out, "failed {reason}")?;
    }
    if scripts == 0 {
        writeln!(out, "no scripts (.slt, .test) there")?;
    }
    writeln!(
        out,
        "slt: passed={passed} failed={failed} skipped={} share={:.3}",
        skipped.values().sum::<usize>(),
        f64::from(passed as u32) / f64::from((passed + failed).max(1) as u32)
    )?;
    Ok(if failed == 0 && scripts > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
