//! The data each thread writes, as a function of its number and its commits so far: the writer
//! executes it, the driver computes the expected tables from it. Independent of clocks, randomness
//! and the database.

use crate::many::{self, Many};
use nacre_testing::Random;
use std::collections::BTreeMap;

/// Number of accounts, shared by all threads.
pub const ACCOUNTS: i64 = 64;
/// Initial balance of each account.
pub const BALANCE: i64 = 1_000;

/// The tables, all with a primary key.
pub const TABLES: [&str; 6] = [
    many::TABLE,
    "create table if not exists accounts (id bigint primary key, balance bigint not null)",
    "create table if not exists journal (thread bigint not null, seq bigint not null, payload text not null, \
     primary key (thread, seq))",
    "create table if not exists items (thread bigint not null, id bigint not null, value bigint not null, \
     note text not null, primary key (thread, id))",
    "create table if not exists transfers (thread bigint not null, seq bigint not null, source bigint not null, \
     target bigint not null, amount bigint not null, primary key (thread, seq))",
    "create table if not exists bulk (thread bigint not null, seq bigint not null, n bigint not null, \
     text text not null, primary key (thread, seq, n))",
];

/// One row of `items` without its thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub value: i64,
    pub note: String,
}

/// One row of `transfers` without its thread and number.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    pub source: i64,
    pub target: i64,
    pub amount: i64,
}

/// A change of the thread's own items, or of the shared accounts.
#[derive(Clone, Debug)]
pub enum Operation {
    Insert(Vec<(i64, Item)>),
    UpdateOne { id: i64, item: Item },
    UpdateRange { from: i64, to: i64, add: i64 },
    DeleteOne { id: i64 },
    DeleteRange { from: i64, to: i64 },
    Transfer(Transfer),
}

/// One commit.
#[derive(Clone, Debug)]
pub enum Step {
    /// A single statement that inserts a journal row.
    Single,
    /// An explicit transaction: a journal row and these operations, after `abandoned` were run in a
    /// transaction that is rolled back.
    Transaction { abandoned: Vec<Operation>, operations: Vec<Operation> },
    /// A bulk load of this many rows, without a journal row.
    Bulk { rows: i64 },
    /// A change of many rows, without a journal row.
    Many(Many),
}

/// The results of a thread's committed transactions.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub thread: i64,
    /// Number of committed transactions, and number of the next one.
    pub seq: i64,
    pub journal: BTreeMap<i64, String>,
    pub items: BTreeMap<i64, Item>,
    pub transfers: BTreeMap<i64, Transfer>,
    /// Number of rows of each bulk load.
    pub bulk: BTreeMap<i64, i64>,
    /// The values of the rows of which many are changed at once, and of those that mark commits.
    pub many: BTreeMap<i64, i64>,
    /// Number of rows of a large change.
    pub large: i64,
    next_id: i64,
}

/// A text unique to one row.
pub fn text(thread: i64, seq: i64, n: i64) -> String {
    let mut random = Random::new((thread as u64) << 48 ^ (seq as u64) << 20 ^ n as u64);
    let words = ["mother", "of", "pearl", "layer", "shell", "tide", "reef", "salt"];
    let mut out = format!("{thread}/{seq}/{n}");
    for _ in 0..random.below(12) {
        out.push(' ');
        out.push_str(words[random.below(words.len() as u64) as usize]);
    }
    out
}

impl Model {
    /// A thread without commits.
    pub fn new(thread: i64, large: i64) -> Model {
        Model { thread, large, ..Model::default() }
    }

    /// The next transaction.
    pub fn next_step(&self) -> Step {
        let mut random = Random::new((self.thread as u64 + 1) << 40 ^ self.seq as u64);
        match random.below(20) {
            0..=6 => Step::Single,
            7 => Step::Bulk { rows: 20 + random.below(400) as i64 },
            8 => Step::Many(Many::next(&self.many, self.large, &mut random)),
            _ => {
                let abandoned = if random.below(8) == 0 {
                    self.operations(&mut random, false)
                } else {
                    Vec::new()
                };
                Step::Transaction { abandoned, operations: self.operations(&mut random, true) }
            }
        }
    }

    /// Operations that are valid one after another on the current items.
    fn operations(&self, random: &mut Random, transfers: bool) -> Vec<Operation> {
        let mut after = self.clone_items();
        let mut out = Vec::new();
        for n in 0..1 + random.below(5) as i64 {
            let ids = after.next_id;
            let id = random.below(ids.max(1) as u64) as i64;
            let operation = match random.below(10) {
                0..=3 => {
                    let count = 1 + random.below(20) as i64;
                    let item = |i: i64| Item {
                        value: (i * 7 + self.seq) % 1_000,
                        note: text(self.thread, self.seq, n * 100 + i),
                    };
                    Operation::Insert((0..count).map(|i| (ids + i, item(i))).collect())
                }
                4 | 5 => {
                    let item = Item {
                        value: random.below(1_000) as i64,
                        note: text(self.thread, self.seq, -1 - n),
                    };
                    Operation::UpdateOne { id, item }
                }
                6 => Operation::UpdateRange {
                    from: id,
                    to: id + random.below(30) as i64,
                    add: 1 + n,
                },
                7 => Operation::DeleteOne { id },
                8 => Operation::DeleteRange { from: id, to: id + random.below(8) as i64 },
                _ if transfers && !out.iter().any(|o| matches!(o, Operation::Transfer(_))) => {
                    let source = random.below(ACCOUNTS as u64) as i64;
                    let target = (source + 1 + random.below(ACCOUNTS as u64 - 1) as i64) % ACCOUNTS;
                    Operation::Transfer(Transfer {
                        source,
                        target,
                        amount: 1 + random.below(50) as i64,
                    })
                }
                _ => continue,
            };
            after.apply_operation(&operation);
            out.push(operation);
        }
        out
    }

    /// The part of the model that determines the operations.
    fn clone_items(&self) -> Model {
        Model { thread: self.thread, seq: self.seq, next_id: self.next_id, ..Model::default() }
    }

    /// Records that the thread has committed a step.
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Single => {}
            Step::Transaction { operations, .. } => {
                operations.iter().for_each(|o| self.apply_operation(o))
            }
            Step::Bulk { rows } => {
                self.bulk.insert(self.seq, *rows);
            }
            Step::Many(many) => many.apply(self.seq, &mut self.many),
        }
        if !matches!(step, Step::Bulk { .. } | Step::Many(_)) {
            self.journal.insert(self.seq, text(self.thread, self.seq, 0));
        }
        self.seq += 1;
    }

    fn apply_operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(rows) => {
                self.next_id += rows.len() as i64;
                self.items.extend(rows.iter().cloned());
            }
            Operation::UpdateOne { id, item } => {
                if let Some(old) = self.items.get_mut(id) {
                    *old = item.clone();
                }
            }
            Operation::UpdateRange { from, to, add } => {
                self.items.range_mut(from..=to).for_each(|(_, item)| item.value += add);
            }
            Operation::DeleteOne { id } => {
                self.items.remove(id);
            }
            Operation::DeleteRange { from, to } => {
                self.items.retain(|id, _| !(from..=to).contains(&id));
            }
            Operation::Transfer(transfer) => {
                self.transfers.insert(self.seq, transfer.clone());
            }
        }
    }
}
