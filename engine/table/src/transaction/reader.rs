//! A second pair of eyes on a transaction's snapshot.

use crate::transaction::state::Transaction;
use nacre_types::hash::Map;

impl Transaction {
    /// A transaction of its own on the same snapshot, which it keeps alive however long this one lasts. It does not
    /// see what this one has changed, nor what it will change: where [`Transaction::has_writes`] says that there is
    /// something, whoever wants to see it reads in this one.
    pub fn reader(&self) -> Transaction {
        Transaction {
            store: self.store.clone(),
            owner: self.store.new_owner(),
            guard: self.guard.clone(),
            undo: Vec::new(),
            hidden: Map::default(),
            blocker: None,
            finished: false,
        }
    }
}
