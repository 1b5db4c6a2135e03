//! Names of functions that do not exist.

use crate::bind::names::unsupported;
use crate::bind::scope::with_suggestion;
use nacre_function::registry;
use nacre_types::Error;

/// The error for a function that does not exist, called `name` and spelled `written`.
#[cold]
pub(super) fn unknown(name: &str, written: &str) -> Error {
    if is_json(name) {
        return unsupported(&format!("function {written}"));
    }
    let error = Error::not_found(format!("no function `{written}`")).with_sqlstate("42883");
    let known =
        registry::scalar_names().chain(registry::aggregate_names()).chain(registry::window_names());
    with_suggestion(error, written, known)
}

/// Whether a name is reserved for JSON functions, which do not exist yet.
fn is_json(name: &str) -> bool {
    name.starts_with("json_") || name.starts_with("jsonb_") || name == "json" || name == "jsonb"
}
