//! Starts writers, kills them, and verifies the folder after each kill.

use crate::many::LARGE;
use crate::verify::{Findings, Promises, verify};
use crate::writer::{Acknowledges, Uploading, options};
use nacre_testing::Random;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Settings of a run.
pub struct Settings {
    /// Total number of kills.
    pub times: u64,
    /// Kills of writers on one folder before a new folder is used.
    pub kills_per_folder: u64,
    /// Number of committing threads.
    pub threads: u64,
    /// Determines when to kill.
    pub seed: u64,
    /// Whether commits are acknowledged before they are durable.
    pub relaxed: bool,
    /// Where the disk is lost: whether commits are acknowledged when they are uploaded.
    pub held: bool,
    /// Where the disk is lost: how long a commit may wait for its upload.
    pub lag: Duration,
    /// In simulated power cuts: syncs of files with this name prefix do nothing.
    pub lie: Option<String>,
    /// Parent of the folders. A folder with findings is kept.
    pub folder: PathBuf,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            times: 20,
            kills_per_folder: 10,
            threads: 4,
            seed: u64::from(std::process::id()),
            relaxed: false,
            held: false,
            lag: Duration::from_millis(200),
            lie: None,
            folder: std::env::temp_dir(),
        }
    }
}

/// Runs everything. Returns `true` if nothing was wrong.
pub fn drive(settings: &Settings) -> Result<bool, String> {
    let mut random = Random::new(settings.seed);
    let (mut runs, mut lost, mut phantom, mut committed) = (0, 0, 0, 0);
    let mut sound = true;
    while runs < settings.times && sound {
        let folder = settings.folder.join(format!("nacre-crash-{}-{runs}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut promises = Promises::new(settings.threads, LARGE);
        for _ in 0..settings.kills_per_folder.min(settings.times - runs) {
            // Occasionally during recovery, usually during work.
            let after_ms =
                if random.below(5) == 0 { 1 + random.below(50) } else { 50 + random.below(750) };
            let result = run_once(&folder, settings, after_ms, &mut promises, random.below(2) == 0);
            runs += 1;
            let messages = match result {
                Ok(findings) => {
                    lost += findings.lost;
                    phantom += findings.phantom;
                    if findings.sound() { Vec::new() } else { findings.messages }
                }
                Err(message) => vec![message],
            };
            for message in &messages {
                eprintln!("run {runs}, killed after {after_ms} ms: {message}");
            }
            if !messages.is_empty() {
                sound = false;
                eprintln!("the folder is kept: {}", folder.display());
                eprintln!(
                    "again: nacre-crash drive --times {} --seed {}",
                    settings.times, settings.seed
                );
                break;
            }
        }
        committed += promises.models.iter().map(|model| model.seq).sum::<i64>();
        if sound {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    eprintln!("{committed} transactions committed by {} threads", settings.threads);
    println!("crash: runs={runs} lost={lost} phantom={phantom}");
    Ok(sound)
}

fn run_once(
    folder: &Path,
    settings: &Settings,
    after_ms: u64,
    promises: &mut Promises,
    close: bool,
) -> Result<Findings, String> {
    let acknowledges = if settings.relaxed { Acknowledges::Early } else { Acknowledges::Local };
    let mut child = start_writer(folder, settings.threads, acknowledges, None)?;
    for said in kill_after(&mut child, Duration::from_millis(after_ms))? {
        match said.what {
            Said::Ready => promises.ready = true,
            Said::Committed { thread, seq, .. } => promises.committed(thread, seq)?,
            Said::Uploaded(_) => {}
        }
    }
    nacre_native::open_folder(folder)
        .and_then(|host| verify(host, options(), promises, close))
        .map_err(|error| format!("verifying: {error}"))
}

/// Starts a process that writes, with blobs in a folder if one is given.
pub fn start_writer(
    folder: &Path,
    threads: u64,
    acknowledges: Acknowledges,
    blobs: Option<&Uploading<'_>>,
) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut writer = Command::new(program);
    writer.arg("writer").arg(folder).args([&threads.to_string(), acknowledges.word()]);
    if let Some(Uploading { folder, lag }) = blobs {
        writer.arg(folder).arg(lag.as_millis().to_string());
    }
    writer
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start a writer: {error}"))
}

/// What a writer says.
pub enum Said {
    /// The tables and accounts exist.
    Ready,
    /// A commit was acknowledged; the position of the log after it.
    Committed { thread: usize, seq: i64, position: u64 },
    /// Everything up to a position of the log is uploaded.
    Uploaded(u64),
}

/// Something said, and when.
pub struct Line {
    pub what: Said,
    pub at: Instant,
}

impl Said {
    fn of(line: &str) -> Option<Said> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["ready"] => Said::Ready,
            ["committed", thread, seq, position] => Said::Committed {
                thread: thread.parse().ok()?,
                seq: seq.parse().ok()?,
                position: position.parse().ok()?,
            },
            ["uploaded", position] => Said::Uploaded(position.parse().ok()?),
            _ => return None,
        })
    }
}

/// Lets the writer run for a while, kills it, and returns everything it had said by then.
pub fn kill_after(child: &mut Child, time: Duration) -> Result<Vec<Line>, String> {
    let output = child.stdout.take().ok_or("the writer has no output")?;
    let reader = std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut lines = Vec::new();
        let mut line = String::new();
        // A line cut off by the kill need not count as committed.
        while output.read_line(&mut line).is_ok_and(|count| count > 0) && line.ends_with('\n') {
            let what = Said::of(line.trim_end()).ok_or(format!("the writer said {line:?}"))?;
            lines.push(Line { what, at: Instant::now() });
            line.clear();
        }
        Ok(lines)
    });
    std::thread::sleep(time);
    let early = child.try_wait().map_err(|error| error.to_string())?;
    // SIGKILL on Unix.
    let _ = child.kill();
    child.wait().map_err(|error| error.to_string())?;
    let lines = reader.join().map_err(|_| "the reader of the writer's output panicked")?;
    match early {
        Some(status) => Err(format!("the writer ended by itself: {status}")),
        None => lines,
    }
}
