//! The order of clauses is the best of all orders, and follows what is seen.

use super::decision::{Deciding, Decision};
use super::estimates::{Estimates, Observations};
use crate::scan::filter::clauses::{Clause, Clauses};
use crate::testing::*;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, Value};

const I64: DataType = DataType::Int64;

/// Clauses over three columns, which no set of values can stand for.
fn clauses(is_all: bool) -> Clauses {
    let fixture = Fixture::new();
    let pair = |a: usize, b: usize| compare(BinaryOp::Less, col(a, I64), col(b, I64));
    let list = vec![pair(0, 1), pair(1, 2), pair(2, 0)];
    let filter: Expr = boolean(if is_all { ExprKind::And(list) } else { ExprKind::Or(list) });
    Clauses::of(&[filter], &fixture.context())
}

/// Estimates of leaves that pass these shares in per cent and take these times.
fn estimates(clauses: &Clauses, leaves: [(usize, u64); 3]) -> Estimates {
    let mut estimates = Estimates::guess(clauses, 3);
    let mut seen = Observations::none(3, 3);
    for (own, (share, ns)) in seen.leaves.iter_mut().zip(leaves) {
        (own.seen, own.passed) = (1_000_000, share * 10_000);
        own.regular.add(2_048, ns * 2_048);
    }
    // Decoding takes next to no time.
    seen.decoding.iter_mut().for_each(|timing| timing.add(1 << 30, 1));
    estimates.add(&seen);
    estimates
}

fn leaves(tree: &Clause) -> Vec<usize> {
    match tree {
        Clause::Leaf(at) => vec![*at],
        Clause::All(list) | Clause::Any(list) => list.iter().flat_map(leaves).collect(),
    }
}

/// The time per row of an order.
fn cost(order: &[usize], shares: [(usize, u64); 3], is_all: bool) -> f64 {
    let (mut left, mut sum) = (1.0, 0.0);
    for at in order {
        let (share, ns) = (shares[*at].0 as f64 / 100.0, shares[*at].1 as f64);
        sum += left * ns;
        left *= if is_all { share } else { 1.0 - share };
    }
    sum
}

#[test]
fn the_order_is_the_best() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let needed = [true; 3];
    for is_all in [true, false] {
        let clauses = clauses(is_all);
        let on = Deciding { clauses: &clauses, needed: &needed };
        for a in [(2, 3), (50, 3), (97, 3), (50, 90)] {
            for b in [(10, 5), (90, 1), (60, 200)] {
                for c in [(30, 10), (99, 2), (1, 70)] {
                    let estimates = estimates(&clauses, [a, b, c]);
                    let found = Decision::best(&clauses.tree, on, &estimates);
                    let found = cost(&leaves(&found.tree), [a, b, c], is_all);
                    let costs = orders.map(|order| cost(&order, [a, b, c], is_all));
                    let best = costs.into_iter().fold(f64::MAX, f64::min);
                    assert!(found <= best * 1.02, "{is_all} {a:?} {b:?} {c:?}: {found} > {best}");
                }
            }
        }
    }
}

#[test]
fn an_order_stays_until_another_is_clearly_better() {
    let clauses = clauses(true);
    let on = Deciding { clauses: &clauses, needed: &[true; 3] };
    let first = estimates(&clauses, [(10, 10), (20, 10), (30, 10)]);
    let decision = Decision::best(&clauses.tree, on, &first);
    assert_eq!(leaves(&decision.tree), [0, 1, 2]);
    assert!(decision.is_ordered(on, &first));
    let close = estimates(&clauses, [(22, 10), (20, 10), (30, 10)]);
    assert!(decision.is_ordered(on, &close));
    // The share of later blocks replaces that of earlier ones.
    let mut changed = first.clone();
    for _ in 0..8 {
        let mut seen = Observations::none(3, 3);
        (seen.leaves[0].seen, seen.leaves[0].passed) = (4_096, 4_000);
        changed.add(&seen);
    }
    assert!(!decision.is_ordered(on, &changed));
    assert_eq!(leaves(&Decision::best(&decision.tree, on, &changed).tree), [1, 2, 0]);
}

#[test]
fn a_pattern_is_as_cheap_as_its_codes_only_where_they_are_tested() {
    let fixture = Fixture::new();
    let (arg, pattern) = (Box::new(col(0, DataType::TEXT)), Value::Text("%x%".into()));
    let pattern = Box::new(lit(pattern, DataType::TEXT));
    let like =
        ExprKind::Like { arg, pattern, escape: None, negated: false, case_insensitive: false };
    let less = compare(BinaryOp::Less, col(1, I64), col(2, I64));
    let filter = boolean(ExprKind::And(vec![boolean(like), less]));
    let clauses = Clauses::of(&[filter], &fixture.context());
    let on = Deciding { clauses: &clauses, needed: &[true; 3] };
    for (on_codes, order) in [(false, [1, 0]), (true, [0, 1])] {
        let mut seen = Observations::none(2, 3);
        for (leaf, ns) in seen.leaves.iter_mut().zip([40, 4]) {
            (leaf.seen, leaf.passed) = (1_000_000, 100_000);
            leaf.regular.add(2_048, ns * 2_048);
        }
        seen.leaves[0].on_codes = Some(on_codes);
        let mut estimates = Estimates::guess(&clauses, 3);
        estimates.add(&seen);
        let found = Decision::best(&clauses.tree, on, &estimates);
        assert_eq!(leaves(&found.tree), order, "on codes: {on_codes}");
    }
}
