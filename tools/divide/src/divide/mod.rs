//! What is in which module, and how one reaches the functions of the other.
//!
//! Both share a table, a memory and globals, which belong to the first module. The second imports
//! the functions of the first that it calls. A function of the second that the first calls, exports
//! or has in its table stands there as a *stub*: it sees that the second module is there, and calls
//! the function by its place in the table, which the second module fills.

use crate::parsed::{Parsed, Result};
use crate::plan::Plan;
use crate::{first, more};

pub struct Divided {
    pub first: Vec<u8>,
    pub more: Vec<u8>,
}

pub fn divide(parsed: &Parsed<'_>, needed: &[u32]) -> Result<Divided> {
    let plan = Plan::new(parsed, needed)?;
    Ok(Divided { first: first::first(parsed, &plan)?, more: more::more(parsed, &plan)? })
}

#[cfg(test)]
mod tests;
