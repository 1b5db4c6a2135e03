//! Answering at once where possible. Most statements never wait, and a promise for each would cost more
//! than a point read does.

use js_sys::futures::future_to_promise;
use std::future::Future;
use std::task::{Context, Poll, Waker};
use wasm_bindgen::JsValue;

/// The future's result when it is ready the first time it is asked, else a promise of it.
pub fn answer(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Result<JsValue, JsValue> {
    let mut future = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(future_to_promise(future).into()),
    }
}
