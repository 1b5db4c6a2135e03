//! Bulk loads. Freeing one before its end loads nothing.

use crate::answer::answer;
use crate::columns::column;
use crate::error::to_js;
use js_sys::Array;
use nacredb::arrow::ArrowStreamReader;
use nacredb::{Appender, Batch, Error, OnDuplicate, Result, Value, batch_from_values};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Values that are appended before the host may open files again, in bytes. With very little
/// memory they fill several segments.
const BYTES_AT_ONCE: usize = 512 << 10;

/// Rows on their way into a table.
#[wasm_bindgen]
pub struct Load {
    slot: Rc<RefCell<Option<State>>>,
    cancel: Arc<AtomicBool>,
}

struct State {
    appender: Appender,
    /// Reads what is given as Arrow.
    reader: Option<ArrowStreamReader>,
}

/// Parses `OnDuplicate` of `worker/shared/protocol.ts`.
pub fn on_duplicate(name: &str) -> Result<OnDuplicate> {
    match name {
        "error" => Ok(OnDuplicate::Error),
        "skip" => Ok(OnDuplicate::Skip),
        "replace" => Ok(OnDuplicate::Replace),
        other => Err(Error::type_error(format!(
            "onDuplicate must be 'error', 'skip' or 'replace', not '{other}'"
        ))),
    }
}

impl Load {
    pub(crate) fn new(appender: Appender) -> Load {
        let cancel = appender.cancel_flag();
        Load { slot: Rc::new(RefCell::new(Some(State { appender, reader: None }))), cancel }
    }

    /// Takes the load out of its cell during an operation, so that nothing is borrowed while it
    /// waits. It is not put back after a failure, which loses rows.
    fn turn(
        &self,
        work: impl AsyncFnOnce(&mut State) -> Result<()> + 'static,
    ) -> Result<JsValue, JsValue> {
        let slot = self.slot.clone();
        let taken = slot.borrow_mut().take();
        let mut state = taken.ok_or_else(|| to_js(ended()))?;
        answer(async move {
            work(&mut state).await.map_err(to_js)?;
            *slot.borrow_mut() = Some(state);
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn ended() -> Error {
    Error::closed("the load has ended or is busy")
}

async fn append(appender: &mut Appender, batch: &Batch) -> Result<()> {
    let bytes = batch.columns.iter().map(|c| c.flat_bytes()).fold(0, usize::saturating_add);
    let most = (BYTES_AT_ONCE / (bytes / batch.rows.max(1) + 1)).max(1);
    let mut start = 0;
    while start < batch.rows {
        let rows = most.min(batch.rows - start);
        appender.prepare().await?;
        match rows == batch.rows {
            true => appender.append(batch)?,
            false => {
                let positions: Vec<u32> = (start as u32..(start + rows) as u32).collect();
                let columns = batch.columns.iter().map(|c| c.take(&positions).into()).collect();
                appender.append(&Batch::new(columns, rows))?;
            }
        }
        start += rows;
    }
    Ok(())
}

#[wasm_bindgen]
impl Load {
    /// Adds the next bytes of Arrow IPC streams. Returns undefined, or a `Pending` for it.
    pub fn arrow(&self, bytes: Vec<u8>) -> Result<JsValue, JsValue> {
        self.turn(async move |state| {
            let State { appender, reader } = state;
            let table = appender.schema().clone();
            let reader = reader.get_or_insert_with(|| ArrowStreamReader::new(table));
            for batch in reader.push(&bytes)? {
                append(appender, &batch).await?;
            }
            Ok(())
        })
    }

    /// Adds rows, given as the names of columns and their values: arrays of values as parameters
    /// have them, or typed arrays. Returns undefined, or a `Pending` for it.
    pub fn columns(&self, names: Vec<String>, columns: &Array) -> Result<JsValue, JsValue> {
        let read = names.iter().zip(columns.iter());
        let values: Result<Vec<Vec<Value>>> = read.map(|(name, of)| column(&of, name)).collect();
        let values = values.map_err(to_js)?;
        self.turn(async move |state| {
            let named: Vec<(&str, Vec<Value>)> =
                names.iter().map(String::as_str).zip(values).collect();
            let batch = batch_from_values(state.appender.schema(), &named)?;
            append(&mut state.appender, &batch).await
        })
    }

    /// Makes all rows visible and durable, or none. Returns their number, in an array because a
    /// number stands for a wait, or a `Pending` for it.
    pub fn finish(&self) -> Result<JsValue, JsValue> {
        let taken = self.slot.borrow_mut().take();
        let State { appender, reader } = taken.ok_or_else(|| to_js(ended()))?;
        answer(async move {
            if let Some(reader) = reader {
                reader.end().map_err(to_js)?;
            }
            let rows = appender.finish().await.map_err(to_js)?;
            Ok(Array::of1(&JsValue::from_f64(rows as f64)).into())
        })
    }

    /// Cancels the end of the load, unless its rows are published.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}
