//! Window functions as plans name them: calls, frames and bounds.

use crate::expr::{Aggregate, Expr};
use nacre_function::entry::window::WindowFunction;
use nacre_types::DataType;

/// A call of a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// The function to compute.
    pub function: Windowed,
    /// Arguments over the input row. Empty for an aggregate, which holds its own arguments.
    pub args: Vec<Expr>,
    /// Rows that the function reads; ignored by functions that do not depend on a frame.
    pub frame: WindowFrame,
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

/// Unit in which frame bounds are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// Start or end of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    /// Start of the partition.
    UnboundedPreceding,
    /// This many rows or groups before the current row. With `Range`, the sort key at which the
    /// frame starts or ends, as an expression over the input row.
    Preceding(Expr),
    /// The current row; with `Range` and `Groups`, its peers.
    CurrentRow,
    /// This many rows or groups after the current row. With `Range`, the sort key at which the
    /// frame starts or ends.
    Following(Expr),
    /// End of the partition.
    UnboundedFollowing,
}

impl FrameBound {
    /// Orders bounds by kind: a later bound has a larger rank.
    pub fn rank(&self) -> u8 {
        match self {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::Preceding(_) => 1,
            FrameBound::CurrentRow => 2,
            FrameBound::Following(_) => 3,
            FrameBound::UnboundedFollowing => 4,
        }
    }
}

/// The rows around the current row that a window function reads.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// Unit of both bounds.
    pub unit: FrameUnit,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
}

impl Default for WindowFrame {
    /// From the start of the partition to the last peer of the current row; without an order, the
    /// whole partition.
    fn default() -> WindowFrame {
        WindowFrame {
            unit: FrameUnit::Range,
            start: FrameBound::UnboundedPreceding,
            end: FrameBound::CurrentRow,
        }
    }
}

impl WindowFrame {
    /// Calls `f` on the expression of each bound, mutably.
    pub(crate) fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for bound in [&mut self.start, &mut self.end] {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = bound {
                f(e);
            }
        }
    }
}

impl Windowed {
    /// Returns the name of the function or aggregate.
    pub fn name(&self) -> &str {
        match self {
            Windowed::Function(function) => function.name(),
            Windowed::Aggregate(aggregate) => aggregate.function.name(),
        }
    }
}

impl WindowCall {
    /// Calls `f` on each expression: arguments, those of the aggregate, and frame bounds.
    pub fn for_each_expr<'c>(&'c self, f: &mut dyn FnMut(&'c Expr)) {
        self.args.iter().for_each(&mut *f);
        if let Windowed::Aggregate(aggregate) = &self.function {
            aggregate.exprs().for_each(&mut *f);
        }
        for bound in [&self.frame.start, &self.frame.end] {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = bound {
                f(e);
            }
        }
    }

    /// Like [`for_each_expr`](Self::for_each_expr), mutably.
    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *f);
        if let Windowed::Aggregate(aggregate) = &mut self.function {
            aggregate.exprs_mut().for_each(&mut *f);
        }
        self.frame.for_each_expr_mut(f);
    }
}
