//! A database: opening, maintenance, reports, closing.

use crate::answer::answer;
use crate::blobs::{JsBlobs, set_blobs};
use crate::changes::Changes;
use crate::error::to_js;
use crate::functions;
use crate::host::host;
use crate::inspect;
use crate::session::Session;
use crate::store::JsStore;
use js_sys::{Array, Function, Reflect, Uint8Array};
use nacre_host::{LocalStore, ReadRange, Rest, check_file_name};
use nacredb::{Budget, Durability, Error, ErrorKind, Options};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
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
pub struct Database {
    engine: nacredb::Database,
    files: Arc<dyn LocalStore>,
}

#[wasm_bindgen]
impl Database {
    /// Opens the database in a store, or in memory without one. `files` are those of another
    /// database, `[name, bytes][]`, which a store without files gets first; or undefined. With a blob
    /// store, that has the files as well, or all of them. Returns a `Database`, or a `Pending` for one.
    pub fn open(
        store: Option<JsStore>,
        options: JsValue,
        files: JsValue,
        blob_store: Option<JsBlobs>,
    ) -> Result<JsValue, JsValue> {
        answer(async move {
            let from = options;
            let mut options = engine_options(&from)?;
            if let Some(store) = blob_store {
                set_blobs(&mut options, store, &from);
            }
            let host = host(store);
            let store = host.store.clone();
            if !files.is_undefined() {
                put(store.clone(), files).await.map_err(to_js)?;
            }
            let engine = nacredb::Database::open(host, options).await.map_err(to_js)?;
            Ok(Database { engine, files: store }.into())
        })
    }

    /// Names of its files.
    #[wasm_bindgen(js_name = fileNames)]
    pub fn file_names(&self) -> Result<Vec<String>, JsValue> {
        self.files.list().map_err(to_js)
    }

    /// A copy of a file.
    #[wasm_bindgen(js_name = readFile)]
    pub fn read_file(&self, name: &str) -> Result<Vec<u8>, JsValue> {
        read(&*self.files, name).map_err(to_js)
    }

    /// Opens a session.
    pub fn session(&self) -> Session {
        Session::new(self.engine.session())
    }

    /// Creates a scalar function; see `worker/shared/functions.ts`.
    #[wasm_bindgen(js_name = createFunction)]
    pub fn create_function(&self, definition: JsValue, make: Function) -> Result<(), JsValue> {
        functions::create_scalar(&self.engine, &definition, &make)
    }

    /// Creates an aggregate; see `worker/shared/functions.ts`.
    #[wasm_bindgen(js_name = createAggregate)]
    pub fn create_aggregate(&self, definition: JsValue, make: Function) -> Result<(), JsValue> {
        functions::create_aggregate(&self.engine, &definition, &make)
    }

    /// Removes a function that was created; returns whether there was one.
    #[wasm_bindgen(js_name = dropFunction)]
    pub fn drop_function(&self, name: &str) -> bool {
        self.engine.drop_function(name)
    }

    /// The storage report of each table; `TableReport[]`.
    pub fn inspect(&self) -> Result<JsValue, JsValue> {
        self.engine.inspect().map(|reports| inspect::tables(&reports)).map_err(to_js)
    }

    /// What the option `acceptLoss` has given up.
    pub fn losses(&self) -> Vec<String> {
        self.engine.losses()
    }

    /// The number of the newest change of these tables, or of the catalog; it grows.
    #[wasm_bindgen(js_name = newestChange)]
    pub fn newest_change(&self, tables: &[u32]) -> f64 {
        self.engine.newest_change(tables) as f64
    }

    /// Follows the rows of a table from now on.
    pub fn changes(&self, table: &str) -> Result<Changes, JsValue> {
        self.engine.change_feed(table).map(Changes::new).map_err(to_js)
    }

    /// Does maintenance for about this many milliseconds; answers whether more is due. Waits only for
    /// absent bytes.
    pub fn maintain(&self, ms: f64) -> Result<JsValue, JsValue> {
        let time = Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
        let database = self.engine.clone();
        answer(async move {
            let more = database.maintain_async(Budget::Time(time)).await.map_err(to_js)?;
            Ok(more.into())
        })
    }

    /// Does a piece of the uploads that are due. Answers `[ms]`, how long there is nothing to do then:
    /// infinitely long if only a change makes more.
    #[wasm_bindgen(js_name = uploadStep)]
    pub fn upload_step(&self) -> Result<JsValue, JsValue> {
        let database = self.engine.clone();
        answer(async move {
            let ms = match database.upload_step().await.map_err(to_js)? {
                Rest::No => 0.0,
                Rest::For(time) => time.as_secs_f64() * 1e3,
                Rest::UntilWoken => f64::INFINITY,
            };
            debug_assert!(ms >= 0.0, "a rest of {ms} ms");
            Ok(Array::of1(&ms.into()).into())
        })
    }

    /// Uploads everything that is committed.
    pub fn upload(&self) -> Result<JsValue, JsValue> {
        let database = self.engine.clone();
        answer(async move {
            database.upload().await.map_err(to_js)?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Makes visible what the writer of a database that is only read has uploaded since; answers whether
    /// anything was new.
    pub fn refresh(&self) -> Result<JsValue, JsValue> {
        let database = self.engine.clone();
        answer(async move {
            let is_new = database.refresh_async().await.map_err(to_js)?;
            Ok(is_new.into())
        })
    }

    /// Of a database with blobs, four numbers and two texts: the position of its log, that of the newest upload, when
    /// that was written, and how long ago it was known to be the newest, in milliseconds; the state of its lease, and
    /// why nothing is uploaded.
    pub fn lag(&self) -> Option<Vec<JsValue>> {
        let lag = self.engine.lag()?;
        let (position, uploaded) = (self.engine.log_position() as f64, lag.position as f64);
        let since_ms = lag.since_looked.as_secs_f64() * 1e3;
        let numbers = [position, uploaded, lag.written_us as f64 / 1e3, since_ms];
        let words = [lag.lease.name().into(), lag.failure.into()];
        Some(numbers.into_iter().map(JsValue::from_f64).chain(words).collect())
    }

    /// Makes everything committed durable.
    pub fn flush(&self) -> Result<(), JsValue> {
        self.engine.flush().map_err(to_js)
    }

    /// Closes the database. End its sessions first.
    pub fn close(&self) -> Result<JsValue, JsValue> {
        let database = self.engine.clone();
        answer(async move {
            database.close().await.map_err(to_js)?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn read(files: &dyn LocalStore, name: &str) -> nacredb::Result<Vec<u8>> {
    let file = files.open(name)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }])?;
    Ok(bytes)
}

/// Fills a store that has no files. Boxed, so that what few pages need is not part of `open`.
#[inline(never)]
fn put(
    store: Arc<dyn LocalStore>,
    files: JsValue,
) -> Pin<Box<dyn Future<Output = nacredb::Result<()>>>> {
    Box::pin(async move {
        if !store.list()?.is_empty() {
            let message = "a database is there already, so none can be imported";
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let files = Array::from(&files);
        let mut done = Ok(());
        for file in files.iter() {
            // Where files are made ahead of need.
            done = store.prepare().await.and_then(|()| put_file(&*store, &file));
            if done.is_err() {
                break;
            }
        }
        if done.is_err() {
            // A part of a database would be taken for a damaged one. The first error is the one to
            // report.
            files.iter().for_each(|file| _ = store.remove(&name_of(&file)));
        }
        done
    })
}

fn name_of(file: &JsValue) -> String {
    Array::from(file).get(0).as_string().unwrap_or_default()
}

fn put_file(store: &dyn LocalStore, named: &JsValue) -> nacredb::Result<()> {
    let name = name_of(named);
    check_file_name(&name)?;
    let file = store.create(&name)?;
    file.write(0, &Uint8Array::new(&Array::from(named).get(1)).to_vec())?;
    file.sync()
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
    options.read_only = Reflect::get(from, &"readOnly".into())?.is_truthy();
    options.accept_loss = Reflect::get(from, &"acceptLoss".into())?.is_truthy();
    Ok(options)
}
