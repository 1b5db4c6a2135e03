//! The part of DuckDB's C interface that the workloads use, loaded from a shared library at run
//! time.
//!
//! The declarations follow `duckdb.h` of 1.5 and 2.0. Handles are opaque pointers that only
//! [`super`] holds. Nothing here is linked: building and checking this crate needs no DuckDB.

use crate::measure::Outcome;
use libloading::Library;
use std::ffi::{c_char, c_void};
use std::path::Path;

/// An opaque DuckDB handle. Its type follows from the function that returned it.
pub type Handle = *mut c_void;
/// Status of a call; zero is success.
pub type State = u32;

/// `duckdb_result`: passed around by address, read only through functions.
#[repr(C)]
pub struct RawResult {
    columns_deprecated: u64,
    rows_deprecated: u64,
    changed_deprecated: u64,
    data_deprecated: *mut c_void,
    error_deprecated: *mut c_char,
    internal: *mut c_void,
}

impl RawResult {
    pub fn empty() -> RawResult {
        RawResult {
            columns_deprecated: 0,
            rows_deprecated: 0,
            changed_deprecated: 0,
            data_deprecated: std::ptr::null_mut(),
            error_deprecated: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        }
    }
}

/// Declares the table of functions and a function that loads it from a library.
macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions, named without their prefix.
        pub struct Api {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Api {
            /// Opens the library and looks up every function. The library stays open until the
            /// program ends.
            pub fn load(path: &Path) -> Outcome<Api> {
                // SAFETY: the library is DuckDB, whose initialisers have no requirements; the types
                // are those of its header.
                unsafe {
                    let library: &'static Library = Box::leak(Box::new(Library::new(path)?));
                    Ok(Api { $($field: *library.get(concat!($symbol, "\0"))?,)* })
                }
            }
        }
    };
}

functions! {
    library_version = "duckdb_library_version": fn() -> *const c_char;
    create_config = "duckdb_create_config": fn(*mut Handle) -> State;
    set_config = "duckdb_set_config": fn(Handle, *const c_char, *const c_char) -> State;
    destroy_config = "duckdb_destroy_config": fn(*mut Handle);
    open_ext = "duckdb_open_ext": fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    close = "duckdb_close": fn(*mut Handle);
    connect = "duckdb_connect": fn(Handle, *mut Handle) -> State;
    disconnect = "duckdb_disconnect": fn(*mut Handle);
    free = "duckdb_free": fn(*mut c_void);
    query = "duckdb_query": fn(Handle, *const c_char, *mut RawResult) -> State;
    result_error = "duckdb_result_error": fn(*mut RawResult) -> *const c_char;
    destroy_result = "duckdb_destroy_result": fn(*mut RawResult);
    row_count = "duckdb_row_count": fn(*mut RawResult) -> u64;
    column_count = "duckdb_column_count": fn(*mut RawResult) -> u64;
    value_varchar = "duckdb_value_varchar": fn(*mut RawResult, u64, u64) -> *mut c_char;
    appender_create = "duckdb_appender_create": fn(Handle, *const c_char, *const c_char, *mut Handle) -> State;
    appender_error = "duckdb_appender_error": fn(Handle) -> *const c_char;
    appender_close = "duckdb_appender_close": fn(Handle) -> State;
    appender_destroy = "duckdb_appender_destroy": fn(*mut Handle) -> State;
    append_data_chunk = "duckdb_append_data_chunk": fn(Handle, Handle) -> State;
    create_logical_type = "duckdb_create_logical_type": fn(u32) -> Handle;
    create_decimal_type = "duckdb_create_decimal_type": fn(u8, u8) -> Handle;
    destroy_logical_type = "duckdb_destroy_logical_type": fn(*mut Handle);
    create_data_chunk = "duckdb_create_data_chunk": fn(*mut Handle, u64) -> Handle;
    destroy_data_chunk = "duckdb_destroy_data_chunk": fn(*mut Handle);
    data_chunk_reset = "duckdb_data_chunk_reset": fn(Handle);
    data_chunk_set_size = "duckdb_data_chunk_set_size": fn(Handle, u64);
    data_chunk_get_vector = "duckdb_data_chunk_get_vector": fn(Handle, u64) -> Handle;
    vector_get_data = "duckdb_vector_get_data": fn(Handle) -> *mut c_void;
    vector_size = "duckdb_vector_size": fn() -> u64;
    vector_assign_string_element_len =
        "duckdb_vector_assign_string_element_len": fn(Handle, u64, *const c_char, u64);
}
