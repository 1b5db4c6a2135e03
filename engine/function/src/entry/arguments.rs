//! The arguments of a call that is being bound, and how many a function takes.

use super::binding::Operand;
use nacre_types::{Error, Result};

/// How many arguments a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    least: usize,
    most: usize,
}

impl Arity {
    /// Exactly this many.
    pub const fn exactly(count: usize) -> Arity {
        Arity { least: count, most: count }
    }

    /// From `least` to `most`.
    pub const fn between(least: usize, most: usize) -> Arity {
        Arity { least, most }
    }

    /// `least` or more.
    pub const fn at_least(least: usize) -> Arity {
        Arity { least, most: usize::MAX }
    }

    /// Fails (`42883`) if a call of `name` has another number of arguments.
    pub fn check(self, name: &str, count: usize) -> Result<()> {
        if (self.least..=self.most).contains(&count) {
            Ok(())
        } else {
            Err(self.wrong(name, count))
        }
    }

    /// The error of another number of arguments.
    #[cold]
    pub fn wrong(self, name: &str, count: usize) -> Error {
        let takes = match (self.least, self.most) {
            (a, b) if a == b => format!("{a}"),
            (a, usize::MAX) => format!("{a} or more"),
            (a, b) => format!("{a} to {b}"),
        };
        Error::type_error(format!("function {name} takes {takes} arguments, not {count}"))
            .with_sqlstate("42883")
    }
}

/// The arguments of a call.
pub struct Arguments<'a> {
    /// The function's name as the statement spells it, for messages.
    pub name: &'a str,
    /// The bound arguments.
    pub operands: Vec<Operand>,
}

impl Arguments<'_> {
    /// The arguments of a function that takes exactly `N`.
    pub fn exactly<const N: usize>(self) -> Result<[Operand; N]> {
        let count = self.operands.len();
        <[Operand; N]>::try_from(self.operands)
            .map_err(|_| Arity::exactly(N).wrong(self.name, count))
    }
}
