//! The threads that serve the network and the disk: two for all stores of the process, and more for calls
//! of the file system while there are some.
//!
//! An answer of theirs can be polled on any thread and by any driver, also inside an application's own
//! tokio runtime. Dropping it aborts the work.

use nacre_host::{Answer, Error, Result};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

const THREADS: usize = 2;
/// Calls of the file system at the same time.
const BLOCKING_THREADS: usize = 16;

/// Lives as long as the process: dropping a runtime on a thread of another one would panic.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

fn handle() -> Result<Handle> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if runtime.is_none() {
        let built = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("nacre-blobs")
            .enable_all()
            .build()
            .map_err(|error| Error::io(format!("cannot start threads for blobs: {error}")))?;
        *runtime = Some(built);
    }
    match &*runtime {
        Some(runtime) => Ok(runtime.handle().clone()),
        None => Err(Error::io("there are no threads for blobs")),
    }
}

/// An answer that is worked out on the threads of this module, from when it is polled first.
pub(crate) fn answer<'a, T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Answer<'a, T> {
    Box::pin(async move { Task(handle()?.spawn(work)).await })
}

/// Like [`answer`], for work that blocks its thread.
pub(crate) fn blocking<'a, T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Answer<'a, T> {
    Box::pin(async move { Task(handle()?.spawn_blocking(work)).await })
}

/// A running task, which is aborted on drop.
struct Task<T>(JoinHandle<Result<T>>);

impl<T> Future for Task<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.0).poll(context).map(|joined| match joined {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Error::closed("the process is ending")),
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
