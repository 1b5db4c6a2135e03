//! The statements of the writers.

use crate::tiers::run::Run;
use crate::tiers::state::{State, text_of};
use std::collections::BTreeMap;

impl Run {
    /// A statement, and what it makes of the rows.
    pub(super) fn statement(&mut self, state: &State) -> (String, State) {
        let Some(rows) = state else {
            let sql = "create table t (k bigint primary key, v bigint, s varchar(400), key (v))";
            return (sql.into(), Some(BTreeMap::new()));
        };
        let mut rows = rows.clone();
        let random = &mut self.random;
        let key = random.between(0, 60);
        let sql = match random.below(10) {
            0..=5 => {
                let count = *random.pick(&[1, 1, 3, 20]);
                let mut values = Vec::new();
                for key in key..key + count {
                    let value = random.between(0, 1_000);
                    rows.insert(key, value);
                    values.push(format!("({key}, {value}, '{}')", text_of(key, value)));
                }
                format!("replace into t values {}", values.join(", "))
            }
            6 | 7 => {
                let to = key + random.between(0, 10);
                rows.retain(|other, _| *other < key || *other > to);
                format!("delete from t where k between {key} and {to}")
            }
            _ => {
                let value = random.between(0, 1_000);
                if let Some(old) = rows.get_mut(&key) {
                    *old = value;
                }
                let text = text_of(key, value);
                format!("update t set v = {value}, s = '{text}' where k = {key}")
            }
        };
        (sql, Some(rows))
    }
}
