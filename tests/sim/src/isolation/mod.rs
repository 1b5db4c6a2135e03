//! Checks isolation from outside: concurrent transactions append numbers to lists and read them.
//! The values read reveal the order of versions, and with it the dependencies between transactions.
//!
//! The definitions are those of A. Adya, *Weak Consistency: A Generalized Theory and Optimistic
//! Implementations for Distributed Transactions* (1999). Deriving the version order from lists is
//! the idea of Elle (K. Kingsbury and P. Alvaro, 2020).
//!
//! There are two kinds of histories. In a *plain* one, transactions read with `SELECT`; snapshot
//! isolation must hold, and write skew, which it allows, is not reported. In a *locked* one, every
//! read is `SELECT … FOR UPDATE`, as in an application that needs more than its snapshot: then
//! write skew is forbidden too, and the checker demands serialisability. The planted bug
//! `write-skew-allowed` makes `FOR UPDATE` read without locking.

pub mod check;
pub mod history;
pub mod native;
pub mod run;
pub mod simulated;
pub mod work;

#[cfg(test)]
mod tests;
