//! Calls that return at once where possible. Most statements never wait, and a promise for each would cost more than a
//! point read. A call that has to wait is polled by the other side, which can catch a trap.

use js_sys::Function;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

type Answer = Result<JsValue, JsValue>;

/// The future's result when its first poll completes it, else a `Pending`.
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
    /// Polls the call: its result, or a number (which no result is) of milliseconds after which to poll again at the
    /// latest. `wake` is called when it can go on earlier. That call comes from within the engine, which must be left
    /// before polling.
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
    /// Functions that tell the other side to poll a call again, by the call's number.
    static WAKES: RefCell<Vec<Option<Function>>> = const { RefCell::new(Vec::new()) };
    /// Milliseconds after which the call that is being polled asked to be polled again.
    static TIMEOUT_MS: Cell<f64> = const { Cell::new(f64::INFINITY) };
}

/// Asks for the call that is being polled to be polled again after `ms` milliseconds at the latest.
pub fn poll_again_within(ms: f64) {
    TIMEOUT_MS.set(TIMEOUT_MS.get().min(ms));
}

/// A call as wakers know it: by its number, because wakers are `Send` and `Sync` and functions are not.
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
