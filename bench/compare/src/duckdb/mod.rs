//! DuckDB as a peer: a database file, connections, queries as text, and its appender fed with
//! batches of Nacre.
//!
//! The library is the file that `NACRE_DUCKDB` names; `npm run bench` fetches one. A [`Connection`]
//! is used by one thread at a time, like DuckDB's own.
#![allow(unsafe_code, reason = "a C interface")]

mod api;

use crate::measure::Outcome;
use api::{Api, Handle, RawResult};
use nacredb::{Batch, DataType, Values};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// An open database.
pub struct DuckDb {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: DuckDB's databases are shared between threads.
unsafe impl Send for DuckDb {}
// SAFETY: as above.
unsafe impl Sync for DuckDb {}

fn api() -> Outcome<&'static Api> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    let loaded = API.get_or_init(|| {
        let path = std::env::var_os("NACRE_DUCKDB").ok_or(
            "NACRE_DUCKDB does not name DuckDB's library; run this through `npm run bench`",
        )?;
        Api::load(Path::new(&path)).map_err(|error| error.to_string())
    });
    loaded.as_ref().map_err(|error| error.clone().into())
}

/// Returns the text of a DuckDB error, or a placeholder if there is none.
fn text(message: *const c_char) -> String {
    if message.is_null() {
        return "no reason given".to_string();
    }
    // SAFETY: DuckDB's messages are null-terminated and live as long as the object they belong to.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// Returns the version of the library.
pub fn version() -> Outcome<String> {
    // SAFETY: takes no arguments and returns a constant.
    Ok(text(unsafe { (api()?.library_version)() }))
}

impl DuckDb {
    /// Opens or creates a database that uses this many threads.
    pub fn open(path: &Path, threads: usize) -> Outcome<Arc<DuckDb>> {
        let api = api()?;
        let path = CString::new(path.to_string_lossy().as_bytes())?;
        let threads = CString::new(threads.to_string())?;
        let (mut config, mut handle, mut error) = (null_mut(), null_mut(), null_mut());
        // SAFETY: every pointer is to a local that outlives the call.
        unsafe {
            (api.create_config)(&mut config);
            (api.set_config)(config, c"threads".as_ptr(), threads.as_ptr());
            let state = (api.open_ext)(path.as_ptr(), &mut handle, config, &mut error);
            (api.destroy_config)(&mut config);
            if state != 0 {
                let message = text(error);
                (api.free)(error.cast());
                return Err(format!("DuckDB does not open: {message}").into());
            }
        }
        Ok(Arc::new(DuckDb { api, handle }))
    }

    /// Opens a connection.
    pub fn connect(self: &Arc<DuckDb>) -> Outcome<Connection> {
        let mut handle = null_mut();
        // SAFETY: the database is open.
        match unsafe { (self.api.connect)(self.handle, &mut handle) } {
            0 => Ok(Connection { db: self.clone(), handle }),
            _ => Err("DuckDB gives no connection".into()),
        }
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // SAFETY: connections hold the database, so none is left.
        unsafe { (self.api.close)(&mut self.handle) }
    }
}

/// A connection.
pub struct Connection {
    db: Arc<DuckDb>,
    handle: Handle,
}

// SAFETY: a connection may change threads between calls.
unsafe impl Send for Connection {}

/// A result, freed when dropped.
struct Answer {
    api: &'static Api,
    raw: RawResult,
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: made by a query, not yet freed.
        unsafe { (self.api.destroy_result)(&mut self.raw) }
    }
}

impl Connection {
    fn query(&self, sql: &str) -> Outcome<Answer> {
        let api = self.db.api;
        let statement = CString::new(sql)?;
        let mut answer = Answer { api, raw: RawResult::empty() };
        // SAFETY: the connection is open, the other pointers are to locals.
        match unsafe { (api.query)(self.handle, statement.as_ptr(), &mut answer.raw) } {
            0 => Ok(answer),
            _ => {
                // SAFETY: a failed query leaves a result that holds the message.
                let message = text(unsafe { (api.result_error)(&mut answer.raw) });
                Err(format!("DuckDB: {message}").into())
            }
        }
    }

    /// Runs one or more statements and returns the number of rows of the last.
    pub fn execute(&self, sql: &str) -> Outcome<u64> {
        let mut answer = self.query(sql)?;
        // SAFETY: a result of a query.
        Ok(unsafe { (answer.api.row_count)(&mut answer.raw) })
    }

    /// Runs a query and returns its values as text; null is `None`.
    pub fn rows(&self, sql: &str) -> Outcome<Vec<Vec<Option<String>>>> {
        let mut answer = self.query(sql)?;
        let api = answer.api;
        let raw = &mut answer.raw;
        // SAFETY: a result of a query.
        let (rows, columns) = unsafe { ((api.row_count)(raw), (api.column_count)(raw)) };
        let mut value = |column, row| {
            // SAFETY: the position is inside the result; the text is owned here and freed.
            unsafe {
                let value = (api.value_varchar)(raw, column, row);
                let found = (!value.is_null()).then(|| text(value));
                (api.free)(value.cast());
                found
            }
        };
        Ok((0..rows).map(|row| (0..columns).map(|column| value(column, row)).collect()).collect())
    }

    /// Starts loading a table through DuckDB's appender.
    pub fn appender<'c>(&'c self, table: &str, types: &[DataType]) -> Outcome<Appender<'c>> {
        let api = self.db.api;
        let name = CString::new(table)?;
        let mut appender =
            Appender { api, handle: null_mut(), chunk: null_mut(), _connection: self };
        // SAFETY: the connection is open; types are copied by the chunk and freed here.
        unsafe {
            if (api.appender_create)(
                self.handle,
                std::ptr::null(),
                name.as_ptr(),
                &mut appender.handle,
            ) != 0
            {
                return Err(appender.error());
            }
            let mut logical: Vec<Handle> =
                types.iter().map(|t| logical_type(api, *t)).collect::<Outcome<_>>()?;
            appender.chunk = (api.create_data_chunk)(logical.as_mut_ptr(), logical.len() as u64);
            logical.iter_mut().for_each(|t| (api.destroy_logical_type)(t));
        }
        Ok(appender)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: open, and nothing of it is left: appenders borrow it.
        unsafe { (self.db.api.disconnect)(&mut self.handle) }
    }
}

/// Returns the DuckDB type that corresponds to a Nacre type.
fn logical_type(api: &Api, data_type: DataType) -> Outcome<Handle> {
    // The numbers are DuckDB's `duckdb_type`.
    let number = match data_type {
        DataType::Int32 => 4,
        DataType::Int64 => 5,
        DataType::Float64 => 11,
        DataType::Timestamp => 12,
        DataType::Date => 13,
        DataType::Text { .. } => 17,
        // SAFETY: plain numbers.
        DataType::Decimal { precision, scale } => {
            return Ok(unsafe { (api.create_decimal_type)(precision, scale) });
        }
        other => return Err(format!("no DuckDB type is known here for {other}").into()),
    };
    // SAFETY: a number of a type without parameters.
    Ok(unsafe { (api.create_logical_type)(number) })
}

/// Bulk loader of a table. Without [`Appender::finish`], rows that are still buffered may be lost.
pub struct Appender<'c> {
    api: &'static Api,
    handle: Handle,
    chunk: Handle,
    _connection: &'c Connection,
}

impl Appender<'_> {
    fn error(&self) -> Box<dyn std::error::Error + Send + Sync> {
        // SAFETY: the handle is valid even if creating the appender failed.
        format!("DuckDB's appender: {}", text(unsafe { (self.api.appender_error)(self.handle) }))
            .into()
    }

    /// Appends rows without nulls: one vector per column, of the types given at the start.
    pub fn append(&mut self, batch: &Batch) -> Outcome<()> {
        // SAFETY: no arguments.
        let step = unsafe { (self.api.vector_size)() } as usize;
        for start in (0..batch.rows).step_by(step) {
            let rows = start..(start + step).min(batch.rows);
            // SAFETY: the chunk is ours; at most a vector's worth of rows is written to each of its
            // vectors.
            unsafe {
                (self.api.data_chunk_reset)(self.chunk);
                for (at, column) in batch.columns.iter().enumerate() {
                    self.write(at, column.data_type(), &column.flat(), rows.clone())?;
                }
                (self.api.data_chunk_set_size)(self.chunk, rows.len() as u64);
                if (self.api.append_data_chunk)(self.handle, self.chunk) != 0 {
                    return Err(self.error());
                }
            }
        }
        Ok(())
    }

    /// Writes some rows of a column into the chunk.
    ///
    /// # Safety
    /// The column's type is the one the chunk was made with, and the rows fit a vector.
    unsafe fn write(
        &self,
        column: usize,
        data_type: DataType,
        values: &Values,
        rows: std::ops::Range<usize>,
    ) -> Outcome<()> {
        // SAFETY: as promised by the caller; DuckDB's vectors are arrays of the type's width.
        unsafe {
            let vector = (self.api.data_chunk_get_vector)(self.chunk, column as u64);
            let data = (self.api.vector_get_data)(vector);
            match (data_type, values) {
                (DataType::Int32 | DataType::Date, Values::I64(values)) => {
                    values[rows]
                        .iter()
                        .enumerate()
                        .for_each(|(i, v)| *data.cast::<i32>().add(i) = *v as i32);
                }
                (DataType::Int64 | DataType::Timestamp, Values::I64(values)) => {
                    std::ptr::copy_nonoverlapping(
                        values[rows.clone()].as_ptr(),
                        data.cast(),
                        rows.len(),
                    );
                }
                // DuckDB holds 10 to 18 digits in 64 bits, fewer in less.
                (DataType::Decimal { precision: 10..=18, .. }, Values::I64(values)) => {
                    std::ptr::copy_nonoverlapping(
                        values[rows.clone()].as_ptr(),
                        data.cast(),
                        rows.len(),
                    );
                }
                (DataType::Float64, Values::F64(values)) => {
                    std::ptr::copy_nonoverlapping(
                        values[rows.clone()].as_ptr(),
                        data.cast(),
                        rows.len(),
                    );
                }
                (DataType::Text { .. }, Values::Bytes(values)) => {
                    for (i, row) in rows.enumerate() {
                        let bytes = values.get(row);
                        let assign = self.api.vector_assign_string_element_len;
                        assign(vector, i as u64, bytes.as_ptr().cast(), bytes.len() as u64);
                    }
                }
                (other, _) => return Err(format!("cannot append {other} to DuckDB here").into()),
            }
        }
        Ok(())
    }

    /// Writes all buffered rows.
    pub fn finish(self) -> Outcome<()> {
        // SAFETY: open.
        match unsafe { (self.api.appender_close)(self.handle) } {
            0 => Ok(()),
            _ => Err(self.error()),
        }
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // SAFETY: both are ours and not freed yet; null is allowed.
        unsafe {
            (self.api.destroy_data_chunk)(&mut self.chunk);
            (self.api.appender_destroy)(&mut self.handle);
        }
    }
}
