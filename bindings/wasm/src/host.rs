//! Time, randomness and "threads" of a JavaScript runtime.

use crate::store::{JsStore, WasmStore};
use js_sys::Promise;
use js_sys::futures::JsFuture;
use nacre_host::{Clock, Entropy, Host, LocalStore, Parallelism, memory::MemoryStore};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(run: &js_sys::Function, ms: f64);
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &mut [u8]);
}

/// A host on a store of the caller's, or in memory.
pub fn host(store: Option<JsStore>) -> Host {
    let store: Arc<dyn LocalStore> = match store {
        Some(store) => Arc::new(WasmStore::new(store)),
        None => Arc::new(MemoryStore::new()),
    };
    Host { store, clock: Arc::new(JsClock), entropy: Arc::new(JsEntropy), parallelism: Arc::new(Inline) }
}

struct JsClock;

impl Clock for JsClock {
    fn monotonic_ns(&self) -> u64 {
        (performance_now() * 1e6) as u64
    }

    fn wall_us(&self) -> i64 {
        (js_sys::Date::now() * 1e3) as i64
    }

    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        let ms = monotonic_ns.saturating_sub(self.monotonic_ns()) as f64 / 1e6;
        Box::pin(async move {
            let elapsed = Promise::new(&mut |resolve, _| set_timeout(&resolve, ms.ceil()));
            // A promise of ours that nobody rejects.
            let _ = JsFuture::from(elapsed).await;
        })
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

/// One thread: tasks run one after another.
struct Inline;

impl Parallelism for Inline {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}
