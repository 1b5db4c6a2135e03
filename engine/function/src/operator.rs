//! Binary operators, shared by plans and kernels.

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    /// Integers and decimals divide to a decimal or double, according to the result type; division
    /// by zero is an error.
    Divide,
    /// `DIV` / `//`: integer quotient, truncated.
    IntegerDivide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `IS NOT DISTINCT FROM`, `<=>`: nulls are equal; the result is never null.
    NotDistinct,
    /// `IS DISTINCT FROM`.
    Distinct,
    /// `||` on text.
    Concat,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl BinaryOp {
    /// The comparison with its sides swapped; other operators are returned unchanged.
    pub fn turned(self) -> BinaryOp {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
            other => other,
        }
    }

    /// Whether this is a comparison, which has a boolean result.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(
            self,
            Equal
                | NotEqual
                | Less
                | LessOrEqual
                | Greater
                | GreaterOrEqual
                | NotDistinct
                | Distinct
        )
    }

    /// The SQL spelling.
    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Subtract => "-",
            Multiply => "*",
            Divide => "/",
            IntegerDivide => "DIV",
            Modulo => "%",
            Equal => "=",
            NotEqual => "<>",
            Less => "<",
            LessOrEqual => "<=",
            Greater => ">",
            GreaterOrEqual => ">=",
            NotDistinct => "IS NOT DISTINCT FROM",
            Distinct => "IS DISTINCT FROM",
            Concat => "||",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            ShiftLeft => "<<",
            ShiftRight => ">>",
        }
    }
}
