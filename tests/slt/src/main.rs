//! `nacre-slt PATH…`: runs scripts, ours (`.slt`) or SQLite's (`.test`), and reports.

use clap::Parser;
use nacre_slt::{Mode, Settings, find_scripts, is_value_wise, run_script};
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
    /// What is done before every statement: plain, flush or reopen
    #[arg(long, default_value = "plain", value_parser = mode)]
    mode: Mode,
    /// Another engine's name to answer to in `onlyif` and `skipif`; SQLite's corpus writes DIV for `mysql` only
    #[arg(long = "as", value_name = "ENGINE")]
    labels: Vec<String>,
    /// Failures shown for each script
    #[arg(long, default_value_t = 5)]
    show: usize,
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| "plain, flush or reopen".into())
}

fn main() -> std::io::Result<ExitCode> {
    let cli = Cli::parse();
    let mut out = std::io::stdout().lock();
    let started = Instant::now();
    let (mut scripts, mut passed, mut skipped, mut failed) = (0, 0, 0, 0);
    for path in &cli.paths {
        for script in find_scripts(path, &["slt", "test"])? {
            let text = String::from_utf8_lossy(&std::fs::read(&script)?).into_owned();
            let name = script.display().to_string();
            let value_wise = is_value_wise(&script);
            let settings = Settings { mode: cli.mode, value_wise, labels: cli.labels.clone() };
            let report = run_script(&name, &text, &settings);
            scripts += 1;
            passed += report.passed;
            skipped += report.skipped;
            failed += report.failures.len();
            if !report.failures.is_empty() {
                writeln!(out, "{name}: {} of {} failed", report.failures.len(), report.failures.len() + report.passed)?;
                for failure in report.failures.iter().take(cli.show) {
                    writeln!(out, "  {}", failure.to_string().replace('\n', "\n  "))?;
                }
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    writeln!(
        out,
        "{scripts} scripts in {seconds:.1} s: {passed} passed, {failed} failed, {skipped} for other engines"
    )?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
