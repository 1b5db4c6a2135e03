//! Window functions as plans name them: calls, frames and bounds.

use crate::expr::{Aggregate, Expr};
use nacre_function::entry::window::WindowFunction;
use nacre_types::DataType;

/// A call of a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// Which.
    pub function: Windowed,
    /// Arguments over the input row; those of an aggregate are its own.
    pub args: Vec<Expr>,
    /// Rows it looks at, where that matters.
    pub frame: Frame,
    /// Result type.
    pub data_type: DataType,
}

/// What a call over a window computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Windowed {
    /// A window function.
    Function(&'static WindowFunction),
    /// An aggregate over the frame.
    Aggregate(Box<Aggregate>),
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// Where a frame starts or ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Start of the partition.
    UnboundedPreceding,
    /// This many rows or groups before; of `Range` the key to reach, over the input row.
    Preceding(Expr),
    /// The row, or with `Range` and `Groups` its peers.
    CurrentRow,
    /// This many rows or groups after; of `Range` the key to reach.
    Following(Expr),
    /// End of the partition.
    UnboundedFollowing,
}

impl Bound {
    /// A later bound has a larger rank.
    pub fn rank(&self) -> u8 {
        match self {
            Bound::UnboundedPreceding => 0,
            Bound::Preceding(_) => 1,
            Bound::CurrentRow => 2,
            Bound::Following(_) => 3,
            Bound::UnboundedFollowing => 4,
        }
    }
}

/// The rows around a row that a window function looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What the bounds count.
    pub unit: FrameUnit,
    /// First row.
    pub start: Bound,
    /// Last row.
    pub end: Bound,
}

impl Default for Frame {
    /// From the start of the partition to the last peer of the row; without an order that is all of it.
    fn default() -> Frame {
        Frame { unit: FrameUnit::Range, start: Bound::UnboundedPreceding, end: Bound::CurrentRow }
    }
}

impl Windowed {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Windowed::Function(function) => function.name(),
            Windowed::Aggregate(aggregate) => aggregate.function.name(),
        }
    }
}

impl WindowCall {
    /// Calls `f` on each of its expressions.
    pub fn for_each_expr<'c>(&'c self, f: &mut dyn FnMut(&'c Expr)) {
        self.args.iter().for_each(&mut *f);
        if let Windowed::Aggregate(aggregate) = &self.function {
            aggregate.exprs().for_each(&mut *f);
        }
        for bound in [&self.frame.start, &self.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                f(e);
            }
        }
    }

    /// Calls `f` on each of its expressions, mutably.
    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *f);
        if let Windowed::Aggregate(aggregate) = &mut self.function {
            aggregate.exprs_mut().for_each(&mut *f);
        }
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                f(e);
            }
        }
    }
}
