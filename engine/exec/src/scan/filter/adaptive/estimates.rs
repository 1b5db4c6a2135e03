//! Estimates of the clauses of a scan in a segment: the share of rows that pass, and the time per
//! row. They begin with guesses, which measurements replace.

use crate::scan::filter::clauses::{Clauses, Leaf, Test};
use nacre_sql::expr::{Expr, ExprKind};

/// How many rows a guess of a share counts for.
const GUESS_ROWS: f32 = 64.0;
/// Ranges shorter than this are not timed.
const TIMED_ROWS: usize = 1024;
/// Nanoseconds per row from which one measurement is enough.
const LONG_NS: f32 = 8.0;
/// How much what was seen before counts, against the block that was just read.
const KEPT: f32 = 0.5;
/// Guesses of times for a row, in nanoseconds: a test of an encoded value, of a decoded value,
/// decoding, the lookup of a dictionary entry's result, a join's filter, one node of an expression.
const ENCODED_NS: f32 = 0.5;
const COMPARED_NS: f32 = 0.7;
const DECODED_NS: f32 = 1.0;
const LOOKUP_NS: f32 = 1.0;
const JOINED_NS: f32 = 2.0;
const NODE_NS: f32 = 2.0;
/// The same for a node that reads text.
const TEXT_NODE_NS: f32 = 20.0;

/// The shortest time that was measured; the guess until then. A clock may be too coarse to see any
/// time pass, which is no measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::scan) struct Cost {
    ns: f32,
    is_measured: bool,
}

impl Cost {
    fn guess(ns: f32) -> Cost {
        Cost { ns, is_measured: false }
    }

    /// Nanoseconds per row.
    pub fn ns(self) -> f32 {
        self.ns
    }

    fn measure(&mut self, timing: Timing) {
        if let Some(ns) = timing.ns_per_row() {
            self.ns = if self.is_measured { self.ns.min(ns) } else { ns };
            self.is_measured = true;
        }
    }
}

/// The time of some rows, of the ranges of a block the one with the least per row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::scan) struct Timing {
    rows: usize,
    ns: u64,
}

impl Timing {
    /// Adds the time of a range. Short ranges say little, and a clock that saw no time pass nothing.
    pub fn add(&mut self, rows: usize, ns: u64) {
        let is_less = self.ns_per_row().is_none_or(|least| (ns as f32) < least * rows as f32);
        if ns > 0 && rows >= TIMED_ROWS && is_less {
            *self = Timing { rows, ns };
        }
    }

    /// Whether it took so long that it need not be measured again.
    pub fn is_long(self) -> bool {
        self.ns_per_row().is_some_and(|ns| ns > LONG_NS)
    }

    fn ns_per_row(self) -> Option<f32> {
        (self.rows > 0).then(|| self.ns as f32 / self.rows as f32)
    }
}

/// The estimates of one leaf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::scan) struct Estimate {
    /// Rows on which it was evaluated, and those that passed; older ones count less.
    seen: f32,
    passed: f32,
    guessed_share: f32,
    /// Evaluation on decoded values, without decoding them.
    pub regular: Cost,
    /// Evaluation on encoded values; of an expression, looking up results per dictionary entry.
    pub encoded: Cost,
    /// Whether its pattern is tested on encoded text, which is then not decoded.
    pub on_codes: bool,
}

/// What one range of rows has shown about a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::scan) struct Observed {
    pub seen: usize,
    pub passed: usize,
    pub regular: Timing,
    pub encoded: Timing,
    /// Whether a pattern could be tested on encoded text; `None` if that was not tried.
    pub on_codes: Option<bool>,
}

impl Estimate {
    fn guess(leaf: &Leaf) -> Estimate {
        let (share, regular, encoded) = match &leaf.test {
            Test::Values { .. } | Test::Null { .. } => (0.2, COMPARED_NS, ENCODED_NS),
            Test::Joined { .. } => (0.5, JOINED_NS, JOINED_NS),
            Test::Expr(expr) => (0.3, expr_ns(expr), LOOKUP_NS),
        };
        Estimate {
            seen: 0.0,
            passed: 0.0,
            guessed_share: share,
            regular: Cost::guess(regular),
            encoded: Cost::guess(encoded),
            on_codes: false,
        }
    }

    /// The share of rows that pass.
    pub fn share(&self) -> f32 {
        (self.passed + self.guessed_share * GUESS_ROWS) / (self.seen + GUESS_ROWS)
    }

    fn add(&mut self, observed: &Observed) {
        debug_assert!(observed.passed <= observed.seen, "{observed:?}");
        if observed.seen > 0 {
            self.seen = self.seen * KEPT + observed.seen as f32;
            self.passed = self.passed * KEPT + observed.passed as f32;
        }
        self.regular.measure(observed.regular);
        self.encoded.measure(observed.encoded);
        self.on_codes = observed.on_codes.unwrap_or(self.on_codes);
    }
}

/// The guessed time of an expression.
fn expr_ns(expr: &Expr) -> f32 {
    let own = match &expr.kind {
        ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::Parameter(_) => 0.0,
        ExprKind::Like { .. } | ExprKind::Function { .. } => TEXT_NODE_NS,
        _ => NODE_NS,
    };
    let mut sum = own;
    expr.for_each_child(&mut |child| sum += expr_ns(child));
    sum
}

/// The estimates of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::scan) struct Estimates {
    pub leaves: Vec<Estimate>,
    /// Decoding, by output column.
    pub decoding: Vec<Cost>,
    /// Reading a whole range, clause by clause and as a group.
    pub by_clause: Cost,
    pub as_group: Cost,
}

/// What the ranges of a block have shown.
#[derive(Clone, Debug, Default)]
pub(in crate::scan) struct Observations {
    pub leaves: Vec<Observed>,
    /// Decoding, by output column.
    pub decoding: Vec<Timing>,
    /// Whole ranges, clause by clause and as a group.
    pub by_clause: Timing,
    pub as_group: Timing,
}

impl Observations {
    /// Nothing seen yet.
    pub fn none(leaves: usize, columns: usize) -> Observations {
        Observations {
            leaves: vec![Observed::default(); leaves],
            decoding: vec![Timing::default(); columns],
            ..Observations::default()
        }
    }
}

impl Estimates {
    /// Nothing but guesses, for a number of output columns.
    pub fn guess(clauses: &Clauses, columns: usize) -> Estimates {
        Estimates {
            leaves: clauses.leaves.iter().map(Estimate::guess).collect(),
            decoding: vec![Cost::guess(DECODED_NS); columns],
            by_clause: Cost::guess(0.0),
            as_group: Cost::guess(0.0),
        }
    }

    /// The same shares and times as guesses for another segment.
    pub fn for_another(&self) -> Estimates {
        let guess = |cost: Cost| Cost { is_measured: false, ..cost };
        let leaf = |leaf: &Estimate| Estimate {
            regular: guess(leaf.regular),
            encoded: guess(leaf.encoded),
            ..*leaf
        };
        Estimates {
            leaves: self.leaves.iter().map(leaf).collect(),
            decoding: self.decoding.iter().map(|cost| guess(*cost)).collect(),
            by_clause: guess(self.by_clause),
            as_group: guess(self.as_group),
        }
    }

    /// Adds what was seen.
    pub fn add(&mut self, seen: &Observations) {
        self.leaves.iter_mut().zip(&seen.leaves).for_each(|(leaf, seen)| leaf.add(seen));
        let decoding = self.decoding.iter_mut().zip(&seen.decoding);
        decoding.for_each(|(cost, timing)| cost.measure(*timing));
        self.by_clause.measure(seen.by_clause);
        self.as_group.measure(seen.as_group);
    }
}
