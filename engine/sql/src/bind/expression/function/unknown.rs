//! Names of functions that do not exist.

use crate::bind::names::unsupported;
use crate::bind::scope::with_suggestion;
use crate::plan::Catalog;
use nacre_builtin::registry;
use nacre_function::entry::created::CreatedFunctions;
use nacre_types::Error;

/// The error for a function that does not exist, called `name` and spelled `written`.
#[cold]
pub(super) fn unknown(catalog: &dyn Catalog, name: &str, written: &str) -> Error {
    if is_json(name) || name == "unnest" {
        return unsupported(&format!("function {written}"));
    }
    let error = Error::not_found(format!("no function `{written}`")).with_sqlstate("42883");
    let listed =
        registry::scalar_names().chain(registry::aggregate_names()).chain(registry::window_names());
    let created = catalog.created_functions().into_iter().flat_map(CreatedFunctions::iter);
    let mut known: Vec<&str> = listed.collect();
    known.extend(created.map(|(name, _)| name));
    with_suggestion(error, written, known.into_iter())
}

/// Whether a name is reserved for JSON functions, not all of which exist.
fn is_json(name: &str) -> bool {
    name.starts_with("json_") || name.starts_with("jsonb_")
}
