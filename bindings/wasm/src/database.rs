//! A database: opening, maintenance, reports, closing.

use crate::answer::answer;
use crate::error::to_js;
use crate::host::host;
use crate::inspect;
use crate::session::Session;
use crate::store::JsStore;
use js_sys::Reflect;
use nacredb::{Budget, Durability, Options};
use std::time::Duration;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Maximum time that acknowledged commits stay unsynced with `relaxed` durability, in milliseconds.
const RELAXED_INTERVAL_MS: u32 = 100;
/// Defaults for an address space of 4 GB shared with a page: below the engine's own.
const DEFAULT_MEMORY_BYTES: usize = 1 << 30;
const DEFAULT_CACHE_BYTES: usize = 64 << 20;
/// Fewer and larger segments than the default budget would give.
const DEFAULT_FLUSH_BYTES: usize = 32 << 20;
const DEFAULT_SEGMENT_BYTES: usize = 256 << 20;

/// An open database.
#[wasm_bindgen]
pub struct Database(nacredb::Database);

#[wasm_bindgen]
impl Database {
    /// Opens the database in a store, or in memory without one. Returns a `Database`, or a
    /// `Pending` for one.
    pub fn open(store: Option<JsStore>, options: JsValue) -> Result<JsValue, JsValue> {
        answer(async move {
            let options = engine_options(&options)?;
            let database = nacredb::Database::open(host(store), options).await.map_err(to_js)?;
            Ok(Database(database).into())
        })
    }

    /// Opens a session.
    pub fn session(&self) -> Session {
        Session::new(self.0.session())
    }

    /// The storage report of each table; `TableReport[]`.
    pub fn inspect(&self) -> Result<JsValue, JsValue> {
        self.0.inspect().map(|reports| inspect::tables(&reports)).map_err(to_js)
    }

    /// What the option `acceptLoss` has given up.
    pub fn losses(&self) -> Vec<String> {
        self.0.losses()
    }

    /// Does maintenance for about this many milliseconds; returns whether more is due.
    pub fn maintain(&self, ms: f64) -> Result<bool, JsValue> {
        let time = Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
        self.0.maintain(Budget::Time(time)).map_err(to_js)
    }

    /// Makes everything committed durable.
    pub fn flush(&self) -> Result<(), JsValue> {
        self.0.flush().map_err(to_js)
    }

    /// Closes the database. End its sessions first.
    pub fn close(&self) -> Result<JsValue, JsValue> {
        let database = self.0.clone();
        answer(async move {
            database.close().await.map_err(to_js)?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

/// Converts `EngineOptions` of `worker/shared/wire.ts`; omitted options keep their defaults.
fn engine_options(from: &JsValue) -> Result<Options, JsValue> {
    let mut options = Options {
        memory_bytes: DEFAULT_MEMORY_BYTES,
        cache_bytes: DEFAULT_CACHE_BYTES,
        flush_bytes: DEFAULT_FLUSH_BYTES,
        segment_bytes: DEFAULT_SEGMENT_BYTES,
        ..Options::default()
    };
    if from.is_undefined() || from.is_null() {
        return Ok(options);
    }
    if Reflect::get(from, &"durability".into())?.as_string().as_deref() == Some("relaxed") {
        options.durability = Durability::Relaxed { interval_ms: RELAXED_INTERVAL_MS };
    }
    if let Some(bytes) = Reflect::get(from, &"memoryBytes".into())?.as_f64() {
        options = Options {
            durability: options.durability,
            memory_bytes: bytes as usize,
            ..Options::default()
        };
    }
    if let Some(bytes) = Reflect::get(from, &"memoryLimit".into())?.as_f64() {
        options.memory_limit = bytes as usize;
    }
    if let Some(bytes) = Reflect::get(from, &"cacheBytes".into())?.as_f64() {
        options.cache_bytes = bytes as usize;
    }
    options.accept_loss = Reflect::get(from, &"acceptLoss".into())?.is_truthy();
    Ok(options)
}
