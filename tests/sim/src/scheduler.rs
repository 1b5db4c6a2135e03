//! Runs sessions as futures on one thread, in an order that the seed determines, and inside each
//! other's disk calls.
//!
//! A session is polled when it was woken, and occasionally without a wake-up, which futures must
//! tolerate. If no session is awake, time advances to the first sleeper; if there is no sleeper
//! either, a wake-up was lost.

use crate::clock::SimClock;
use crate::disk::{Call, Class};
use crate::hook::Hook;
use crate::op::Weight;
use crate::world::World;
use nacre_testing::Random;
use nacredb::walked::{self, Path};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Maximum nesting of sessions inside each other's calls.
const MAX_DEPTH: usize = 3;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Slot {
    /// `None` while it is polled, and after it has ended.
    task: RefCell<Option<Task>>,
    woken: Arc<Flag>,
    done: RefCell<bool>,
    /// Whether the others' end does not wait for it.
    is_background: bool,
}

/// The sessions of one phase.
pub struct Scheduler {
    slots: RefCell<Vec<Rc<Slot>>>,
    world: Rc<RefCell<World>>,
    clock: Arc<SimClock>,
    random: RefCell<Random>,
    /// Percentage of calls during which other sessions run.
    nested_percent: u64,
}

impl Scheduler {
    /// Creates a scheduler without sessions.
    pub fn new(
        world: Rc<RefCell<World>>,
        clock: Arc<SimClock>,
        random: Random,
        nested_percent: u64,
    ) -> Scheduler {
        Scheduler {
            slots: RefCell::default(),
            world,
            clock,
            random: RefCell::new(random),
            nested_percent,
        }
    }

    /// Adds a session with the next number.
    pub fn add(&self, task: impl Future<Output = ()> + 'static) {
        self.push(task, false);
    }

    /// Adds the session of background work, after all others.
    pub fn add_background(&self, task: impl Future<Output = ()> + 'static) {
        self.push(task, true);
    }

    fn push(&self, task: impl Future<Output = ()> + 'static, is_background: bool) {
        let slot = Slot {
            task: RefCell::new(Some(Box::pin(task))),
            woken: Arc::new(Flag(AtomicBool::new(true))),
            done: RefCell::new(false),
            is_background,
        };
        self.slots.borrow_mut().push(Rc::new(slot));
    }

    /// Runs until all sessions have ended, the machine stops, or a failure occurs.
    pub fn run(&self) {
        let mut idle = 0;
        let (mut steps, mut polls) = (0, 0);
        while !self.over() {
            let is_over = |slot: &Rc<Slot>| slot.is_background || *slot.done.borrow();
            if self.slots.borrow().iter().all(is_over) {
                return;
            }
            let spurious = self.random.borrow_mut().percent(3);
            match self.choose(Weight::Maintains, spurious) {
                Some(at) => {
                    idle = 0;
                    self.poll(at);
                    let done = self.world.borrow().steps;
                    polls = if done == steps { polls + 1 } else { 0 };
                    steps = done;
                    if polls > 100_000 {
                        self.world
                            .borrow_mut()
                            .fail("sessions wake each other and nothing gets done".into());
                    }
                }
                None if spurious => {}
                None => {
                    idle += 1;
                    if !self.clock.advance_to_sleeper() || idle > 10_000 {
                        self.world
                            .borrow_mut()
                            .fail("sessions wait and nothing will wake them".into());
                    }
                }
            }
        }
    }

    fn over(&self) -> bool {
        let world = self.world.borrow();
        world.failure.is_some() || world.disk.ended().is_some()
    }

    /// Chooses a session whose operation is light enough.
    fn choose(&self, room: Weight, spurious: bool) -> Option<usize> {
        let slots = self.slots.borrow();
        let world = self.world.borrow();
        let can = |at: &usize| {
            let slot = &slots[*at];
            let ready = spurious || slot.woken.0.load(Ordering::Relaxed);
            slot.task.borrow().is_some() && ready && world.fits(*at, room)
        };
        let ready: Vec<usize> = (0..slots.len()).filter(can).collect();
        if ready.is_empty() { None } else { Some(*self.random.borrow_mut().pick(&ready)) }
    }

    fn poll(&self, at: usize) {
        let slot = self.slots.borrow()[at].clone();
        let Some(mut task) = slot.task.borrow_mut().take() else { return };
        slot.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(slot.woken.clone());
        self.world.borrow_mut().enter(at);
        let _within = walked::within(Path::Session);
        let outcome = task.as_mut().poll(&mut Context::from_waker(&waker));
        self.world.borrow_mut().leave();
        match outcome {
            Poll::Ready(()) => *slot.done.borrow_mut() = true,
            Poll::Pending => *slot.task.borrow_mut() = Some(task),
        }
    }
}

impl Hook for Scheduler {
    fn before(&self, call: Call, class: Class) {
        let (depth, room) = {
            let mut world = self.world.borrow_mut();
            world.count_down();
            if call == Call::Read && !world.looks_ahead() {
                return;
            }
            world.before_call(call, class);
            (world.frames.len(), world.room(class))
        };
        let Some(room) = room else { return };
        // Reads before taking a lock are rare, so they are always interrupted if nesting is
        // enabled.
        let often =
            if call == Call::Read { 100 * self.nested_percent.min(1) } else { self.nested_percent };
        if depth == 0 || depth > MAX_DEPTH || !self.random.borrow_mut().percent(often) {
            return;
        }
        let polls = 1 + self.random.borrow_mut().below(6);
        self.world.borrow_mut().interrupt(class, true);
        for _ in 0..polls {
            if self.over() {
                break;
            }
            let Some(at) = self.choose(room, false) else { break };
            let who = self.world.borrow().frames.last().map_or(0, |f| f.session);
            let room = "    ".repeat(depth);
            self.world
                .borrow_mut()
                .tell(|| format!("{room}while s{who} is at {call:?} of {class:?}, s{at} runs:"));
            self.poll(at);
        }
        self.world.borrow_mut().interrupt(class, false);
    }

    fn log_synced(&self) {
        self.world.borrow_mut().log_synced();
    }
}
