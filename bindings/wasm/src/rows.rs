//! Rows of a running query. Freeing them ends the query and releases what it holds.

use crate::answer::answer;
use crate::error::to_js;
use crate::wire;
use js_sys::Uint8Array;
use nacredb::{Error, Field, QueryResult};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// The rows of a running query.
#[wasm_bindgen]
pub struct Rows {
    slot: Rc<RefCell<Option<nacredb::Rows>>>,
    cancel: Arc<AtomicBool>,
    columns: Rc<[Field]>,
}

impl Rows {
    pub(crate) fn new(rows: nacredb::Rows) -> Rows {
        let (cancel, columns) = (rows.cancel_flag(), rows.columns().into());
        Rows { slot: Rc::new(RefCell::new(Some(rows))), cancel, columns }
    }

    /// Takes the rows out of their cell during an operation, so that nothing is borrowed while it
    /// waits.
    fn turn(
        &self,
        work: impl AsyncFnOnce(&mut nacredb::Rows) -> nacredb::Result<JsValue> + 'static,
    ) -> Result<JsValue, JsValue> {
        let slot = self.slot.clone();
        let taken = slot.borrow_mut().take();
        let mut rows = taken.ok_or_else(|| to_js(Error::closed("the stream is being read")))?;
        answer(async move {
            let result = work(&mut rows).await;
            *slot.borrow_mut() = Some(rows);
            result.map_err(to_js)
        })
    }
}

#[wasm_bindgen]
impl Rows {
    /// Its columns; `WireField[]`.
    pub fn fields(&self) -> JsValue {
        wire::fields(&self.columns).into()
    }

    /// Whether the end was reached.
    pub fn ended(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(|rows| rows.has_ended())
    }

    /// Ends the stream with `cancelled`, also while its next rows are computed.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Returns at least `rows` of the next rows, fewer at the end, as a `WireResult` without
    /// fields, or a `Pending` for one.
    pub fn next(&self, rows: usize) -> Result<JsValue, JsValue> {
        let columns = self.columns.clone();
        self.turn(async move |from| {
            let batches = from.next_batches(rows).await?;
            let result = QueryResult {
                kind: from.kind(),
                columns: columns.to_vec(),
                batches,
                rows_affected: from.rows_affected(),
                statistics: from.statistics(),
            };
            wire::result(&result, Some(&columns))
        })
    }

    /// The same as an Arrow IPC stream in a `Uint8Array`, or a `Pending` for one.
    pub fn arrow(&self, rows: usize) -> Result<JsValue, JsValue> {
        self.turn(async move |from| {
            Ok(Uint8Array::from(&from.next_arrow_ipc(rows).await?[..]).into())
        })
    }
}
