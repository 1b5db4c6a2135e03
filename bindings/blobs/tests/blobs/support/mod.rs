//! What the tests of blob stores share: a folder, a server that is told what to answer, and a real one.

pub mod gateway;
pub mod proxy;
pub mod server;

use nacre_blobs::{BlobOptions, Credential, Credentials, open_blobs};
use nacre_host::BlobStore;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A test's own folder, removed on drop.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-blobs-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer, as a thread of the engine does: it knows nothing of tokio.
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(Duration::from_secs(1)),
        }
    }
}

/// The credentials that the servers of the tests accept.
pub fn key() -> Credential {
    Credential::Key { id: "tester".into(), secret: "not-a-secret".into(), session_token: None }
}

/// Options for a server on this machine, which is not waited for long.
pub fn options(endpoint: &str) -> BlobOptions {
    BlobOptions {
        endpoint: Some(endpoint.to_string()),
        credentials: Credentials::Fixed(key()),
        idle_timeout: Duration::from_millis(500),
        retry_for: Duration::from_secs(10),
        ..BlobOptions::default()
    }
}

/// Opens a store on such a server.
pub fn open(url: &str, options: &BlobOptions) -> Arc<dyn BlobStore> {
    open_blobs(url, options).unwrap()
}
