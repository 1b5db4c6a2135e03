//! Limits of one statement: how deep it nests, and how many queries, tables and copies it expands
//! to. They bound the stack and the memory that binding and later passes take.

use nacre_types::{Error, Result, invariant};

/// Maximum nesting depth of expressions and subqueries.
const MAX_DEPTH: usize = 420;
/// Levels charged for a nested query: binding one takes about this many times the stack of an
/// expression.
const QUERY_LEVELS: usize = 7;
/// Maximum number of subqueries, common table expressions included, that one statement may expand
/// to. Each may become a join below the others, and walking a plan takes stack space for each.
const MAX_QUERIES: usize = 160;
/// Maximum number of expression nodes that binding may duplicate because an expression written once
/// is needed several times.
const MAX_COPIED: usize = 1 << 18;
/// Maximum number of tables in one `FROM`.
const MAX_TABLES: usize = 64;

/// Counts against the limits. A method that fails returns a `limit` error.
#[derive(Default)]
pub(super) struct Limits {
    depth: usize,
    queries: usize,
    copied: usize,
    /// Tables of the current `FROM`.
    tables: usize,
}

/// Tables of an enclosing `FROM`, counted again once the inner one is bound.
pub(super) struct OuterTables(usize);

/// A nesting depth to return to after a part that may have failed halfway.
#[derive(Clone, Copy)]
pub(super) struct Depth(usize);

impl Limits {
    /// Enters an expression. After an error nothing is to be left.
    pub fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => {
                let message = format!("expression is nested deeper than {MAX_DEPTH} levels");
                Err(Error::limit(message))
            }
            false => Ok(()),
        }
    }

    /// Leaves what [`Limits::enter`] entered.
    pub fn leave(&mut self) {
        invariant!(self.depth > 0, "an expression is left that was not entered");
        self.depth -= 1;
    }

    pub fn depth(&self) -> Depth {
        Depth(self.depth)
    }

    pub fn return_to(&mut self, depth: Depth) {
        invariant!(depth.0 <= self.depth, "depth {} is returned to from {}", depth.0, self.depth);
        self.depth = depth.0;
    }

    /// Counts a query, or another expansion of one.
    pub fn count_query(&mut self) -> Result<()> {
        self.queries += 1;
        match self.queries > MAX_QUERIES {
            true => {
                let message = format!("statement expands to more than {MAX_QUERIES} queries");
                Err(Error::limit(message))
            }
            false => Ok(()),
        }
    }

    /// Enters a nested query, which counts its own tables.
    pub fn enter_query(&mut self) -> Result<OuterTables> {
        if self.depth + QUERY_LEVELS > MAX_DEPTH {
            let most = MAX_DEPTH / (QUERY_LEVELS + 1);
            return Err(Error::limit(format!(
                "queries are nested too deeply: the limit is about {most} levels"
            )));
        }
        self.depth += QUERY_LEVELS;
        Ok(self.enter_select())
    }

    /// Leaves what [`Limits::enter_query`] entered.
    pub fn leave_query(&mut self, outer: OuterTables) {
        self.depth -= QUERY_LEVELS;
        self.leave_select(outer);
    }

    /// Enters a `SELECT`, which counts its own tables.
    pub fn enter_select(&mut self) -> OuterTables {
        OuterTables(std::mem::take(&mut self.tables))
    }

    /// Leaves what [`Limits::enter_select`] entered.
    pub fn leave_select(&mut self, outer: OuterTables) {
        self.tables = outer.0;
    }

    /// Counts a table of the current `FROM`.
    pub fn count_table(&mut self) -> Result<()> {
        self.tables += 1;
        match self.tables > MAX_TABLES {
            true => Err(Error::limit(format!("FROM has more than {MAX_TABLES} tables"))),
            false => Ok(()),
        }
    }

    /// Counts a copied node of an expression.
    pub fn count_copy(&mut self) -> Result<()> {
        self.copied += 1;
        match self.copied > MAX_COPIED {
            true => Err(Error::limit(format!(
                "statement copies more than {MAX_COPIED} parts of expressions that are needed twice"
            ))),
            false => Ok(()),
        }
    }

    /// Starts the counts of a view's query, which belong to the statement.
    pub fn of_view(&self) -> Limits {
        Limits { tables: 0, ..*self }
    }

    /// Takes over what a view's query counted.
    pub fn add_view(&mut self, view: &Limits) {
        (self.queries, self.copied) = (view.queries, view.copied);
    }
}
