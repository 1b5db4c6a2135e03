//! Names of the system.

use nacre_function::entry::definition::Arity;
use nacre_function::entry::definition::Expression;
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::expression;
use nacre_types::{DataType, Result, Value};

/// The name of every database.
pub const DATABASE: &str = "nacre";
/// The only schema.
pub const SCHEMA: &str = "main";

/// The functions of this file, all constants.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["version"],
        Doc::new(
            "version()",
            "The name and version of the database.",
            "left(version(), 5)",
            "Nacre",
        ),
        Arity::exactly(0),
        |binding, _| constant(binding, concat!("Nacre ", env!("CARGO_PKG_VERSION"))),
    ),
    &expression(
        &["database", "current_database"],
        Doc::new("database(), current_database()", "The database's name.", "database()", "nacre"),
        Arity::exactly(0),
        |binding, _| constant(binding, DATABASE),
    ),
    &expression(
        &["schema", "current_schema"],
        Doc::new("schema(), current_schema()", "The schema's name.", "current_schema()", "main"),
        Arity::exactly(0),
        |binding, _| constant(binding, SCHEMA),
    ),
];

fn constant(binding: &mut dyn Binding, text: &str) -> Result<Operand> {
    Ok(binding.constant(Value::Text(text.to_string()), DataType::TEXT))
}
