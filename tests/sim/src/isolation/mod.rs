//! Isolation, judged from outside: concurrent transactions append numbers to lists and read them, and from what each
//! read the order of versions follows, and from that who depended on whom.
//!
//! The definitions are those of Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for
//! Distributed Transactions" (1999); that lists show the order of versions is Elle's idea (Kingsbury and Alvaro, 2020).
//!
//! Two kinds of histories. In a *plain* one transactions read with `SELECT`; snapshot isolation must hold, and write
//! skew, which it allows, is not reported. In a *locked* one every read is `SELECT … FOR UPDATE`, which is how an
//! application asks for more than its snapshot: then there must be no write skew either, and the checker is asked for
//! serialisability. The planted bug `write-skew-allowed` makes `FOR UPDATE` read without locking.

pub mod check;
pub mod history;
pub mod native;
pub mod run;
pub mod simulated;
pub mod work;

#[cfg(test)]
mod tests;
