//! Shared by the workloads: temporary folders, medians, opening Nacre and SQLite.

use nacredb::{Database, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A result whose error is only printed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A temporary folder that is removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder.
    pub fn new(name: &str) -> Outcome<Folder> {
        let path = std::env::temp_dir().join(format!("nacre-bench-{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Returns a path inside the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Opens Nacre in a folder.
pub fn open(path: &Path, options: Options) -> Outcome<Database> {
    Ok(nacre_native::block_on(Database::open(nacre_native::open_folder(path)?, options))?)
}

/// Opens SQLite with a write-ahead log and full synchronisation.
pub fn open_sqlite(path: &Path) -> Outcome<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Reads and verifies the whole database. Fails the workload on any problem.
pub fn check(db: &Database) -> Outcome<()> {
    let problems = db.check()?;
    if problems.is_empty() { Ok(()) } else { Err(format!("check: {problems:?}").into()) }
}

/// Returns the processor time of this process in seconds, over all its threads; 0 where the system
/// does not report it.
pub fn processor_time() -> Outcome<f64> {
    let Ok(text) = std::fs::read_to_string("/proc/self/stat") else { return Ok(0.0) };
    // After the name in parentheses: user and system time are the 12th and 13th field, in
    // hundredths of a second.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u64>)
        .sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}

/// Returns the processor time of the calling thread in nanoseconds; 0 where the system does not
/// report it.
#[allow(unsafe_code, reason = "a system call")]
pub fn thread_time_ns() -> Outcome<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the time that it is given.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Ok(0),
    }
}

/// Returns the bytes of all files in a folder.
pub fn folder_bytes(path: &Path) -> Outcome<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(path)? {
        total += entry?.metadata()?.len();
    }
    Ok(total)
}

/// Evicts a synced file from the page cache of the operating system.
#[allow(unsafe_code, reason = "a system call")]
pub fn forget_cached(path: &Path) -> Outcome<()> {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open(path)?;
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code).into()),
    }
}

/// Returns the median.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the seconds that `work` takes.
pub fn seconds(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64())
}

/// Returns the result of `work` and the seconds it takes.
pub fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let started = Instant::now();
    let answer = work()?;
    Ok((answer, started.elapsed().as_secs_f64()))
}
