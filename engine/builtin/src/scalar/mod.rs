//! The scalar functions, one entry each.

pub mod any;
pub mod calendar;
mod characters;
mod clock;
mod date_format;
pub mod date_part;
pub mod digest;
pub mod json;
pub mod numbers;
pub mod pattern;
pub mod printf;
pub mod random;
pub mod rounding;
pub mod strings;
pub mod system;
pub mod text;
pub mod trigonometry;
