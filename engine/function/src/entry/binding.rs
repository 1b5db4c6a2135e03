//! What a typing rule may ask of the binder. Rules see operands, never expressions: the registry stands
//! below the SQL front, which knows what an operand is.

use super::scalar::ScalarFunction;
use crate::operator::BinaryOp;
use nacre_types::{DataType, Result, Value};

/// A bound expression in the hands of a rule. A rule uses each operand once.
pub struct Operand(usize);

impl Operand {
    /// The operand the binder keeps under a number.
    pub fn new(number: usize) -> Operand {
        Operand(number)
    }

    /// The binder's number.
    pub fn number(&self) -> usize {
        self.0
    }
}

/// The binder, as typing rules see it.
pub trait Binding {
    /// The type of an operand; `Null` for a parameter whose type is open, and for `NULL`.
    fn data_type(&self, operand: &Operand) -> DataType;
    /// The value of an operand that is a literal.
    fn literal(&self, operand: &Operand) -> Option<&Value>;
    /// A literal.
    fn constant(&mut self, value: Value, data_type: DataType) -> Operand;
    /// A second copy of an operand. Copies of one statement are limited.
    fn again(&mut self, operand: &Operand) -> Result<Operand>;
    /// Gives an open parameter a type: that of its value at hand, or `otherwise`.
    fn settle(&mut self, operand: Operand, otherwise: DataType) -> Operand;
    /// Gives an open parameter the type of the other operand.
    fn settle_pair(&mut self, left: Operand, right: Operand) -> (Operand, Operand);
    /// An implied cast; a literal that cannot be converted is an error now.
    fn cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// A written cast; a text that does not read as the type is an error when it is evaluated.
    fn explicit_cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// Two operands in a type they can be compared in; `what` names the operator in messages.
    fn unify(&mut self, left: Operand, right: Operand, what: &str) -> Result<(Operand, Operand)>;
    /// All operands in one type, and that type; `what` names the function in messages.
    fn unify_all(&mut self, operands: Vec<Operand>, what: &str)
    -> Result<(Vec<Operand>, DataType)>;
    /// A boolean operand; `what` names it in messages.
    fn condition(&mut self, operand: Operand, what: &str) -> Result<Operand>;
    /// A binary operator.
    fn binary(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Result<Operand>;
    /// `CASE WHEN test THEN yes ELSE no END`.
    fn case(&mut self, test: Operand, yes: Operand, no: Operand) -> Result<Operand>;
    /// `operand IS NULL`, or `IS NOT NULL`.
    fn null_test(&mut self, operand: Operand, negated: bool) -> Operand;
    /// A call of a function, on arguments of the types its kernel expects.
    fn call(
        &mut self,
        function: &'static ScalarFunction,
        arguments: Vec<Operand>,
        data_type: DataType,
    ) -> Operand;
}
