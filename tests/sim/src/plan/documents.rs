//! Indexes and conditions on what documents contain. Drawn separately, so that older seeds keep their
//! meaning where tables have no documents.

use crate::op::Op;
use crate::op::condition::Where;
use crate::op::shape::PATH_INDEXES;
use crate::plan::parts::{Phase, Setup};
use nacre_testing::Random;

/// Gives tables with documents indexes on these, and lets statements look for what is in them.
pub(super) fn use_paths(seed: u64, tables: &mut [Setup], phases: &mut [Phase]) {
    let mut random = Random::with_purpose(seed, "paths");
    let mut named: Vec<&'static str> = Vec::new();
    for table in tables.iter_mut().filter(|table| table.documents) {
        named.push(table.name);
        if random.percent(70) {
            let some = PATH_INDEXES
                .iter()
                .filter(|index| random.percent(if index.unique { 10 } else { 50 }));
            table.indexes.extend(some);
        }
    }
    if named.is_empty() {
        return;
    }
    for script in phases.iter_mut().flat_map(|phase| &mut phase.scripts) {
        script.ops.iter_mut().for_each(|op| look_in_documents(op, &named, &mut random));
        if random.percent(15) {
            let (table, index) = (*random.pick(&named), *random.pick(&PATH_INDEXES));
            let (alter, lenient) = (random.percent(30), random.percent(50));
            let op = match random.below(3) {
                0 => Op::DropIndex { table, name: index.name, alter, if_there: lenient && !alter },
                _ => Op::CreateIndex { table, index, alter, if_missing: lenient && !alter },
            };
            script.ops.insert(0, op);
        }
    }
}

/// Replaces a condition on a column by one on the same value in the document.
fn look_in_documents(op: &mut Op, named: &[&'static str], random: &mut Random) {
    let (Op::Select { table, rows }
    | Op::Audit { table, rows }
    | Op::First { table, rows, .. }
    | Op::Join { table, rows, .. }
    | Op::ForUpdate { table, rows }
    | Op::Add { table, rows, .. }
    | Op::Number { table, rows, .. }
    | Op::Text { table, rows, .. }
    | Op::Delete { table, rows }) = op
    else {
        return;
    };
    if !named.contains(table) || !random.percent(50) {
        return;
    }
    match rows {
        Where::V(v) => *rows = Where::Number(*v),
        Where::S(s) => *rows = Where::Listed(s.clone()),
        _ => {}
    }
}
