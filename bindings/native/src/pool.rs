//! Threads that run the closures of parallel scans.
//!
//! Invariants: a task borrowed from a caller is never used after [`ThreadPool::run`] has returned.
//! The caller works too, so a run always ends, even if every thread is busy, and a task may itself
//! run tasks.

use crate::background::BackgroundThread;
use crate::run::block_on;
use nacre_host::{Background, BackgroundTask, Fetch, Parallelism, Resident, Result};
use std::any::Any;
use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

type Task = dyn Fn(usize) + Sync;

/// A fixed number of threads, started when the pool is created and ended when it is dropped.
///
/// ```
/// use nacre_host::Parallelism;
/// use nacre_native::ThreadPool;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// ThreadPool::new(2).run(10, &|index| {
///     sum.fetch_add(index, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 45);
/// ```
pub struct ThreadPool {
    width: usize,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// Jobs that may have tasks left to start.
    jobs: VecDeque<Arc<Job>>,
    closed: bool,
}

struct Job {
    /// Borrowed from the caller of `run`, with its lifetime erased. Dereferenced only for an index
    /// below `count` taken from `next`; `run` waits until all of these are done.
    task: *const Task,
    count: usize,
    next: AtomicUsize,
    done: Mutex<Done>,
    ended: Condvar,
}

#[derive(Default)]
struct Done {
    count: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: the pointer is to a `Sync` closure and is used as documented at the field.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Runs tasks until all have been started.
    fn work(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count {
                return;
            }
            // SAFETY: this index is not done yet, so `run` has not returned and the closure is
            // alive.
            let task = unsafe { &*self.task };
            let result = catch_unwind(AssertUnwindSafe(|| task(index)));
            let mut done = lock(&self.done);
            done.count += 1;
            if let Err(panic) = result {
                done.panic.get_or_insert(panic);
            }
            if done.count == self.count {
                self.ended.notify_all();
            }
        }
    }

    fn is_started(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.count
    }
}

impl ThreadPool {
    /// Creates a pool that runs up to `width` tasks at once, one of them on the caller's thread.
    pub fn new(width: usize) -> ThreadPool {
        let queue = Arc::new(Queue::default());
        for number in 1..width {
            let queue = queue.clone();
            let thread = std::thread::Builder::new().name(format!("nacre-{number}"));
            // If the system refuses threads, the others run all tasks.
            let _ = thread.spawn(move || queue.serve());
        }
        ThreadPool { width: width.max(1), queue }
    }

    /// Returns the pool of this process, which has one thread per CPU. All open databases share it.
    pub fn shared() -> Arc<ThreadPool> {
        static SHARED: OnceLock<Mutex<Weak<ThreadPool>>> = OnceLock::new();
        let mut shared = lock(SHARED.get_or_init(Mutex::default));
        shared.upgrade().unwrap_or_else(|| {
            let width = std::thread::available_parallelism().map_or(1, NonZero::get);
            let pool = Arc::new(ThreadPool::new(width));
            *shared = Arc::downgrade(&pool);
            pool
        })
    }
}

impl Queue {
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            while state.jobs.front().is_some_and(|job| job.is_started()) {
                state.jobs.pop_front();
            }
            match state.jobs.front().cloned() {
                Some(job) => {
                    drop(state);
                    job.work();
                    state = lock(&self.state);
                }
                None if state.closed => return,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Parallelism for ThreadPool {
    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        Some(Box::new(BackgroundThread::new(task)))
    }

    fn width(&self) -> usize {
        self.width
    }

    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        Some(block_on(fetch))
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        if count <= 1 || self.width == 1 {
            (0..count).for_each(task);
            return;
        }
        let task: *const (dyn Fn(usize) + Sync + '_) = task;
        // SAFETY: only the lifetime changes; this function does not return while the closure may be
        // called.
        let task =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Task>(task) };
        let job = Arc::new(Job {
            task,
            count,
            next: AtomicUsize::new(0),
            done: Mutex::new(Done::default()),
            ended: Condvar::new(),
        });
        lock(&self.queue.state).jobs.push_back(job.clone());
        if count > 2 {
            self.queue.changed.notify_all()
        } else {
            self.queue.changed.notify_one()
        }
        job.work();
        lock(&self.queue.state).jobs.retain(|queued| !Arc::ptr_eq(queued, &job));
        let mut done = lock(&job.done);
        while done.count < count {
            done = job.ended.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(panic) = done.panic.take() {
            drop(done);
            resume_unwind(panic);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        lock(&self.queue.state).closed = true;
        self.queue.changed.notify_all();
    }
}
