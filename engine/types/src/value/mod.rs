//! Values and their types: representation, formatting, and arithmetic on decimals and dates.

mod data_type;
pub mod decimal;
mod double;
pub mod interval;
pub mod json;
pub mod temporal;
pub mod uuid;
#[allow(clippy::module_inception, reason = "the folder is named for its central type")]
mod value;

pub use data_type::{DECIMAL_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DataType, PhysicalType};
pub use double::parse_float;
pub use interval::Interval;
pub use value::{Value, format_float, format_float32};
