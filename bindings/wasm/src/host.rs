//! Time, randomness and "threads" of a JavaScript runtime.

use crate::answer::poll_again_within;
use crate::store::{JsStore, WasmStore};
use nacre_host::memory::MemoryStore;
use nacre_host::{Background, BackgroundTask, Clock, Entropy, Host, LocalStore, Parallelism};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use wasm_bindgen::prelude::wasm_bindgen;

/// A statement that computes longer lets messages and timers in; a shorter one costs no turn of the
/// event loop. Shorter than the 8 ms that a message should wait for, because the step that is under
/// way at the end of a slice is finished first.
const TIME_SLICE_NS: u64 = 5_000_000;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &mut [u8]);
}

/// Creates a host with the caller's store, or in memory.
pub fn host(store: Option<JsStore>) -> Host {
    let store: Arc<dyn LocalStore> = match store {
        Some(store) => Arc::new(WasmStore::new(store)),
        None => Arc::new(MemoryStore::new()),
    };
    Host {
        store,
        clock: Arc::new(JsClock),
        entropy: Arc::new(JsEntropy),
        parallelism: Arc::new(Inline),
    }
}

struct JsClock;

impl Clock for JsClock {
    fn monotonic_ns(&self) -> u64 {
        (performance_now() * 1e6) as u64
    }

    fn wall_us(&self) -> i64 {
        (js_sys::Date::now() * 1e3) as i64
    }

    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // The timer is in JavaScript, which clears it when the call ends earlier.
        Box::pin(poll_fn(move |_| {
            let left_ns = monotonic_ns.saturating_sub(self.monotonic_ns());
            if left_ns == 0 {
                return Poll::Ready(());
            }
            poll_again_within(left_ns as f64 / 1e6);
            Poll::Pending
        }))
    }
}

struct JsEntropy;

impl Entropy for JsEntropy {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        get_random_values(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// A single thread: tasks run one after another.
struct Inline;

impl Parallelism for Inline {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }

    fn time_slice_ns(&self) -> Option<u64> {
        Some(TIME_SLICE_NS)
    }

    /// JavaScript polls again in a task of its own, after the messages that have arrived.
    fn give_way(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        let mut is_over = false;
        Box::pin(poll_fn(move |_| {
            if std::mem::replace(&mut is_over, true) {
                return Poll::Ready(());
            }
            poll_again_within(0.0);
            Poll::Pending
        }))
    }

    /// The worker calls `Database.maintain` when it is idle.
    fn background(&self, _: BackgroundTask) -> Option<Box<dyn Background>> {
        Some(Box::new(Idle))
    }
}

/// Background work in the idle time of a worker, which looks for it after each call.
struct Idle;

impl Background for Idle {
    fn wake(&self) -> bool {
        true
    }
}
