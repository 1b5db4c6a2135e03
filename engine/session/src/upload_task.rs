//! The host's task for uploads, beside the one for other background work: a call of a blob store may take
//! seconds.

use nacre_host::{Background, Host, Parallelism, Resident, Rest, Uploads};
use std::sync::{Arc, Weak};

/// Uploads, with the host's task for them if it has one.
pub(crate) struct UploadTask {
    uploads: Arc<dyn Uploads>,
    _task: Option<Arc<dyn Background>>,
}

impl UploadTask {
    /// Starts a task that takes steps as long as the uploads exist. Where threads cannot block, the host calls
    /// for steps itself.
    pub fn start(uploads: Arc<dyn Uploads>, host: &Host) -> UploadTask {
        let (weak, threads) = (Arc::downgrade(&uploads), host.parallelism.clone());
        let task = host.parallelism.background(Box::new(move || step(&weak, &*threads)));
        let task: Option<Arc<dyn Background>> = task.map(Arc::from);
        if let Some(task) = &task {
            let woken = Arc::downgrade(task);
            uploads.on_change(Box::new(move || {
                if let Some(task) = woken.upgrade() {
                    task.wake();
                }
            }));
            // A database that only reads changes nothing, and has a lease to take.
            task.wake();
        }
        UploadTask { uploads, _task: task }
    }

    pub fn uploads(&self) -> &Arc<dyn Uploads> {
        &self.uploads
    }
}

/// Takes a step, and blocks the thread meanwhile.
fn step(uploads: &Weak<dyn Uploads>, threads: &dyn Parallelism) -> Rest {
    let Some(uploads) = uploads.upgrade() else { return Rest::UntilWoken };
    let mut rest = Rest::UntilWoken;
    threads.wait(Box::pin(async {
        rest = uploads.step().await?;
        Ok(Resident::new(()))
    }));
    rest
}
