//! Kills writers, removes their folder, and opens the database from its blobs: a machine that is gone.
//!
//! A writer says up to which position of the log it has uploaded, and the position after each commit.
//! So it is known which commits must be there, without a clock: those up to the last position it called
//! uploaded, or all that were acknowledged where commits wait for their upload. Of the others, each
//! thread's must be there up to some commit. With `--relaxed 1` beside `--held 1` commits do not wait, which
//! must be reported as lost commits.

use crate::drive::{Line, Said, Settings, kill_after, start_writer};
use crate::many::LARGE;
use crate::verify::{Findings, Promises, verify};
use crate::writer::{Acknowledges, Uploading, with_blobs};
use nacre_native::memory_host;
use nacre_testing::Random;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A machine whose disk is lost again and again, and its blobs, which are not.
struct Machine {
    disk: PathBuf,
    blobs: PathBuf,
    promises: Promises,
}

/// What was found in all runs.
#[derive(Default)]
struct Total {
    runs: u64,
    lost: u64,
    phantom: u64,
    committed: i64,
    /// Acknowledged commits that went with the disk, as they may.
    gone: i64,
    /// Those of them that were acknowledged longer than the lag before.
    late: i64,
    /// The longest time between the acknowledgement of one of these and the kill.
    oldest_gone: Duration,
}

/// Runs everything. Returns `true` if nothing was wrong.
pub fn disk(settings: &Settings) -> Result<bool, String> {
    let mut random = Random::new(settings.seed);
    let mut total = Total::default();
    let mut sound = true;
    while total.runs < settings.times && sound {
        let parent =
            settings.folder.join(format!("nacre-crash-disk-{}-{}", std::process::id(), total.runs));
        let _ = std::fs::remove_dir_all(&parent);
        let mut machine = Machine {
            disk: parent.join("disk"),
            blobs: parent.join("blobs"),
            promises: Promises::new(settings.threads, LARGE),
        };
        for _ in 0..settings.kills_per_folder.min(settings.times - total.runs) {
            // Occasionally while it opens from the blobs, usually during work.
            let after_ms = if random.below(5) == 0 {
                1 + random.below(100)
            } else {
                100 + random.below(1_000 + 2 * settings.lag.as_millis() as u64)
            };
            total.runs += 1;
            let messages = match lose_once(&mut machine, settings, after_ms, &mut total) {
                Ok(findings) => {
                    total.lost += findings.lost;
                    total.phantom += findings.phantom;
                    findings.messages
                }
                Err(message) => vec![message],
            };
            for message in &messages {
                eprintln!("run {}, killed after {after_ms} ms: {message}", total.runs);
            }
            if !messages.is_empty() {
                sound = false;
                eprintln!("the blobs are kept: {}", machine.blobs.display());
                break;
            }
        }
        total.committed += machine.promises.models.iter().map(|model| model.seq).sum::<i64>();
        if sound {
            let _ = std::fs::remove_dir_all(&parent);
        }
    }
    eprintln!(
        "{} transactions survived; {} went with a disk, the oldest {} ms after its acknowledgement",
        total.committed,
        total.gone,
        total.oldest_gone.as_millis()
    );
    let Total { runs, lost, phantom, late, .. } = total;
    println!("disk: runs={runs} lost={lost} phantom={phantom} late={late}");
    Ok(sound)
}

fn lose_once(
    machine: &mut Machine,
    settings: &Settings,
    after_ms: u64,
    total: &mut Total,
) -> Result<Findings, String> {
    let acknowledges = match settings.held && !settings.relaxed {
        true => Acknowledges::Uploaded,
        false => Acknowledges::Local,
    };
    let Machine { disk, blobs, promises } = machine;
    let uploading = Uploading { folder: blobs, lag: settings.lag };
    let mut child = start_writer(disk, settings.threads, acknowledges, Some(&uploading))?;
    let said = kill_after(&mut child, Duration::from_millis(after_ms))?;
    let killed = Instant::now();
    let _ = std::fs::remove_dir_all(&disk);

    let commits = promise(promises, &said, settings.held)?;
    let options = with_blobs(&uploading, Acknowledges::Local).map_err(|error| error.to_string())?;
    let findings = verify(memory_host(), options, promises, false)
        .map_err(|error| format!("verifying: {error}"))?;
    for (thread, seq, at) in commits {
        if seq >= promises.models[thread].seq {
            total.gone += 1;
            total.late += i64::from(killed - at > settings.lag);
            total.oldest_gone = total.oldest_gone.max(killed - at);
        }
    }
    promises.ready |= promises.models.iter().any(|model| model.seq > 0);
    Ok(findings)
}

/// Notes which commits must be there, and how many others may. Returns all that were acknowledged.
fn promise(
    promises: &mut Promises,
    said: &[Line],
    held: bool,
) -> Result<Vec<(usize, i64, Instant)>, String> {
    let uploaded = said.iter().filter_map(|line| match line.what {
        Said::Uploaded(position) => Some(position),
        _ => None,
    });
    let uploaded = uploaded.max().unwrap_or(0);
    let mut commits = Vec::new();
    promises.further.fill(1);
    for line in said {
        match line.what {
            Said::Ready => promises.ready |= held,
            Said::Committed { thread, seq, position } => {
                commits.push((thread, seq, line.at));
                if held || position <= uploaded {
                    promises.committed(thread, seq)?;
                } else {
                    promises.further[thread] += 1;
                }
            }
            Said::Uploaded(_) => {}
        }
    }
    Ok(commits)
}
