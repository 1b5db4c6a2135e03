//! `nacre-sim`: runs seeds of the simulation on all cores and reports failures; `nacre-sim
//! isolation` checks histories of concurrent transactions; `nacre-sim tiers` runs the simulation of tiers, `nacre-sim
//! references` that of rows that refer to each other.

use nacre_sim::coverage::Coverage;
use nacre_sim::tiers::run::Outcome;
use nacre_sim::{panics, plan::plan, references, run::run, shrink::shrink};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: nacre-sim [--seeds N] [--from N] [--jobs N] [--plant NAME] [--replay SEED] [--keep-going]
       nacre-sim isolation [--histories N] [--from N] [--plant NAME]
       nacre-sim tiers [--seeds N] [--from N] [--plant NAME] [--replay SEED]
       nacre-sim references [--seeds N] [--from N] [--plant NAME] [--replay SEED]";

/// The C library's allocator took a fifth of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A seed that takes this long has hung, even on a busy machine: none takes more than seconds.
const HANG: Duration = Duration::from_secs(300);

struct Settings {
    seeds: u64,
    from: u64,
    jobs: usize,
    plant: Option<String>,
    replay: Option<u64>,
    keep_going: bool,
    isolation: bool,
    /// Another simulation than that of the disk.
    other: Option<(&'static str, Simulation)>,
}

/// Runs a seed, and tells its story if asked.
type Simulation = fn(u64, bool) -> Outcome;

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    panics::keep();
    if settings.isolation {
        return isolation(&settings);
    }
    if let Some((name, simulation)) = settings.other {
        return other(&settings, name, simulation);
    }
    if let Some(seed) = settings.replay {
        return replay(seed, settings.plant.as_deref());
    }
    all(&settings)
}

fn settings() -> Result<Settings, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut out = Settings {
        seeds: 1_000,
        from: 1,
        jobs,
        plant: None,
        replay: None,
        keep_going: false,
        isolation: false,
        other: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--keep-going" => out.keep_going = true,
            "isolation" => out.isolation = true,
            "tiers" => out.other = Some(("tiers", nacre_sim::tiers::run::run)),
            "references" => out.other = Some(("references", references::run)),
            _ => {}
        }
        if matches!(argument.as_str(), "--keep-going" | "isolation" | "tiers" | "references") {
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{argument} takes a number"));
        match argument.as_str() {
            "--seeds" | "--histories" => out.seeds = number()?,
            "--from" => out.from = number()?,
            "--jobs" => out.jobs = number()?.max(1) as usize,
            "--replay" => out.replay = Some(number()?),
            "--plant" => out.plant = Some(value.clone()),
            _ => return Err(format!("{argument} is not known")),
        }
    }
    if let Some(name) = &out.plant {
        nacre_sim::plant(name)?;
    }
    Ok(out)
}

/// Checks histories and reports their anomalies.
fn isolation(settings: &Settings) -> ExitCode {
    match nacre_sim::isolation::run::run(settings.from, settings.seeds) {
        Ok(found) => {
            found.told.iter().for_each(|line| println!("{line}"));
            let anomalies: u64 = found.anomalies.values().sum();
            if anomalies > 0 {
                println!("{:?}", found.anomalies);
            }
            println!("isolation: histories={} anomalies={anomalies}", found.histories);
            if anomalies == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs seeds of another simulation, and tells the story of the first that fails.
fn other(settings: &Settings, name: &str, run: Simulation) -> ExitCode {
    let tell = |seed: u64, outcome: &Outcome| {
        outcome.story.iter().for_each(|line| println!("{line}"));
        let plant =
            settings.plant.as_deref().map_or(String::new(), |name| format!(" --plant {name}"));
        println!("seed {seed}: {:?}", outcome.failure);
        println!("again: npm run sim -- {name} --replay {seed}{plant}");
    };
    if let Some(seed) = settings.replay {
        let outcome = run(seed, true);
        tell(seed, &outcome);
        return if outcome.failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let next = AtomicU64::new(settings.from);
    let end = settings.from + settings.seeds;
    let counts = Mutex::new(std::collections::BTreeMap::<&str, u64>::new());
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let locked = || failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs {
            scope.spawn(|| {
                while locked().is_empty() || settings.keep_going {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let outcome = run(seed, false);
                    let mut all = counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    outcome.counts.iter().for_each(|(what, n)| *all.entry(*what).or_default() += n);
                    if outcome.failure.is_some() {
                        locked().push(seed);
                    }
                }
            });
        }
    });
    let first = locked().iter().min().copied();
    if let Some(seed) = first {
        tell(seed, &run(seed, true));
    }
    let failures = locked().len();
    println!(
        "{name}: seeds={} failures={failures} {:?}",
        settings.seeds,
        counts.lock().map(|c| c.clone())
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed, shrinks its plan if it fails, and prints its story.
fn replay(seed: u64, plant: Option<&str>) -> ExitCode {
    let whole = plan(seed);
    let outcome = run(&whole, true);
    let Some(failure) = &outcome.failure else {
        outcome.story.iter().for_each(|line| println!("{line}"));
        println!(
            "sim: seed={seed} failures=0 steps={} trace={:016x}",
            outcome.steps, outcome.trace
        );
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} fails: {failure}\nmaking it smaller …");
    let small = shrink(&whole, failure);
    let told = run(&small, true);
    println!("settings: {:?}", small.options);
    told.story.iter().for_each(|line| println!("{line}"));
    println!("failure: {}", told.failure.unwrap_or_default());
    println!("again: {}", command(seed, plant));
    ExitCode::FAILURE
}

fn command(seed: u64, plant: Option<&str>) -> String {
    let plant = plant.map_or(String::new(), |name| format!(" --plant {name}"));
    format!("npm run sim -- --replay {seed}{plant}")
}

fn all(settings: &Settings) -> ExitCode {
    let next = AtomicU64::new(0);
    let (steps, crashes, failures, done) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let first: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let walked: Mutex<Coverage> = Mutex::default();
    let started = Instant::now();
    let running: Vec<AtomicU64> = (0..settings.jobs).map(|_| AtomicU64::new(0)).collect();
    let stop = || failures.load(Ordering::Relaxed) > 0 && !settings.keep_going;
    std::thread::scope(|scope| {
        for slot in &running {
            let (next, steps, crashes, failures, done, first, walked, stop) =
                (&next, &steps, &crashes, &failures, &done, &first, &walked, &stop);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= settings.seeds || stop() {
                        break;
                    }
                    let seed = settings.from + at;
                    slot.store(started.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
                    let outcome = run(&plan(seed), false);
                    slot.store(0, Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                    walked
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .extend(&outcome.coverage);
                    steps.fetch_add(outcome.steps, Ordering::Relaxed);
                    crashes.fetch_add(outcome.crashes, Ordering::Relaxed);
                    if let Some(failure) = outcome.failure {
                        failures.fetch_add(1, Ordering::Relaxed);
                        println!("seed {seed}: {failure}");
                        let mut first =
                            first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        if first.as_ref().is_none_or(|(known, _)| seed < *known) {
                            *first = Some((seed, failure));
                        }
                    }
                }
            });
        }
        // A hanging thread cannot be stopped from inside, so report it.
        let mut told = Instant::now();
        while next.load(Ordering::Relaxed) < settings.seeds && !stop() {
            std::thread::sleep(Duration::from_millis(100));
            let now = started.elapsed().as_millis() as u64;
            for slot in &running {
                let since = slot.load(Ordering::Relaxed);
                if since > 0 && now.saturating_sub(since) > HANG.as_millis() as u64 {
                    let last = settings.from + next.load(Ordering::Relaxed);
                    println!("a seed just before {last} hangs");
                    std::process::exit(1);
                }
            }
            if told.elapsed() > Duration::from_secs(20) {
                told = Instant::now();
                eprintln!("  … {} seeds", done.load(Ordering::Relaxed));
            }
        }
    });
    let failures = failures.load(Ordering::Relaxed);
    if let Some((seed, _)) = first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        replay(seed, settings.plant.as_deref());
    }
    println!("{}", walked.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    println!(
        "sim: seeds={} failures={failures} crashes_injected={} steps={}",
        done.load(Ordering::Relaxed),
        crashes.load(Ordering::Relaxed),
        steps.load(Ordering::Relaxed)
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
