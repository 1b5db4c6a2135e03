//! The changes of a table since the last call.

use crate::answer::answer;
use crate::error::to_js;
use crate::wire;
use nacredb::{ChangeFeed, Error};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Follows a table. The caller asks for one answer after another.
#[wasm_bindgen]
pub struct Changes {
    slot: Rc<RefCell<Option<ChangeFeed>>>,
    table: u32,
}

impl Changes {
    pub(crate) fn new(feed: ChangeFeed) -> Changes {
        Changes { table: feed.table(), slot: Rc::new(RefCell::new(Some(feed))) }
    }
}

#[wasm_bindgen]
impl Changes {
    /// The table, for `Database.newestChange`.
    pub fn table(&self) -> u32 {
        self.table
    }

    /// The rows that have changed; a `WireResult`, or a `Pending` for one.
    pub fn next(&self) -> Result<JsValue, JsValue> {
        let slot = self.slot.clone();
        answer(async move {
            let taken = slot.borrow_mut().take();
            let mut feed = taken.ok_or_else(|| to_js(Error::closed("changes are being read")))?;
            let result = feed.next().await.map_err(to_js);
            *slot.borrow_mut() = Some(feed);
            wire::result(&result?, None).map_err(to_js)
        })
    }
}
