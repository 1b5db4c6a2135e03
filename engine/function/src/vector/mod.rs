//! Access of kernels to rows and values: active rows, combined nulls of several arguments, typed
//! views of vectors of any form, and loops that build a vector row by row.

pub mod groups;
pub mod map;
pub mod room;
pub mod rows;
pub mod validity;
pub mod view;
