//! io_uring compared with plain calls, on the same files: cold random reads in batches through
//! `LocalFile::read`, and durable single-row commits with 1 and 16 clients. Ratios above 1 mean
//! that the ring is faster; a batch of one is a plain call on both sides and shows the noise.

use crate::commit;
use crate::measure::{Folder, Outcome, check, forget_cached, median, seconds};
use crate::options::Options;
use nacre_native::{FileIo, FolderStore, block_on};
use nacre_testing::Random;
use nacredb::Database;
use nacredb::host::{LocalStore, ReadRange};
use std::path::Path;
use std::sync::atomic::AtomicI64;

const FILE_BYTES: u64 = 1 << 30;
const RANGE_BYTES: usize = 16 << 10;
const READS: usize = 512;

pub fn run(options: &Options) -> Outcome<()> {
    let rounds: usize = options.get("rounds", 5)?;
    let folder = Folder::new("io")?;
    let mut figures = Vec::new();
    let (plain_path, ring_path) = (folder.join("plain"), folder.join("ring"));
    for path in [&plain_path, &ring_path] {
        make_file(path)?;
    }
    println!(
        "{READS} cold random reads of {RANGE_BYTES} bytes in a file of {FILE_BYTES}, {rounds} rounds"
    );
    println!("{:>7} {:>12} {:>12} {:>7}", "batch", "plain /s", "io_uring /s", "ratio");
    for batch in [1, 4, 16, 64] {
        let (mut plain, mut ring) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let seed = (batch * 1_000 + round) as u64;
            plain.push(READS as f64 / cold_reads(&plain_path, FileIo::Plain, batch, seed)?);
            ring.push(READS as f64 / cold_reads(&ring_path, FileIo::Uring, batch, seed)?);
        }
        let (plain, ring) = (median(&mut plain), median(&mut ring));
        println!("{batch:>7} {plain:>12.0} {ring:>12.0} {:>7.2}", ring / plain);
        figures.push(format!("reads{batch}={:.2}", ring / plain));
    }

    let open = |name: &str, io: FileIo| -> Outcome<Database> {
        let host = nacre_native::open_folder_with(&folder.join(name), io)?;
        let db = block_on(Database::open(host, nacredb::Options::default()))?;
        block_on(db.session().execute(commit::CREATE, &[]))?;
        Ok(db)
    };
    let (plain_db, ring_db) = (open("plain-db", FileIo::Plain)?, open("ring-db", FileIo::Uring)?);
    let next = AtomicI64::new(0);
    for clients in [1, 16] {
        let (mut plain, mut ring) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            plain.push(commit::rate(clients, || commit::nacre_writer(&plain_db), &next)?);
            ring.push(commit::rate(clients, || commit::nacre_writer(&ring_db), &next)?);
        }
        let (plain, ring) = (median(&mut plain), median(&mut ring));
        println!(
            "{clients:>2} clients: plain {plain:>8.0} commits/s   io_uring {ring:>8.0}/s   {:.2}",
            ring / plain
        );
        figures.push(format!("commit{clients}={:.2}", ring / plain));
    }
    check(&plain_db)?;
    check(&ring_db)?;
    println!("io: {}", figures.join(" "));
    Ok(())
}

fn make_file(folder: &Path) -> Outcome<()> {
    let store = FolderStore::open_with(folder, FileIo::Plain)?;
    let file = store.create("data")?;
    let chunk: Vec<u8> = (0..1 << 20).map(|i: u32| (i * 31) as u8).collect();
    for at in (0..FILE_BYTES).step_by(chunk.len()) {
        file.write(at, &chunk)?;
    }
    Ok(file.sync()?)
}

/// Returns the seconds that all reads of a round take, with nothing cached before.
fn cold_reads(folder: &Path, io: FileIo, batch: usize, seed: u64) -> Outcome<f64> {
    forget_cached(&folder.join("data"))?;
    let store = FolderStore::open_with(folder, io)?;
    let file = store.open("data")?;
    let mut random = Random::new(seed);
    let mut buffers = vec![vec![0u8; RANGE_BYTES]; batch];
    seconds(|| {
        for _ in 0..READS / batch {
            let mut ranges: Vec<ReadRange<'_>> = buffers
                .iter_mut()
                .map(|buffer| ReadRange {
                    offset: random.below(FILE_BYTES / RANGE_BYTES as u64) * RANGE_BYTES as u64,
                    buffer,
                })
                .collect();
            file.read(&mut ranges)?;
        }
        Ok(())
    })
}
