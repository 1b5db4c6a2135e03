//! Calls that return at once if possible. Most statements never wait, and a promise for each would
//! cost more than a point read. JavaScript polls a call that has to wait, and can catch a trap.

use js_sys::Function;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

type Answer = Result<JsValue, JsValue>;

/// Returns the future's result if its first poll completes it, else a `Pending`.
pub fn answer(future: impl Future<Output = Answer> + 'static) -> Answer {
    let mut future = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(Pending { future, waker: None }.into()),
    }
}

/// A call that has to wait.
#[wasm_bindgen]
pub struct Pending {
    future: Pin<Box<dyn Future<Output = Answer>>>,
    waker: Option<Waker>,
}

#[wasm_bindgen]
impl Pending {
    /// Polls the call. Returns its result, or a number (which no result is): the maximum time in
    /// milliseconds until the next poll. `wake` is called if the call can continue earlier. That
    /// happens inside the engine, which must return before the caller polls.
    pub fn poll(&mut self, wake: &Function) -> Result<JsValue, JsValue> {
        let waker = self.waker.get_or_insert_with(|| Arc::new(Task::new(wake.clone())).into());
        TIMEOUT_MS.set(f64::INFINITY);
        match self.future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(TIMEOUT_MS.get().into()),
        }
    }
}

thread_local! {
    /// JavaScript functions that schedule another poll of a call, indexed by the call's number.
    static WAKES: RefCell<Vec<Option<Function>>> = const { RefCell::new(Vec::new()) };
    /// Milliseconds after which the call being polled requested another poll.
    static TIMEOUT_MS: Cell<f64> = const { Cell::new(f64::INFINITY) };
}

/// Requests another poll of the call being polled within `ms` milliseconds.
pub fn poll_again_within(ms: f64) {
    TIMEOUT_MS.set(TIMEOUT_MS.get().min(ms));
}

/// The number of a call, for wakers: they are `Send` and `Sync`, JavaScript functions are not.
struct Task(usize);

impl Task {
    fn new(wake: Function) -> Task {
        WAKES.with_borrow_mut(|wakes| {
            let task = wakes.iter().position(Option::is_none).unwrap_or(wakes.len());
            wakes.resize(wakes.len().max(task + 1), None);
            wakes[task] = Some(wake);
            Task(task)
        })
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let wake = WAKES.with_borrow(|wakes| wakes[self.0].clone());
        // The worker's own function: it does not throw.
        let _ = wake.map(|wake| wake.call0(&JsValue::UNDEFINED));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        WAKES.with_borrow_mut(|wakes| wakes[self.0] = None);
    }
}
