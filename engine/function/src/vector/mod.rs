//! How kernels reach rows and values: which rows to compute, nulls of several arguments together,
//! typed views of vectors of any form, and loops that build a vector row by row.

pub mod groups;
pub mod map;
pub mod room;
pub mod rows;
pub mod validity;
pub mod view;
