//! Restricts threads to processors, so that each side of a workload has the same processor time
//! alone and beside the other.

use crate::measure::Outcome;

/// The processors that this process may use, by number; none where the system does not say.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a system call")]
pub fn processors() -> Vec<usize> {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the set, whose size it is given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: every number is within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|at| unsafe { libc::CPU_ISSET(*at, &set) }).collect()
}

/// Restricts a thread of this process, 0 for the calling one, to these processors.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a system call")]
fn pin(thread: i32, processors: &[usize]) -> Outcome<()> {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for at in processors {
        // SAFETY: the number was in a set of this size.
        unsafe { libc::CPU_SET(*at, &mut set) };
    }
    // SAFETY: the call reads the set, whose size it is given.
    match unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

/// Restricts the calling thread to these processors.
#[cfg(target_os = "linux")]
pub fn pin_this_thread(processors: &[usize]) -> Outcome<()> {
    pin(0, processors)
}

/// Restricts all threads of this process, and those that they start from now on.
#[cfg(target_os = "linux")]
pub fn pin_all_threads(processors: &[usize]) -> Outcome<()> {
    for entry in std::fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        // A thread may have ended since.
        pin(name.to_string_lossy().parse()?, processors).ok();
    }
    pin_this_thread(processors)
}

#[cfg(not(target_os = "linux"))]
pub fn processors() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub fn pin_this_thread(_: &[usize]) -> Outcome<()> {
    Err("threads cannot be restricted to processors on this system".into())
}

#[cfg(not(target_os = "linux"))]
pub fn pin_all_threads(processors: &[usize]) -> Outcome<()> {
    pin_this_thread(processors)
}
