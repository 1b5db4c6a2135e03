//! A thread that runs a background task when it is woken.
//!
//! The thread starts with the first wake-up, so that a database that only reads has none.

use nacre_host::{Background, BackgroundTask, Rest};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A background task and its thread.
pub(crate) struct BackgroundThread {
    signal: Arc<Signal>,
    thread: Mutex<Thread>,
}

enum Thread {
    Unstarted(BackgroundTask),
    Running(JoinHandle<()>),
    /// The system refused a thread. Callers that are far behind do the work.
    Refused,
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
        BackgroundThread { signal: Arc::default(), thread: Mutex::new(Thread::Unstarted(task)) }
    }
}

impl Background for BackgroundThread {
    fn wake(&self) {
        let was_woken = std::mem::replace(&mut lock(&self.signal.state).is_woken, true);
        if was_woken {
            return;
        }
        self.signal.changed.notify_one();
        let mut thread = lock(&self.thread);
        if let Thread::Unstarted(_) = &*thread
            && let Thread::Unstarted(task) = std::mem::replace(&mut *thread, Thread::Refused)
        {
            let signal = self.signal.clone();
            let named = std::thread::Builder::new().name("nacre-background".into());
            if let Ok(handle) = named.spawn(move || signal.serve(task)) {
                *thread = Thread::Running(handle);
            }
        }
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        lock(&self.signal.state).is_ended = true;
        self.signal.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Thread::Running(handle) = std::mem::replace(thread, Thread::Refused) {
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
