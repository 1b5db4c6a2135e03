//! Plans and operators on tables in memory.

mod absent;
mod expr;
mod first_rows;
mod functions;
mod join;
mod models;
mod spill;
mod window;
