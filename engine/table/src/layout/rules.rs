//! The rules of a table's rows that need expressions. The storage does not know expressions: a
//! compiler, given with the options of the store, turns the text in a schema into rules.
//!
//! Rules are compiled when the first row is written, not when a database is opened, so that a rule
//! that no longer compiles keeps nothing from being read.

use nacre_column::{Batch, Vector};
use nacre_types::{Error, Result, TableSchema, Value};
use std::sync::{Arc, OnceLock};

/// Compiled rules of one version of a table.
pub trait RowRules: Send + Sync {
    /// Computes the generated columns of whole rows: their positions and values.
    fn generated(&self, rows: &Batch) -> Result<Vec<(usize, Arc<Vector>)>>;

    /// Fails with `constraint` if a row makes a check false, and with the error of a computed column
    /// that has no value for a row.
    fn check(&self, rows: &Batch) -> Result<()>;

    /// The columns of the table that a computed column reads, by the place of that among the
    /// computed ones.
    fn inputs(&self, computed: usize) -> &[usize];

    /// The values of a computed column, of rows of its inputs.
    fn compute(&self, computed: usize, inputs: &Batch) -> Result<Arc<Vector>>;

    /// The values of a column in rows that do not name it; `now_us` is the time of the statement,
    /// in microseconds since 1970.
    fn defaults(&self, column: usize, rows: usize, now_us: i64) -> Result<Vector>;
}

/// Compiles the rules of a schema.
pub type CompileRules = fn(&TableSchema) -> Result<Arc<dyn RowRules>>;

/// The rules of a table, compiled when they are first needed.
#[derive(Default)]
pub(crate) struct TableRules {
    compile: OnceLock<CompileRules>,
    compiled: OnceLock<Result<Arc<dyn RowRules>>>,
}

impl TableRules {
    /// Sets the compiler, the same for every table of a store.
    pub fn compile_with(&self, compile: Option<CompileRules>) {
        if let Some(compile) = compile {
            let _ = self.compile.set(compile);
        }
    }

    /// Those of another version of the table.
    pub fn of_version(&self) -> TableRules {
        TableRules { compile: self.compile.clone(), compiled: OnceLock::new() }
    }

    /// The rules of a table with this schema.
    ///
    /// # Errors
    /// `unsupported` if the store has no compiler; those of the compiler.
    pub fn of(&self, schema: &TableSchema) -> Result<&Arc<dyn RowRules>> {
        debug_assert!(
            schema.has_rules() || !schema.computed.is_empty(),
            "table {} has no rules",
            schema.name
        );
        let compiled = self.compiled.get_or_init(|| match self.compile.get() {
            Some(compile) => compile(schema),
            None => Err(Error::unsupported(format!(
                "writing to table {} without its defaults and checks",
                schema.name
            ))),
        });
        compiled.as_ref().map_err(Clone::clone)
    }

    /// Fails if a row of a table with this schema makes a check false.
    pub fn check(&self, schema: &TableSchema, rows: &Batch) -> Result<()> {
        debug_assert!(rows.selection.is_none(), "rows to be checked are not compact");
        match schema.has_checks() {
            true => self.of(schema)?.check(rows),
            false => Ok(()),
        }
    }

    /// Like [`TableRules::check`], for one row.
    pub fn check_row(&self, schema: &TableSchema, row: &[Value]) -> Result<()> {
        debug_assert!(
            row.len() == schema.columns.len(),
            "a row of {} values is checked",
            row.len()
        );
        match schema.has_checks() {
            true => self.check(schema, &Batch::from_rows(&schema.types(), &[row.to_vec()])),
            false => Ok(()),
        }
    }
}
