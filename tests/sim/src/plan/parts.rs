//! The parts of a plan: tables, and what happens from one start of the database to its end.

use crate::disk::Fault;
use crate::op::Op;
use crate::op::shape::Index;

/// How a phase ends unless a fault ends it earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A power cut.
    PowerCut,
    /// The process is killed.
    Kill,
    /// The database is closed.
    Close,
}

/// The operations of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its role.
    pub role: &'static str,
    /// Operations, in order.
    pub ops: Vec<Op>,
    /// Whether it prepares its statements on rows.
    pub prepares: bool,
}

/// The time from one start of the database to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Faults while opening.
    pub recovery_faults: Vec<Fault>,
    /// Faults after opening.
    pub faults: Vec<Fault>,
    /// The sessions.
    pub scripts: Vec<Script>,
    /// The end.
    pub end: End,
}

/// A permanent table, created again if a crash removed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its name.
    pub name: &'static str,
    /// Whether `k` is its primary key.
    pub keyed: bool,
    /// Its sort and shard keys, which do not affect results.
    pub keys: &'static str,
    /// Its initial indexes.
    pub indexes: Vec<Index>,
    /// Whether it has a column of documents.
    pub documents: bool,
}

impl Setup {
    /// The operation that creates it.
    pub fn create(&self) -> Op {
        let Setup { name: table, keyed, keys, indexes, documents } = self.clone();
        Op::Create { table, keyed, keys, indexes, documents, if_missing: true }
    }
}
