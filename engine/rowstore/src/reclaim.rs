//! Reclamation of memory that readers may still use: it is freed only after every such reader is
//! gone (epoch-based reclamation: K. Fraser, *Practical lock-freedom*, 2004).
//!
//! A reader pins before it loads a shared pointer and stays pinned while it uses the target. A
//! writer first makes the pointer unreachable, then defers the freeing, which runs once every
//! thread pinned at that moment has unpinned. `crossbeam-epoch` implements this. Under a model
//! checker a plain list does; it guarantees no more than that, and it poisons instead of freeing,
//! so that a use after free is detected.

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) use real::{Pin, pin};

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) use model::{Pin, pin};

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
#[allow(unsafe_code)]
mod real {
    /// While alive, delays all frees deferred after its creation.
    pub(crate) struct Pin(crossbeam_epoch::Guard);

    #[inline]
    pub(crate) fn pin() -> Pin {
        Pin(crossbeam_epoch::pin())
    }

    impl Pin {
        /// Runs `free` once every currently pinned thread has unpinned. A large number of bytes is
        /// flushed at once instead of being batched.
        ///
        /// # Safety
        /// No thread that pins later may reach what `free` frees, and `free` may run on any thread.
        pub(crate) unsafe fn defer(&self, bytes: usize, free: impl FnOnce()) {
            // SAFETY: guaranteed by the caller.
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
        /// Orders pins and deferrals.
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
        // A model checker runs all threads of a model on one system thread, so exactly those
        // threads share this.
        static REGISTRY: RefCell<Registry> = RefCell::default();
    }

    pub(crate) struct Pin(u64);

    /// The real implementation has a fence here: a thread that pins after a deferral cannot find
    /// what was deferred. (`shuttle` models no weak memory, so it needs none.)
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
        /// See the real implementation.
        ///
        /// # Safety
        /// See the real implementation. In addition, what `free` captures must live as long as the
        /// process.
        pub(crate) unsafe fn defer(&self, _bytes: usize, free: impl FnOnce()) {
            let free: Box<dyn FnOnce() + '_> = Box::new(free);
            // SAFETY: the caller promises that what `free` captures outlives the registry.
            let free: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(free) };
            fence();
            REGISTRY.with_borrow_mut(|registry| {
                assert!(registry.pinned.contains(&self.0), "a deferral without its pin");
                let now = registry.tick();
                registry.deferred.push((now, free));
            });
        }
    }

    impl Drop for Pin {
        fn drop(&mut self) {
            let due = REGISTRY.with_borrow_mut(|registry| {
                assert!(registry.pinned.remove(&self.0), "a pin is released twice");
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
