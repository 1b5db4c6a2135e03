//! The engine's `BlobStore`, implemented by a JavaScript object: `EngineBlobs` in
//! `worker/shared/blobs/engine-blobs.ts`.
//!
//! The engine requires answers that are `Send`, which promises are not. So it holds only numbers: the objects
//! and the promises of calls in progress are in thread-local tables. A call begins with the first poll of its
//! answer, and dropping the answer gives it up.

use crate::error::from_js;
use js_sys::futures::JsFuture;
use js_sys::{Array, Date, Promise, Reflect, Uint8Array};
use nacre_host::{Answer, BlobInfo, BlobStore, Tag, WriteIf};
use nacredb::{AsOf, Blobs, Error, Options, Result, TierOptions};
use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

#[wasm_bindgen]
extern "C" {
    /// A blob store in JavaScript.
    pub type JsBlobs;

    #[wasm_bindgen(method, catch)]
    fn read(this: &JsBlobs, name: &str, start: f64, end: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = readAll)]
    fn read_all(this: &JsBlobs, name: &str) -> Result<Promise, JsValue>;
    /// The tag is absent for a write that needs none; `isNew` says whether there may be no such blob.
    #[wasm_bindgen(method, catch)]
    fn write(
        this: &JsBlobs,
        name: &str,
        bytes: Uint8Array,
        is_new: bool,
        tag: Option<String>,
    ) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn list(this: &JsBlobs, prefix: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn remove(this: &JsBlobs, name: &str) -> Result<Promise, JsValue>;
    /// The blobs of another database, reached as these.
    #[wasm_bindgen(method, catch)]
    fn elsewhere(this: &JsBlobs, url: &str) -> Result<JsBlobs, JsValue>;
    /// Nothing waits for this promise any more.
    #[wasm_bindgen(method, js_name = giveUp)]
    fn give_up(this: &JsBlobs, promise: &Promise);
}

/// A call in progress.
struct Running {
    store: usize,
    promise: Promise,
    future: JsFuture,
}

thread_local! {
    static STORES: RefCell<Vec<Option<JsBlobs>>> = const { RefCell::new(Vec::new()) };
    static CALLS: RefCell<Vec<Option<Running>>> = const { RefCell::new(Vec::new()) };
}

/// The first free place of a table.
fn place_in<T>(table: &mut Vec<Option<T>>, item: T) -> usize {
    let at = table.iter().position(Option::is_none).unwrap_or(table.len());
    table.resize_with(table.len().max(at + 1), || None);
    debug_assert!(table[at].is_none(), "place {at} is taken");
    table[at] = Some(item);
    at
}

/// A blob store, by its number.
struct WasmBlobs(usize);

impl Drop for WasmBlobs {
    fn drop(&mut self) {
        STORES.with_borrow_mut(|stores| stores[self.0] = None);
    }
}

impl WasmBlobs {
    fn new(store: JsBlobs) -> WasmBlobs {
        WasmBlobs(STORES.with_borrow_mut(|stores| place_in(stores, store)))
    }

    /// Begins a call.
    fn begin(
        &self,
        name: &str,
        call: impl FnOnce(&JsBlobs) -> Result<Promise, JsValue>,
    ) -> Result<Call> {
        let promise = STORES.with_borrow(|stores| match stores.get(self.0) {
            Some(Some(store)) => call(store).map_err(|thrown| from_js(thrown, name)),
            _ => Err(Error::closed("the database is closed")),
        })?;
        let future = JsFuture::from(promise.clone());
        let running = Running { store: self.0, promise, future };
        Ok(Call(CALLS.with_borrow_mut(|calls| place_in(calls, running))))
    }
}

/// A call, by its number.
struct Call(usize);

impl Future for Call {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        CALLS.with_borrow_mut(|calls| match calls.get_mut(self.0) {
            Some(Some(running)) => Pin::new(&mut running.future).poll(cx),
            // Its place is taken until it is dropped.
            _ => Poll::Pending,
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let running = CALLS.with_borrow_mut(|calls| calls.get_mut(self.0).and_then(Option::take));
        let Some(Running { store, promise, .. }) = running else { return };
        STORES.with_borrow(|stores| {
            if let Some(Some(store)) = stores.get(store) {
                // It does nothing for a call that has ended.
                store.give_up(&promise);
            }
        });
    }
}

/// A property of an answer, which the object in JavaScript always has.
fn part(answer: &JsValue, key: &str) -> JsValue {
    Reflect::get(answer, &key.into()).unwrap_or(JsValue::UNDEFINED)
}

fn bytes_of(value: &JsValue, name: &str) -> Result<Vec<u8>> {
    match value.dyn_ref::<Uint8Array>() {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err(Error::io(format!("{name}: the blob store answered no bytes"))),
    }
}

fn tag_of(value: &JsValue, name: &str) -> Result<Tag> {
    match value.as_string() {
        Some(tag) => Ok(Tag(tag.into())),
        None => Err(Error::io(format!("{name}: the blob store answered no tag"))),
    }
}

impl BlobStore for WasmBlobs {
    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            let (start, end) = (range.start as f64, range.end as f64);
            let answered = self.begin(name, |store| store.read(name, start, end))?.await;
            bytes_of(&answered.map_err(|thrown| from_js(thrown, name))?, name)
        })
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        Box::pin(async move {
            let answered = self.begin(name, |store| store.read_all(name))?.await;
            let answer = answered.map_err(|thrown| from_js(thrown, name))?;
            Ok((bytes_of(&part(&answer, "bytes"), name)?, tag_of(&part(&answer, "tag"), name)?))
        })
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        Box::pin(async move {
            let (is_new, tag) = match when {
                WriteIf::Any => (false, None),
                WriteIf::Absent => (true, None),
                WriteIf::Tagged(Tag(tag)) => (false, Some(tag.to_string())),
            };
            let write = |store: &JsBlobs| store.write(name, (&*bytes).into(), is_new, tag);
            let answered = self.begin(name, write)?.await;
            tag_of(&answered.map_err(|thrown| from_js(thrown, name))?, name)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        Box::pin(async move {
            let answered = self.begin(prefix, |store| store.list(prefix))?.await;
            let listed = Array::from(&answered.map_err(|thrown| from_js(thrown, prefix))?);
            let info = |blob: JsValue| {
                let number = |key| part(&blob, key).as_f64();
                let name = part(&blob, "name").as_string();
                let (len, ms) = (number("length"), number("modifiedMs"));
                let Some(((name, len), ms)) = name.zip(len).zip(ms) else {
                    return Err(Error::io(format!("{prefix}: the blob store lists no blobs")));
                };
                Ok(BlobInfo { name, len: len as u64, modified_us: (ms * 1e3) as i64 })
            };
            listed.iter().map(info).collect()
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let answered = self.begin(name, |store| store.remove(name))?.await;
            answered.map(|_| ()).map_err(|thrown| from_js(thrown, name))
        })
    }

    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        let other = STORES.with_borrow(|stores| match stores.get(self.0) {
            Some(Some(store)) => store.elsewhere(url).map_err(|thrown| from_js(thrown, url)),
            _ => Err(Error::closed("the database is closed")),
        })?;
        Ok(Arc::new(WasmBlobs::new(other)))
    }
}

/// Sets a database's options about its files in a blob store: `EngineOptions` in `worker/shared/wire.ts`, and the
/// settings of the store. Not part of `open`, because few pages need it.
#[inline(never)]
pub fn set_blobs(to: &mut Options, store: JsBlobs, from: &JsValue) {
    let settings = part(&store, "settings");
    let mut options = TierOptions::default();
    let bytes = |of: &JsValue, key| part(of, key).as_f64().map(|bytes| bytes as u64);
    options.disk_limit = bytes(from, "diskLimit").unwrap_or(options.disk_limit);
    options.unsent_limit = bytes(&settings, "unsentLimit").unwrap_or(options.unsent_limit);
    options.holds_commits = part(from, "durability").as_string().as_deref() == Some("blob");
    let set = |time: &mut Duration, of: &JsValue, key| {
        let given = part(of, key).as_f64().map(|ms| Duration::try_from_secs_f64(ms / 1e3));
        *time = given.map_or(*time, |given| given.unwrap_or(Duration::MAX));
    };
    set(&mut options.lag, from, "blobLag");
    set(&mut options.patience, from, "blobPatience");
    set(&mut options.history, &settings, "historyMs");
    set(&mut options.retention, &settings, "retentionMs");
    set(&mut options.lease, &settings, "leaseMs");
    // What a database in memory fetches takes memory.
    options.warms = part(&settings, "warm").as_bool().unwrap_or(!to.read_only);
    let as_of = part(&settings, "asOf");
    to.as_of = match (as_of.as_f64(), as_of.dyn_into::<Date>()) {
        (Some(position), _) => Some(AsOf::Position(position as u64)),
        // Times of uploads are cut to milliseconds, as dates are: all of this one.
        (None, Ok(date)) => Some(AsOf::Time((date.get_time() * 1e3) as i64 + 999)),
        _ => None,
    };
    to.blobs = Some(Blobs { options, ..Blobs::new(Arc::new(WasmBlobs::new(store))) });
}
