//! Sessions and prepared statements.

use crate::answer::answer;
use crate::error::to_js;
use crate::load::{self, Load};
use crate::parameters::Parameters;
use crate::rows::Rows;
use crate::wire;
use js_sys::{Array, Uint8Array};
use nacredb::{Error, Field, Progress, QueryResult, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Whether a text commits or rolls back the whole transaction (`COMMIT`, `END`, `ROLLBACK`,
/// `ABORT`; not `ROLLBACK TO`). `false` for a text that does not parse: it fails before any
/// statement runs.
#[wasm_bindgen(js_name = endsTransaction)]
pub fn ends_transaction(sql: &str) -> bool {
    nacredb::ends_transaction(sql)
}

/// A session. The caller runs its statements one after another.
#[wasm_bindgen]
pub struct Session {
    slot: Slot,
    cancel: Arc<AtomicBool>,
    progress: Arc<Progress>,
}

/// A parsed and bound statement.
#[wasm_bindgen]
pub struct Prepared {
    statement: nacredb::Prepared,
    /// The columns already sent to the caller.
    columns: Rc<[Field]>,
    /// How often the statement had been bound again when it last had these columns.
    rebindings: Cell<u64>,
}

#[wasm_bindgen]
impl Prepared {
    /// Columns of its result; `WireField[]`.
    pub fn fields(&self) -> JsValue {
        wire::fields(&self.columns).into()
    }

    /// Types of its parameters in SQL spelling; `string[]`.
    pub fn parameters(&self) -> JsValue {
        self.statement
            .parameters()
            .iter()
            .map(|t| JsValue::from(t.to_string()))
            .collect::<Array>()
            .into()
    }

    /// The raw values of a row that a point read found. `None` if its columns are others by now.
    fn cells(&self, row: Vec<Value>) -> Option<JsValue> {
        let rebindings = self.statement.rebindings();
        if rebindings != self.rebindings.get() {
            if self.statement.columns() != *self.columns {
                return None;
            }
            self.rebindings.set(rebindings);
        }
        Some(wire::cells(row, &self.columns))
    }

    /// The tables that a query reads, for `Database.newestChange`.
    pub fn tables(&self) -> Result<Vec<u32>, JsValue> {
        self.statement.tables().map_err(to_js)
    }
}

type Slot = Rc<RefCell<Option<nacredb::Session>>>;

/// Takes the session out of its cell during a statement, so that nothing is borrowed while it
/// waits.
async fn turn<T>(
    slot: Slot,
    work: impl AsyncFnOnce(&mut nacredb::Session) -> Result<T, JsValue>,
) -> Result<T, JsValue> {
    let taken = slot.borrow_mut().take();
    let mut session =
        taken.ok_or_else(|| to_js(Error::closed("the session runs another statement")))?;
    let result = work(&mut session).await;
    *slot.borrow_mut() = Some(session);
    result
}

async fn execute(
    session: &mut nacredb::Session,
    sql: &str,
    parameters: Parameters,
) -> Result<QueryResult, JsValue> {
    match parameters {
        Parameters::Positional(values) => session.execute(sql, &values).await,
        Parameters::Named(values) => session.execute_named(sql, &values).await,
    }
    .map_err(to_js)
}

/// Parameters of a prepared statement.
fn values(prepared: &Prepared, parameters: &JsValue) -> Result<Vec<Value>, JsValue> {
    match Parameters::from_js(parameters)? {
        Parameters::Positional(values) => Ok(values),
        Parameters::Named(named) => prepared.statement.named(&named).map_err(to_js),
    }
}

impl Session {
    pub(crate) fn new(session: nacredb::Session) -> Session {
        let (cancel, progress) = (session.cancel_flag(), session.progress());
        Session { slot: Rc::new(RefCell::new(Some(session))), cancel, progress }
    }
}

#[wasm_bindgen]
impl Session {
    /// Runs statements; returns the last one's `WireResult`, or a `Pending` for one.
    pub fn execute(&self, sql: String, parameters: &JsValue) -> Result<JsValue, JsValue> {
        let parameters = Parameters::from_js(parameters)?;
        answer(turn(self.slot.clone(), async move |session| {
            wire::result(&execute(session, &sql, parameters).await?, None).map_err(to_js)
        }))
    }

    /// Runs a query; returns its result as an Arrow IPC stream in a `Uint8Array`, or a `Pending`
    /// for one.
    pub fn arrow(&self, sql: String, parameters: &JsValue) -> Result<JsValue, JsValue> {
        let parameters = Parameters::from_js(parameters)?;
        answer(turn(self.slot.clone(), async move |session| {
            let bytes = execute(session, &sql, parameters).await?.to_arrow_ipc().map_err(to_js)?;
            Ok(Uint8Array::from(&bytes[..]).into())
        }))
    }

    /// Parses and binds a statement.
    pub fn prepare(&self, sql: &str) -> Result<Prepared, JsValue> {
        match &mut *self.slot.borrow_mut() {
            Some(session) => {
                let statement = session.prepare(sql).map_err(to_js)?;
                let columns = statement.columns().into();
                let rebindings = Cell::new(statement.rebindings());
                Ok(Prepared { statement, columns, rebindings })
            }
            None => Err(to_js(Error::closed("the session runs another statement"))),
        }
    }

    /// Runs a prepared statement; returns its `WireResult`, or a `Pending` for one.
    pub fn run(&self, prepared: &Prepared, parameters: &JsValue) -> Result<JsValue, JsValue> {
        let values = values(prepared, parameters)?;
        let (statement, columns) = (prepared.statement.clone(), prepared.columns.clone());
        answer(turn(self.slot.clone(), async move |session| {
            let result = session.run(&statement, &values).await.map_err(to_js)?;
            wire::result(&result, Some(&columns)).map_err(to_js)
        }))
    }

    /// Runs a prepared read of one row by a key without waiting; returns the row's raw values, or
    /// `undefined` if there is none. `null` if it has to be run: it is another statement, its columns
    /// have changed, it has to wait, or it fails.
    pub fn get(&self, prepared: &Prepared, parameters: &JsValue) -> Result<JsValue, JsValue> {
        if !nacredb::Session::is_point_read(&prepared.statement) {
            return Ok(JsValue::NULL);
        }
        let values = values(prepared, parameters)?;
        let mut slot = self.slot.borrow_mut();
        let Some(session) = slot.as_mut() else { return Ok(JsValue::NULL) };
        Ok(match session.get(&prepared.statement, &values) {
            Ok(Some(row)) => prepared.cells(row).unwrap_or(JsValue::NULL),
            Ok(None) => JsValue::UNDEFINED,
            Err(_) => JsValue::NULL,
        })
    }

    /// Runs statements; returns the last one's `Rows`, or a `Pending` for them.
    pub fn stream(&self, sql: String, parameters: &JsValue) -> Result<JsValue, JsValue> {
        let parameters = Parameters::from_js(parameters)?;
        answer(turn(self.slot.clone(), async move |session| {
            let rows = match parameters {
                Parameters::Positional(values) => session.stream(&sql, &values).await,
                Parameters::Named(values) => session.stream_named(&sql, &values).await,
            };
            rows.map(|rows| Rows::new(rows).into()).map_err(to_js)
        }))
    }

    /// Runs a prepared statement; returns its `Rows`, or a `Pending` for them.
    #[wasm_bindgen(js_name = streamPrepared)]
    pub fn stream_prepared(
        &self,
        prepared: &Prepared,
        parameters: &JsValue,
    ) -> Result<JsValue, JsValue> {
        let values = values(prepared, parameters)?;
        let statement = prepared.statement.clone();
        answer(turn(self.slot.clone(), async move |session| {
            let rows = session.stream_prepared(&statement, &values).await;
            rows.map(|rows| Rows::new(rows).into()).map_err(to_js)
        }))
    }

    /// Starts a bulk load into a table; returns a `Load`, or a `Pending` for one.
    pub fn load(&self, table: String, on_duplicate: &str) -> Result<JsValue, JsValue> {
        let on_duplicate = load::on_duplicate(on_duplicate).map_err(to_js)?;
        answer(turn(self.slot.clone(), async move |session| {
            let appender = session.appender(&table, on_duplicate).await;
            appender.map(|appender| Load::new(appender).into()).map_err(to_js)
        }))
    }

    /// Ends the running statement, which has given way or waits, with `cancelled`. Without one, does
    /// nothing.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Rows that the running statement has examined, and about how many it may examine; 0 before it
    /// has given way.
    pub fn progress(&self) -> Vec<f64> {
        let (rows, total) = self.progress.rows_and_total();
        vec![rows as f64, total as f64]
    }

    /// Whether a transaction is open.
    #[wasm_bindgen(js_name = inTransaction)]
    pub fn in_transaction(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(|session| session.in_transaction())
    }
}
