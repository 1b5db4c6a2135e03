//! When memory that readers may still look at is freed: not before every reader that was there is gone
//! (epoch reclamation, K. Fraser 2004).
//!
//! A reader pins before it loads a shared pointer and stays pinned while it uses what is behind it. A writer first
//! makes the pointer unreachable, then defers the freeing: it runs once everybody who was pinned at that moment is
//! not any more. `crossbeam-epoch` does this; under a model checker a plain list does, that promises exactly as
//! much and no more, and that poisons instead of freeing, so that a use after free is seen.

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) use real::{Pin, pin};

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) use model::{Pin, pin};

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
#[allow(unsafe_code)]
mod real {
    /// Holds off freeing what is deferred from now on.
    pub(crate) struct Pin(crossbeam_epoch::Guard);

    #[inline]
    pub(crate) fn pin() -> Pin {
        Pin(crossbeam_epoch::pin())
    }

    impl Pin {
        /// Runs `free` when nobody who is pinned now is pinned any more. Many bytes are not left to gather with
        /// others.
        ///
        /// # Safety
        /// What `free` frees must be out of reach of whoever pins from now on, and `free` may run on any thread.
        pub(crate) unsafe fn defer(&self, bytes: usize, free: impl FnOnce()) {
            // SAFETY: passed on to the caller.
            unsafe { self.0.defer_unchecked(free) };
            if bytes > 1 << 14 {
                self.0.flush();
            }
        }
    }
}

#[cfg(any(feature = "loom", feature = "shuttle"))]
#[allow(unsafe_code)]
mod model {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Registry {
        /// Counts pins and deferrals, so that it says which came first.
        clock: u64,
        pinned: BTreeSet<u64>,
        deferred: Vec<(u64, Box<dyn FnOnce()>)>,
    }

    impl Registry {
        fn tick(&mut self) -> u64 {
            self.clock += 1;
            self.clock
        }
    }

    thread_local! {
        // A model checker runs all threads of a model on one thread of the system, so this is shared by exactly them.
        static REGISTRY: RefCell<Registry> = RefCell::default();
    }

    pub(crate) struct Pin(u64);

    /// The real ones have a fence here: who pins after something was deferred does not find it any more. (`shuttle`
    /// knows no weak memory, so it needs none.)
    fn fence() {
        #[cfg(feature = "loom")]
        loom::sync::atomic::fence(crate::sync::Ordering::SeqCst);
    }

    pub(crate) fn pin() -> Pin {
        let pin = REGISTRY.with_borrow_mut(|registry| {
            let now = registry.tick();
            registry.pinned.insert(now);
            Pin(now)
        });
        fence();
        pin
    }

    impl Pin {
        /// See the real one.
        ///
        /// # Safety
        /// See the real one. In addition what is captured must live for as long as the process.
        pub(crate) unsafe fn defer(&self, _bytes: usize, free: impl FnOnce()) {
            let free: Box<dyn FnOnce() + '_> = Box::new(free);
            // SAFETY: the caller promises that what is captured outlives this.
            let free: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(free) };
            fence();
            REGISTRY.with_borrow_mut(|registry| {
                let now = registry.tick();
                registry.deferred.push((now, free));
            });
        }
    }

    impl Drop for Pin {
        fn drop(&mut self) {
            let due = REGISTRY.with_borrow_mut(|registry| {
                registry.pinned.remove(&self.0);
                let first = registry.pinned.first().copied().unwrap_or(u64::MAX);
                let (due, kept) = std::mem::take(&mut registry.deferred)
                    .into_iter()
                    .partition(|(at, _)| *at < first);
                registry.deferred = kept;
                due
            });
            let due: Vec<(u64, Box<dyn FnOnce()>)> = due;
            due.into_iter().for_each(|(_, free)| free());
        }
    }
}
