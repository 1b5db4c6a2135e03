//! The statements of a session that `PREPARE` has named. They are not part of any transaction.

use crate::prepared::PreparedStatement;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result};

/// Maximum number of names of a session.
const MAX_NAMES: usize = 4096;

/// Prepared statements by name, in lower case.
#[derive(Default)]
pub(crate) struct NamedStatements {
    statements: SortedMap<String, PreparedStatement>,
}

impl NamedStatements {
    /// Names a statement. A statement that had the name loses it.
    pub fn add(&mut self, name: &str, statement: PreparedStatement) -> Result<()> {
        if self.statements.len() >= MAX_NAMES && !self.statements.contains_key(name) {
            let message = format!("session has {MAX_NAMES} prepared statements");
            return Err(Error::limit(message).with_hint("DEALLOCATE some"));
        }
        self.statements.insert(name.to_string(), statement);
        Ok(())
    }

    /// The statement with a name.
    pub fn get(&self, name: &str) -> Result<PreparedStatement> {
        self.statements.get(name).cloned().ok_or_else(|| unknown(name))
    }

    /// Frees a name, or all.
    pub fn remove(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.statements = SortedMap::new(),
            Some(name) => drop(self.statements.remove(name).ok_or_else(|| unknown(name))?),
        }
        Ok(())
    }
}

fn unknown(name: &str) -> Error {
    Error::not_found(format!("no prepared statement `{name}`")).with_sqlstate("26000")
}
