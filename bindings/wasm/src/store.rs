//! The engine's `LocalStore`, implemented by a JavaScript object: `LocalStore` in
//! `worker/shared/local-store.ts`.
//!
//! The engine requires `Send` and `Sync` stores and files, which JavaScript objects are not. So the
//! engine holds only numbers; the objects are in a thread-local table.

use crate::error::from_js;
use js_sys::Promise;
use js_sys::futures::JsFuture;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacredb::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// A store in JavaScript.
    pub type JsStore;

    #[wasm_bindgen(method, catch)]
    fn list(this: &JsStore) -> Result<Vec<String>, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn open(this: &JsStore, name: &str) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn create(this: &JsStore, name: &str) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn remove(this: &JsStore, name: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn release(this: &JsStore, file: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn len(this: &JsStore, file: u32) -> Result<f64, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn read(this: &JsStore, file: u32, offset: f64, buffer: &mut [u8]) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn write(this: &JsStore, file: u32, offset: f64, bytes: &[u8]) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn truncate(this: &JsStore, file: u32, len: f64) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn sync(this: &JsStore, file: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn prepare(this: &JsStore) -> Result<Option<Promise>, JsValue>;
    #[wasm_bindgen(method, catch, js_name = ranShort)]
    fn ran_short(this: &JsStore) -> Result<bool, JsValue>;
}

thread_local! {
    static STORES: RefCell<Vec<Option<JsStore>>> = const { RefCell::new(Vec::new()) };
}

/// Calls a store by its number. The table is borrowed only during the call, from which JavaScript
/// never calls back into the engine.
fn with<T>(
    store: usize,
    doing: &str,
    call: impl FnOnce(&JsStore) -> Result<T, JsValue>,
) -> Result<T> {
    STORES.with_borrow(|stores| match stores.get(store) {
        Some(Some(store)) => call(store).map_err(|thrown| from_js(thrown, doing)),
        _ => Err(Error::closed("the database is closed")),
    })
}

/// A store, by its number.
pub struct WasmStore(usize);

impl WasmStore {
    /// Adds an object to the table until this is dropped.
    pub fn new(store: JsStore) -> WasmStore {
        STORES.with_borrow_mut(|stores| {
            stores.push(Some(store));
            WasmStore(stores.len() - 1)
        })
    }

    fn file(&self, name: &str, file: u32) -> Arc<dyn LocalFile> {
        Arc::new(WasmFile { store: self.0, file, name: name.into() })
    }
}

impl Drop for WasmStore {
    fn drop(&mut self) {
        STORES.with_borrow_mut(|stores| stores[self.0] = None);
    }
}

impl LocalStore for WasmStore {
    fn list(&self) -> Result<Vec<String>> {
        with(self.0, "list files", JsStore::list)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        with(self.0, name, |store| store.open(name)).map(|file| self.file(name, file))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        match with(self.0, name, |store| store.create(name)) {
            Ok(file) => Ok(self.file(name, file)),
            Err(error) if error.kind() == ErrorKind::Limit => Err(Error::no_file(error.message())),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        with(self.0, name, |store| store.remove(name))
    }

    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(async {
            // Usually there is nothing to wait for, and this is ready at once.
            match with(self.0, "prepare files", JsStore::prepare)? {
                Some(promise) => JsFuture::from(promise)
                    .await
                    .map(|_| ())
                    .map_err(|thrown| from_js(thrown, "prepare files")),
                None => Ok(()),
            }
        })
    }

    fn ran_short(&self) -> bool {
        // If the store cannot be asked, a retry will not get more files either.
        with(self.0, "count files", JsStore::ran_short).unwrap_or(false)
    }
}

/// An open file, by its number. Offsets are passed as doubles: exact up to 2^53.
struct WasmFile {
    store: usize,
    file: u32,
    name: Box<str>,
}

impl Drop for WasmFile {
    fn drop(&mut self) {
        // A closed store has closed its files.
        let _ = with(self.store, &self.name, |store| store.release(self.file));
    }
}

impl LocalFile for WasmFile {
    fn len(&self) -> Result<u64> {
        with(self.store, &self.name, |store| store.len(self.file)).map(|len| len as u64)
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        with(self.store, &self.name, |store| {
            ranges
                .iter_mut()
                .try_for_each(|range| store.read(self.file, range.offset as f64, range.buffer))
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        with(self.store, &self.name, |store| store.write(self.file, offset as f64, bytes))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        with(self.store, &self.name, |store| store.truncate(self.file, len as f64))
    }

    fn sync(&self) -> Result<()> {
        with(self.store, &self.name, |store| store.sync(self.file))
    }
}
