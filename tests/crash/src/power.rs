//! Power cuts within one process: runs the same workload on a store in memory that fails from a
//! chosen step on, and then keeps a subset of its unsynced writes, as a power cut would
//! (`FaultStore` states the fault model). One thread does all the work, so that a seed is
//! deterministic.

use crate::drive::Settings;
use crate::many::SMALL;
use crate::verify::{Promises, verify};
use crate::writer::{commit, options, prepare};
use nacre_native::{block_on, memory_host};
use nacre_testing::FaultStore;
use nacre_testing::Random;
use nacredb::host::LocalStore;
use nacredb::host::memory::MemoryStore;
use nacredb::{Budget, Database, Host, Result};
use std::sync::Arc;

/// Maximum number of commits between two cuts.
const COMMITS: u64 = 60;

/// Runs everything. Returns `true` if nothing was wrong.
pub fn power(settings: &Settings) -> std::result::Result<bool, String> {
    let (mut lost, mut phantom, mut committed) = (0, 0, 0);
    let mut sound = true;
    let mut story = 0;
    let mut runs = 0;
    while runs < settings.times && sound {
        let seed = settings.seed.wrapping_add(story);
        story += 1;
        let mut random = Random::new(seed);
        let mut files: Arc<dyn LocalStore> = Arc::new(MemoryStore::new());
        let mut promises = Promises::new(settings.threads, SMALL);
        for cut in 0..settings.kills_per_folder {
            runs += 1;
            let findings =
                cut_once(&mut files, &mut promises, &mut random, settings.lie.as_deref());
            let messages = match findings {
                Ok(findings) => {
                    lost += findings.lost;
                    phantom += findings.phantom;
                    findings.messages
                }
                Err(error) => vec![error.to_string()],
            };
            for message in &messages {
                eprintln!("seed {seed}, cut {cut}: {message}");
            }
            if !messages.is_empty() {
                sound = false;
                eprintln!(
                    "again: nacre-crash power --times {} --seed {seed}",
                    settings.kills_per_folder
                );
                break;
            }
        }
        committed += promises.models.iter().map(|model| model.seq).sum::<i64>();
    }
    eprintln!("{committed} transactions committed");
    println!("power: runs={runs} lost={lost} phantom={phantom}");
    Ok(sound)
}

fn host_of(faults: &FaultStore) -> Host {
    Host { store: Arc::new(faults.clone()), ..memory_host() }
}

/// The store after a power cut. Its random choices are derived from the run's.
fn after_cut(faults: &FaultStore, random: &mut Random) -> Arc<dyn LocalStore> {
    faults.after_crash(&mut Random::new(random.bits()))
}

/// Works until the power fails, recovers, and compares.
fn cut_once(
    files: &mut Arc<dyn LocalStore>,
    promises: &mut Promises,
    random: &mut Random,
    lie: Option<&str>,
) -> Result<crate::verify::Findings> {
    let faults = FaultStore::with_files_of(files.as_ref());
    if let Some(prefix) = lie {
        faults.lie_about_syncs_of(prefix);
    }
    // Half of the cuts come early, during recovery and the first commits.
    let steps = if random.below(2) == 0 { random.below(40) } else { random.below(600) };
    faults.fail_after(steps as usize);
    let outcome = work(&faults, promises, random);
    *files = after_cut(&faults, random);
    match outcome {
        Err(error) if !error.message().contains("injected") => {
            return Err(error.context("before the cut"));
        }
        _ => {}
    }

    // The power may fail again during recovery.
    if random.below(3) == 0 {
        let faults = FaultStore::with_files_of(files.as_ref());
        faults.fail_after(random.below(12) as usize);
        drop(block_on(Database::open(host_of(&faults), options())));
        *files = after_cut(&faults, random);
    }
    let faults = FaultStore::with_files_of(files.as_ref());
    let findings = verify(host_of(&faults), options(), promises, random.below(2) == 0)?;
    // What recovery has shown must also survive an immediate second cut.
    *files = after_cut(&faults, random);
    Ok(findings)
}

fn work(faults: &FaultStore, promises: &mut Promises, random: &mut Random) -> Result<()> {
    let db = block_on(Database::open(host_of(faults), options()))?;
    let mut session = db.session();
    prepare(&mut session)?;
    promises.ready = true;
    for _ in 0..COMMITS {
        let thread = random.below(promises.models.len() as u64) as usize;
        let model = &mut promises.models[thread];
        let step = model.next_step();
        commit(&mut session, model, &step)?;
        model.apply(&step);
        if random.below(4) == 0 {
            db.maintain(Budget::Steps(1))?;
        }
        if random.below(12) == 0 {
            block_on(session.execute("optimize table items", &[]))?;
        }
    }
    Ok(())
}
