//! A machine of the simulation: a disk, the database on it, and the step of uploads that it is in the middle
//! of. That step goes on inside calls of the disk, too.

use crate::clock::SimClock;
use crate::disk::{Call, Class, Disk};
use crate::hook::Hook;
use nacre_testing::Random;
use nacredb::host::{Fetch, Parallelism, Resident, Rest};
use nacredb::{Database, Result};
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Polls after which a future waits for ever.
const MOST_POLLS: u64 = 1_000_000;

/// Polls a future until it is ready; time passes meanwhile.
pub fn drive<T>(clock: &SimClock, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..MOST_POLLS {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        clock.advance_us(500);
    }
    panic!("waited for ever")
}

/// Threads of a machine, which may wait or not.
pub struct Threads {
    /// The simulated time.
    pub clock: Arc<SimClock>,
    /// Whether they must not block.
    pub never_block: bool,
}

impl Parallelism for Threads {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }

    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        (!self.never_block).then(|| drive(&self.clock, fetch))
    }
}

type Step = Pin<Box<dyn Future<Output = Result<Rest>>>>;

/// The uploads of a machine.
#[derive(Default)]
pub struct Uploading {
    step: RefCell<Option<Step>>,
}

impl Uploading {
    /// Polls the step in progress, or the next one, a number of times. Returns whether there was nothing to do.
    pub fn poll(&self, db: &Database, polls: u64) -> bool {
        for _ in 0..polls {
            let mut step = self.step.take().unwrap_or_else(|| {
                let db = db.clone();
                Box::pin(async move { db.upload_step().await })
            });
            match step.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Rest::No)) => {}
                Poll::Ready(_) => return true,
                Poll::Pending => *self.step.borrow_mut() = Some(step),
            }
        }
        false
    }

    /// Gives the step in progress up.
    pub fn give_up(&self) {
        drop(self.step.take());
    }
}

/// A machine.
pub struct Machine {
    /// Its disk.
    pub disk: Disk,
    /// The database, unless the machine is down.
    pub db: Option<Database>,
    /// Its uploads.
    pub uploading: Rc<Uploading>,
}

impl Machine {
    /// A machine with an empty disk.
    pub fn new(seed: u64, clock: &Arc<SimClock>) -> Machine {
        Machine { disk: Disk::new(seed, clock.clone()), db: None, uploading: Rc::default() }
    }

    /// Ends the process; what was being uploaded is given up.
    pub fn stop(&mut self) {
        self.uploading.give_up();
        self.db = None;
    }
}

/// Lets uploads go on inside calls of the disk.
pub struct Inside {
    db: Database,
    uploading: Rc<Uploading>,
    random: RefCell<Random>,
    is_inside: RefCell<bool>,
}

impl Inside {
    /// Uploads of a machine, inside its calls.
    pub fn new(machine: &Machine, random: Random) -> Option<Rc<Inside>> {
        let db = machine.db.clone()?;
        let uploading = machine.uploading.clone();
        let (random, is_inside) = (RefCell::new(random), RefCell::new(false));
        Some(Rc::new(Inside { db, uploading, random, is_inside }))
    }
}

impl Hook for Inside {
    fn before(&self, _: Call, _: Class) {
        let polls = {
            let mut random = self.random.borrow_mut();
            if random.percent(20) { 1 + random.below(8) } else { 0 }
        };
        if polls == 0 || self.is_inside.replace(true) {
            return;
        }
        self.uploading.poll(&self.db, polls);
        self.is_inside.replace(false);
    }

    fn log_synced(&self) {}
}
