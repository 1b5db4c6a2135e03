//! Decides the order of clauses and how each is evaluated.
//!
//! The clauses of a conjunction are ordered by `(1 - share) / cost`, those of a disjunction by
//! `share / cost`, each node for itself: the best order if they are independent.

use super::estimates::Estimates;
use crate::scan::filter::clauses::{Clause, Clauses, Test};
use nacre_sql::ScanStrategy;

/// How much better another order must be to be taken.
const CLEARLY: f32 = 1.1;
/// How many times as long as clause by clause a group may take by the estimates and still be tried.
const MAY_GROUP: f32 = 1.5;
/// Output columns are decoded whole if more than one row in this many passes.
const DECODE_ONE_IN: f32 = 8.0;

/// A test of encoded values that takes at most this many nanoseconds a row is never worth avoiding:
/// what fetching few rows takes at least.
const FETCH_NS: f32 = 1.0;
/// How many times as long as decoding them the fetched rows may take: they are also collected, tested
/// and scattered.
const FETCHED: f32 = 4.0;
/// A time by which another can be divided.
const LEAST_NS: f32 = 0.01;

/// How the clauses of the next ranges are evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::scan) struct Decision {
    /// The clauses in their order.
    pub tree: Clause,
    /// For each leaf, whether it tests encoded values.
    pub encoded: Vec<bool>,
    /// For each leaf, how many times as long as decoding its columns a test of encoded values takes,
    /// less what fetching rows takes besides reading them; 0 if rows are never fetched instead.
    pub tested: Vec<f32>,
    /// For each leaf, whether so few rows are expected to reach it that they are fetched one by one,
    /// whatever its strategy.
    pub few: Vec<bool>,
    /// Whether all clauses are evaluated on all rows, decoded.
    pub group: bool,
    /// What to measure meanwhile.
    pub trial: Trial,
}

/// What is measured in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scan) enum Trial {
    Nothing,
    /// Each clause that many rows are expected to reach by each strategy, on all rows.
    Leaves,
    /// The whole range, by the decision.
    Whole,
}

/// Share and cost of a clause.
#[derive(Clone, Copy)]
struct Rank {
    share: f32,
    ns: f32,
}

impl Rank {
    /// The rank in a conjunction or disjunction; the greatest comes first.
    fn value(self, is_all: bool) -> f32 {
        let decided = if is_all { 1.0 - self.share } else { self.share };
        decided / self.ns.max(f32::MIN_POSITIVE)
    }
}

/// The inputs of a decision besides the estimates.
#[derive(Clone, Copy)]
pub(in crate::scan) struct Deciding<'a> {
    pub clauses: &'a Clauses,
    /// Which output columns the operator above reads.
    pub needed: &'a [bool],
}

impl Decision {
    /// The decision that a setting fixes: clauses in the order written.
    pub fn fixed(strategy: ScanStrategy, clauses: &Clauses) -> Decision {
        let encoded = !matches!(strategy, ScanStrategy::Regular | ScanStrategy::Group);
        Decision {
            tree: clauses.tree.clone(),
            encoded: vec![encoded; clauses.leaves.len()],
            tested: vec![0.0; clauses.leaves.len()],
            few: vec![false; clauses.leaves.len()],
            group: strategy == ScanStrategy::Group,
            trial: Trial::Nothing,
        }
    }

    /// The best decision by the estimates, starting from the order of `tree`.
    pub fn best(tree: &Clause, deciding: Deciding<'_>, estimates: &Estimates) -> Decision {
        let clauses = deciding.clauses;
        let mut decision = Decision {
            tree: Clause::All(Vec::new()),
            encoded: vec![true; clauses.leaves.len()],
            tested: vec![0.0; clauses.leaves.len()],
            few: vec![false; clauses.leaves.len()],
            group: estimates.as_group.ns() * CLEARLY < estimates.by_clause.ns(),
            trial: Trial::Nothing,
        };
        let passing = decision.rank(tree, deciding, estimates).share;
        decision.tree = decision.sorted(tree, deciding, estimates).0;
        let mut decoded = vec![false; deciding.needed.len()];
        // Columns that are decoded anyway cost the filter nothing.
        if passing * DECODE_ONE_IN > 1.0 {
            decoded.copy_from_slice(deciding.needed);
        }
        let tree = decision.tree.clone();
        decision.choose(&tree, 1.0, clauses, estimates, &mut decoded);
        decision
    }

    /// Whether evaluating all clauses on all rows may be as fast as one after the other.
    pub fn may_group(&self, deciding: Deciding<'_>, estimates: &Estimates) -> bool {
        let mut columns: Vec<usize> =
            deciding.clauses.leaves.iter().flat_map(|leaf| leaf.columns.iter().copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        let decoding: f32 = columns.iter().map(|column| estimates.decoding[*column].ns()).sum();
        let evaluating: f32 = estimates.leaves.iter().map(|leaf| leaf.regular.ns()).sum();
        decoding + evaluating <= self.rank(&self.tree, deciding, estimates).ns * MAY_GROUP
    }

    /// Whether the estimates still agree with the order.
    pub fn is_ordered(&self, deciding: Deciding<'_>, estimates: &Estimates) -> bool {
        self.node_is_ordered(&self.tree, deciding, estimates)
    }

    fn node_is_ordered(&self, node: &Clause, on: Deciding<'_>, estimates: &Estimates) -> bool {
        let (list, is_all) = match node {
            Clause::Leaf(_) => return true,
            Clause::All(list) => (list, true),
            Clause::Any(list) => (list, false),
        };
        let value = |clause| self.rank(clause, on, estimates).value(is_all);
        list.windows(2).all(|pair| value(&pair[0]) * CLEARLY >= value(&pair[1]))
            && list.iter().all(|clause| self.node_is_ordered(clause, on, estimates))
    }

    /// The clause with its nodes in order.
    fn sorted(&self, node: &Clause, on: Deciding<'_>, estimates: &Estimates) -> (Clause, Rank) {
        let (list, is_all) = match node {
            Clause::Leaf(_) => return (node.clone(), self.rank(node, on, estimates)),
            Clause::All(list) => (list, true),
            Clause::Any(list) => (list, false),
        };
        let mut list: Vec<(Clause, Rank)> =
            list.iter().map(|clause| self.sorted(clause, on, estimates)).collect();
        // Stable: equal ones stay in the order written.
        list.sort_by(|(_, a), (_, b)| b.value(is_all).total_cmp(&a.value(is_all)));
        let rank = in_sequence(list.iter().map(|(_, rank)| *rank), is_all);
        let list = list.into_iter().map(|(clause, _)| clause).collect();
        (if is_all { Clause::All(list) } else { Clause::Any(list) }, rank)
    }

    fn rank(&self, node: &Clause, on: Deciding<'_>, estimates: &Estimates) -> Rank {
        match node {
            Clause::Leaf(at) => {
                let leaf = &estimates.leaves[*at];
                let columns = &on.clauses.leaves[*at].columns;
                let decoding: f32 = columns.iter().map(|c| estimates.decoding[*c].ns()).sum();
                let regular = leaf.regular.ns() + decoding;
                let ns = match &on.clauses.leaves[*at].test {
                    Test::Values { .. } | Test::Null { .. } => regular.min(leaf.encoded.ns()),
                    Test::Expr(_) if leaf.on_codes => regular.min(leaf.encoded.ns()),
                    Test::Joined { .. } | Test::Expr(_) => regular,
                };
                Rank { share: leaf.share(), ns }
            }
            Clause::All(list) => {
                in_sequence(list.iter().map(|clause| self.rank(clause, on, estimates)), true)
            }
            Clause::Any(list) => {
                in_sequence(list.iter().map(|clause| self.rank(clause, on, estimates)), false)
            }
        }
    }

    /// Chooses the strategies of leaves that are reached by this share of the rows; returns the
    /// share that passes.
    fn choose(
        &mut self,
        node: &Clause,
        reached: f32,
        clauses: &Clauses,
        estimates: &Estimates,
        decoded: &mut [bool],
    ) -> f32 {
        match node {
            Clause::Leaf(at) => {
                let (leaf, estimate) = (&clauses.leaves[*at], &estimates.leaves[*at]);
                let few = reached * DECODE_ONE_IN <= 1.0;
                let decoding_of = |undecoded: &dyn Fn(usize) -> bool| -> f32 {
                    let columns = leaf.columns.iter().filter(|column| undecoded(**column));
                    columns.map(|column| estimates.decoding[*column].ns()).sum()
                };
                let decoding = decoding_of(&|column| !decoded[column]);
                let tested = (estimate.encoded.ns() - FETCH_NS).max(0.0);
                self.tested[*at] = tested / decoding_of(&|_| true).max(LEAST_NS) / FETCHED;
                let (regular, encoded) = match &leaf.test {
                    // All rows of a range are tested together.
                    Test::Values { .. } | Test::Null { .. } => {
                        (decoding + estimate.regular.ns(), estimate.encoded.ns())
                    }
                    // Encoded text is read for the rows that are left, as decoded text is.
                    Test::Expr(_) if estimate.on_codes => {
                        let read = if few { decoding * reached } else { decoding };
                        (read + estimate.regular.ns() * reached, estimate.encoded.ns() * reached)
                    }
                    // Codes are decoded for both, and those of few rows by themselves.
                    Test::Expr(_) => {
                        let looked_up = if few { reached } else { 1.0 };
                        (estimate.regular.ns() * reached, estimate.encoded.ns() * looked_up)
                    }
                    Test::Joined { .. } => (0.0, 0.0),
                };
                self.encoded[*at] = encoded < regular;
                self.few[*at] = few;
                let is_undecoded = estimate.on_codes
                    || matches!(leaf.test, Test::Values { .. } | Test::Null { .. });
                if !(is_undecoded && self.encoded[*at]) {
                    leaf.columns.iter().for_each(|column| decoded[*column] = true);
                }
                reached * estimate.share()
            }
            Clause::All(list) => list.iter().fold(reached, |reached, clause| {
                self.choose(clause, reached, clauses, estimates, decoded)
            }),
            Clause::Any(list) => {
                let left = list.iter().fold(reached, |left, clause| {
                    left - self.choose(clause, left, clauses, estimates, decoded)
                });
                reached - left
            }
        }
    }
}

/// Share and cost of clauses that are evaluated one after the other, each on the rows that the ones
/// before it leave undecided.
fn in_sequence(ranks: impl Iterator<Item = Rank>, is_all: bool) -> Rank {
    let (mut left, mut ns) = (1.0, 0.0);
    for rank in ranks {
        ns += left * rank.ns;
        left *= if is_all { rank.share } else { 1.0 - rank.share };
    }
    Rank { share: if is_all { left } else { 1.0 - left }, ns }
}
