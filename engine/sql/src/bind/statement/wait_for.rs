//! Binds `WAIT FOR POSITION`.

use crate::bind::binder::Binder;
use crate::bind::names::place;
use crate::plan::{ControlStatement, Statement};
use core::time::Duration;
use nacre_types::{Error, Result, Value};
use sqlparser::ast;

/// How long to wait where the statement does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

impl<'a> Binder<'a> {
    /// Binds the position, and the seconds if there are any.
    pub(super) fn wait_for(&mut self, values: &'a [ast::Expr]) -> Result<Statement> {
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            let number = match self.argument(value, "WAIT FOR POSITION")? {
                Value::Int(number) => u64::try_from(number).ok(),
                _ => None,
            };
            let not_a_number = || {
                let message = "WAIT FOR POSITION takes whole numbers: a position, and seconds";
                Error::type_error(message).at(place(value))
            };
            numbers.push(number.ok_or_else(not_a_number)?);
        }
        let timeout = numbers.get(1).map_or(TIMEOUT, |seconds| Duration::from_secs(*seconds));
        let position = numbers.first().copied().unwrap_or(0);
        Ok(ControlStatement::WaitFor { position, timeout }.into())
    }
}
