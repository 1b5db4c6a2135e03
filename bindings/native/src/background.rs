//! A thread that runs a background task when it is woken.
//!
//! The thread starts with the first wake-up, so that a database that only reads has none. If the
//! system refuses it, the next wake-up tries again.

use nacre_host::{Background, BackgroundTask, Rest};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A background task and its thread.
pub(crate) struct BackgroundThread {
    signal: Arc<Signal>,
    thread: Mutex<Thread>,
    /// Size of the thread's stack; the system's default if `None`.
    stack_bytes: Option<usize>,
}

struct Thread {
    /// The task, until the thread takes it.
    task: Arc<Mutex<Option<BackgroundTask>>>,
    /// `None` until the system has given a thread.
    running: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    is_ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BackgroundThread {
    pub(crate) fn new(task: BackgroundTask) -> BackgroundThread {
        let thread = Thread { task: Arc::new(Mutex::new(Some(task))), running: None };
        BackgroundThread { signal: Arc::default(), thread: Mutex::new(thread), stack_bytes: None }
    }

    /// Starts the thread. Returns `false` if the system refuses it.
    fn start(&self, thread: &mut Thread) -> bool {
        debug_assert!(lock(&thread.task).is_some(), "a background task is started twice");
        let (signal, task) = (self.signal.clone(), thread.task.clone());
        let named = std::thread::Builder::new().name("nacre-background".into());
        let sized = match self.stack_bytes {
            Some(bytes) => named.stack_size(bytes),
            None => named,
        };
        let spawned = sized.spawn(move || {
            let task = lock(&task).take();
            if let Some(task) = task {
                signal.serve(task);
            }
        });
        thread.running = spawned.ok();
        thread.running.is_some()
    }
}

impl Background for BackgroundThread {
    fn wake(&self) -> bool {
        let was_woken = std::mem::replace(&mut lock(&self.signal.state).is_woken, true);
        if was_woken {
            return true;
        }
        self.signal.changed.notify_one();
        let mut thread = lock(&self.thread);
        if thread.running.is_some() || self.start(&mut thread) {
            return true;
        }
        lock(&self.signal.state).is_woken = false;
        false
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        lock(&self.signal.state).is_ended = true;
        self.signal.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = thread.running.take() {
            // A panic of the task has been reported by its thread.
            handle.join().ok();
        }
    }
}

impl Signal {
    fn serve(&self, mut task: BackgroundTask) {
        let mut rest = Rest::UntilWoken;
        while self.wait(rest) {
            rest = task();
        }
    }

    /// Waits until the task is to run again. Returns `false` if it has ended.
    fn wait(&self, rest: Rest) -> bool {
        let mut state = lock(&self.state);
        let idle = |state: &mut State| !state.is_woken && !state.is_ended;
        match rest {
            Rest::No => {}
            Rest::For(time) => {
                let waited = self.changed.wait_timeout_while(state, time, idle);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            Rest::UntilWoken => {
                let waited = self.changed.wait_while(state, idle);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.is_woken = false;
        !state.is_ended
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_refused_thread_is_told_and_asked_for_again() {
        let (ran, runs) = mpsc::channel();
        let task = Box::new(move || {
            ran.send(()).unwrap();
            Rest::UntilWoken
        });
        // No address space has room for such a stack.
        let mut background = BackgroundThread::new(task);
        background.stack_bytes = Some(1 << 60);
        assert!(!background.wake());
        assert!(!background.wake(), "it is refused again");
        assert!(runs.try_recv().is_err());
        background.stack_bytes = None;
        assert!(background.wake());
        runs.recv().unwrap();
        assert!(background.wake());
        runs.recv().unwrap();
    }
}
