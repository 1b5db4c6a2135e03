//! Nacre in a JavaScript runtime: the engine's host interface on top of JavaScript objects, and the
//! functions called by `worker/shared/connection.ts`. The only crate that depends on wasm-bindgen.
//!
//! The boundary passes SQL text and parameters in, columns (not rows) out, and errors as plain
//! objects. A call returns its result if the engine did not have to wait, and a `Pending`
//! otherwise.

mod answer;
mod blobs;
mod changes;
mod columns;
mod database;
mod error;
mod functions;
mod host;
mod inspect;
mod load;
mod parameters;
mod plain;
mod rows;
mod session;
mod store;
mod wire;

pub use answer::Pending;
pub use database::Database;
pub use load::Load;
pub use rows::Rows;
pub use session::{Prepared, Session, ends_transaction};

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

#[wasm_bindgen(raw_module = "../more.js")]
extern "C" {
    /// Loads the functions that are not in the module itself. What is shipped is divided when it
    /// is built (`tools/divide`), and then calls this by itself before the first of them.
    #[wasm_bindgen(js_name = loadMore)]
    fn load_more();
}

/// Makes the whole engine available now, instead of when it is needed.
#[wasm_bindgen(js_name = loadAll)]
pub fn load_all() {
    load_more();
}

/// Runs when the module is instantiated. A panic traps; this hook prints its location.
#[wasm_bindgen(start)]
fn start() {
    plain::keep();
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
}
