//! Ensures that only one process at a time opens a folder: an exclusive lock on the file `LOCK`,
//! held until the store and all its files are dropped. The system releases it when the process ends
//! for any reason; the file itself stays.
//!
//! JavaScript runtimes have no such locks. They use a directory `LOCK.node`, which is unlocked when
//! it is empty. In it the owner listens on a socket `<id>`, and identifies itself in a file
//! `<id>.owner`: `<process id> <start time in clock ticks> <boot id> <PID namespace> socket`, where
//! each of the last four is empty if the system does not have it. A socket accepts connections as
//! long as its process lives, in any container; a process id is only meaningful in its own PID
//! namespace. The socket `LOCK.sock` lets JavaScript processes detect a native one in the same way.

use crate::io_error::io_error;
use nacre_host::{Error, LOCK_FILE, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

const SOCKET: &str = "LOCK.sock";
const SCRIPT_LOCK: &str = "LOCK.node";
const SCRIPT_OWNER: &str = ".owner";
/// Maximum length of a socket's path on some systems, in bytes.
const SOCKET_PATH_BYTES: usize = 100;

/// An exclusive lock on a folder, released on drop.
pub(crate) struct FolderLock {
    /// Never accepts connections: it is enough that the system completes them.
    listener: Option<(UnixListener, PathBuf)>,
    // Dropped after the socket is removed: the next owner creates a socket of that name.
    _file: File,
}

impl FolderLock {
    /// Takes the lock. Returns `in_use` if it is held.
    pub(crate) fn take(folder: &Path) -> Result<FolderLock> {
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| io_error(error, &path, "open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(folder, "")),
            Err(TryLockError::Error(error)) => return Err(io_error(error, &path, "lock")),
        }
        // Listen before checking for a JavaScript owner, so that one that checks at the same time
        // sees us.
        let lock = FolderLock { listener: listen(folder), _file: file };
        let script = folder.join(SCRIPT_LOCK);
        match script_owner(&script) {
            Owner::None => Ok(lock),
            Owner::Alive => Err(in_use(folder, " in a JavaScript process")),
            Owner::Elsewhere => Err(in_use(
                folder,
                ", or a JavaScript process that cannot be contacted left it locked",
            )
            .with_hint(format!("if no process has it open, remove {}", script.display()))),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if let Some((_, path)) = self.listener.take() {
            // The next owner removes a socket that is left behind.
            std::fs::remove_file(path).ok();
        }
    }
}

fn in_use(folder: &Path, by: &str) -> Error {
    Error::in_use(format!("{} is already open{by}", folder.display()))
        .with_hint("only one process at a time can open a database; close the other one")
}

/// Listens on the folder's socket, if the system and the file system support sockets.
fn listen(folder: &Path) -> Option<(UnixListener, PathBuf)> {
    let path = folder.join(SOCKET);
    // A socket left behind: its owner has ended, because we hold the lock.
    std::fs::remove_file(&path).ok();
    let listener = with_short_path(folder, SOCKET, |path| UnixListener::bind(path))?.ok()?;
    Some((listener, path))
}

/// Calls `call` with a path to `name` in a folder that is short enough for a socket. Returns `None`
/// if there is no such path.
fn with_short_path<T>(folder: &Path, name: &str, call: impl FnOnce(&Path) -> T) -> Option<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Some(call(&path));
    }
    let folder = File::open(folder).ok()?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    through.exists().then(|| call(&through.join(name)))
}

/// State of the lock of JavaScript processes.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    None,
    Alive,
    /// Unknown: the owner cannot be contacted, for example because it is in another PID namespace.
    Elsewhere,
}

/// Returns the state of the first owner named in the lock that may be alive.
fn script_owner(lock: &Path) -> Owner {
    let entries = match std::fs::read_dir(lock) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Owner::None;
        }
        // The owner of an unreadable lock is unknown.
        Err(_) => return Owner::Elsewhere,
    };
    for entry in entries {
        let Ok(entry) = entry else { return Owner::Elsewhere };
        let name = entry.file_name();
        let Some(name) = name.to_str() else { return Owner::Elsewhere };
        match owner_named(lock, name.strip_suffix(SCRIPT_OWNER).unwrap_or(name)) {
            Owner::None => {}
            other => return other,
        }
    }
    Owner::None
}

fn owner_named(lock: &Path, id: &str) -> Owner {
    if id.len() != 10 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Owner::Elsewhere;
    }
    let text = match std::fs::read(lock.join(format!("{id}{SCRIPT_OWNER}"))) {
        Ok(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        // The lock is being released.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => return Owner::Elsewhere,
    };
    match with_short_path(lock, id, |path| UnixStream::connect(path).map_err(|error| error.kind()))
    {
        Some(Ok(_) | Err(ErrorKind::WouldBlock)) => return Owner::Alive,
        Some(Err(ErrorKind::ConnectionRefused)) => return Owner::None,
        _ => {}
    }
    let Some(text) = text else { return Owner::None };
    let mut fields = text.trim_end_matches('\n').split(' ');
    let Some(process) = fields.next().and_then(|id| id.parse::<u32>().ok()) else {
        return Owner::None;
    };
    let mut field = || fields.next().filter(|text| !text.is_empty());
    let (started, boot, namespace, socket) = (field(), field(), field(), field());
    if socket.is_some() && !lock.join(id).exists() {
        // The process exited normally, but without closing the database.
        return Owner::None;
    }
    if let (Some(boot), Some((our_boot, our_namespace))) = (boot, place()) {
        if boot != our_boot {
            return Owner::None;
        }
        if namespace.is_some_and(|namespace| namespace != our_namespace) {
            return Owner::Elsewhere;
        }
    }
    match is_running(process, started) {
        true => Owner::Alive,
        false => Owner::None,
    }
}

/// The scope in which a process id is meaningful: the boot id and the PID namespace.
fn place() -> Option<(String, String)> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some((boot.trim_end().to_string(), namespace.to_string_lossy().into_owned()))
}

/// Whether a process of our PID namespace still runs. Without `/proc` it counts as running: opening
/// a folder twice would be worse than refusing to open it.
fn is_running(process: u32, started: Option<&str>) -> bool {
    if !Path::new("/proc/self/stat").exists() {
        return true;
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The start time is the 22nd field. The second field, the name, may contain any character and
    // ends with `)`.
    let now = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    started.is_none_or(|then| Some(then) == now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{FolderLock, Owner, SCRIPT_LOCK, place, script_owner};
    use nacre_host::ErrorKind;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;

    const ID: &str = "0123456789";
    const OWNER: &str = "0123456789.owner";

    /// Creates a new folder with a long name.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!(
            "nacre-{name}-{}-{}",
            std::process::id(),
            "x".repeat(100)
        ));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(path.join(SCRIPT_LOCK)).unwrap();
        path
    }

    #[test]
    fn an_owner_that_answers_lives_wherever_it_runs() {
        let place = folder("answers");
        let lock = place.join(SCRIPT_LOCK);
        // No process has this id, and none can have been started in that namespace.
        std::fs::write(lock.join(OWNER), "4194305 1 boot pid:[1] socket").unwrap();
        // A second owner that is dead makes no difference.
        std::fs::write(lock.join("0000000000.owner"), "4194305 1").unwrap();
        let listener =
            super::with_short_path(&lock, ID, |path| UnixListener::bind(path).unwrap()).unwrap();
        assert_eq!(script_owner(&lock), Owner::Alive);
        assert_eq!(FolderLock::take(&place).map(|_| ()).unwrap_err().kind(), ErrorKind::InUse);
        std::fs::remove_file(lock.join(OWNER)).unwrap();
        assert_eq!(script_owner(&lock), Owner::Alive, "the lock is being released");
        drop(listener);
        assert_eq!(script_owner(&lock), Owner::None);
        drop(FolderLock::take(&place).unwrap());
        std::fs::write(lock.join("notes"), "").unwrap();
        assert_eq!(script_owner(&lock), Owner::Elsewhere);
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_owner_in_another_container_is_not_looked_for_here() {
        let folder = folder("elsewhere");
        let lock = folder.join(SCRIPT_LOCK);
        let (boot, namespace) = place().unwrap();
        let ours = std::process::id();
        let owner = |text: String| {
            std::fs::write(lock.join(OWNER), text).unwrap();
            script_owner(&lock)
        };
        assert_eq!(owner(format!("{ours} 1 {boot} pid:[1] ")), Owner::Elsewhere);
        assert_eq!(FolderLock::take(&folder).map(|_| ()).unwrap_err().kind(), ErrorKind::InUse);
        assert_eq!(
            owner(format!("{ours} 1 {boot} pid:[1] socket")),
            Owner::None,
            "it exited normally"
        );
        assert_eq!(owner(format!("{ours} 1 another-boot {namespace}")), Owner::None);
        assert_eq!(
            owner(format!("{ours} 1 {boot} {namespace}")),
            Owner::None,
            "it started at another time"
        );
        assert_eq!(owner(format!("{ours}  {boot} {namespace} ")), Owner::Alive);
        assert_eq!(owner(format!("{ours} 1")), Owner::None);
        assert_eq!(owner(format!("{ours}")), Owner::Alive);
        assert_eq!(owner("no owner".into()), Owner::None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_socket_tells_that_the_folder_is_taken() {
        let folder = folder("socket");
        let connect = || {
            super::with_short_path(&folder, super::SOCKET, |path| UnixStream::connect(path))
                .unwrap()
        };
        let lock = FolderLock::take(&folder).unwrap();
        assert!(connect().is_ok());
        assert_eq!(FolderLock::take(&folder).map(|_| ()).unwrap_err().kind(), ErrorKind::InUse);
        assert!(connect().is_ok(), "a rejected process leaves the socket alone");
        drop(lock);
        assert!(connect().is_err());
        assert!(!folder.join(super::SOCKET).exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
