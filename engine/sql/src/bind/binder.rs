//! State of binding one statement: catalog, names in scope, limits and parameter types.

use crate::bind::environment::{Cte, Frame};
use crate::bind::given::Given;
use crate::bind::limits::Limits;
use crate::bind::names::table_name;
use crate::bind::scope::with_suggestion;
use crate::expr::{Expr, ExprKind};
use crate::parse::literal_rows::LiteralRows;
use crate::plan::{Catalog, Plan};
use nacre_types::{DataType, Error, Result, TableSchema};
use sqlparser::ast;
use std::sync::Arc;

/// State of binding one statement.
pub(super) struct Binder<'a> {
    pub(super) catalog: &'a dyn Catalog,
    /// Description of the parameter values; shorter than the parameter list when they are not known
    /// yet.
    pub(super) given: &'a [Given],
    /// Parameter types decided so far; `Null` means undecided.
    pub(super) parameters: Vec<DataType>,
    /// Common table expressions in scope, innermost last.
    pub(super) ctes: Vec<Cte<'a>>,
    /// Rows of enclosing queries that the current query may refer to, innermost last.
    pub(super) frames: Vec<Frame>,
    /// Last number given to a frame or a shared plan; see [`fresh`](Self::fresh).
    pub(super) numbers: u32,
    pub(super) limits: Limits,
    /// The statement as written.
    pub(super) text: &'a str,
    /// Rows of an `INSERT … VALUES` that the parser left in the text; taken when the insert is
    /// bound.
    pub(super) literal_rows: Option<&'a LiteralRows>,
    /// The `WINDOW` clause of the current `SELECT`.
    pub(super) named_windows: &'a [ast::NamedWindowDefinition],
    /// Views whose queries are being bound, outermost first.
    pub(super) views: Vec<String>,
    /// Whether a volatile function was bound.
    pub(super) is_volatile: bool,
}

impl<'a> Binder<'a> {
    pub(super) fn new(
        catalog: &'a dyn Catalog,
        given: &'a [Given],
        parameters: usize,
        text: &'a str,
    ) -> Binder<'a> {
        Binder {
            catalog,
            given,
            parameters: vec![DataType::Null; parameters],
            ctes: Vec::new(),
            frames: Vec::new(),
            numbers: 0,
            limits: Limits::default(),
            text,
            literal_rows: None,
            named_windows: &[],
            views: Vec::new(),
            is_volatile: false,
        }
    }

    /// Returns a number not used before in this statement.
    pub(super) fn fresh(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// Runs `f` one level deeper. Returns a `limit` error where the stack could overflow.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.limits.enter()?;
        let result = f(self);
        self.limits.leave();
        result
    }

    /// Binds a query whose rows another query reads. If it has a volatile function, its rows are
    /// computed once and kept: the optimizer must not copy the function into that query.
    pub(super) fn sealed(&mut self, f: impl FnOnce(&mut Self) -> Result<Plan>) -> Result<Plan> {
        let outer = std::mem::replace(&mut self.is_volatile, false);
        let plan = f(self);
        let is_volatile = std::mem::replace(&mut self.is_volatile, outer);
        self.is_volatile |= is_volatile;
        match plan? {
            plan if is_volatile => Ok(Plan::Shared { id: self.fresh(), input: Arc::new(plan) }),
            plan => Ok(plan),
        }
    }

    /// Looks up a table in the catalog.
    pub(super) fn table(&self, name: &ast::ObjectName) -> Result<Arc<TableSchema>> {
        let (name, place) = table_name(name)?;
        self.catalog.table(&name).ok_or_else(|| {
            if self.catalog.view(&name).is_some() {
                return Error::unsupported(format!("{name} is a view, not a table"))
                    .with_sqlstate("42809")
                    .at(place);
            }
            let error =
                Error::not_found(format!("no table `{name}`")).with_sqlstate("42P01").at(place);
            let names = self.catalog.table_names();
            with_suggestion(error, &name, names.iter().map(String::as_str))
        })
    }

    /// Whether `expr` is a parameter whose type is not decided yet.
    pub(super) fn is_untyped(expr: &Expr) -> bool {
        expr.data_type == DataType::Null && matches!(expr.kind, ExprKind::Parameter(_))
    }

    /// Returns the description of a parameter's value, or `Null` when the value is not known.
    pub(super) fn given(&self, index: usize) -> Given {
        self.given.get(index).copied().unwrap_or(DataType::Null.into())
    }

    /// Decides the type of an untyped parameter. The first decision stands; a later, different one
    /// adds a cast.
    pub(super) fn decide(&mut self, expr: Expr, to: DataType) -> Expr {
        let ExprKind::Parameter(index) = expr.kind else { return expr };
        if expr.data_type != DataType::Null || to == DataType::Null {
            return expr;
        }
        let slot = &mut self.parameters[index];
        if *slot == DataType::Null {
            *slot = to;
        }
        let typed = Expr { kind: ExprKind::Parameter(index), data_type: *slot };
        if typed.data_type == to {
            typed
        } else {
            Expr { kind: ExprKind::Cast(Box::new(typed)), data_type: to }
        }
    }

    /// Decides the type of an untyped parameter: an earlier decision stands, else the type of its
    /// value applies, else `otherwise`.
    pub(super) fn settle(&mut self, expr: Expr, otherwise: DataType) -> Expr {
        match expr.kind {
            ExprKind::Parameter(index) if expr.data_type == DataType::Null => {
                let decided = self.parameters[index];
                let natural = self.given(index).natural;
                let to = [decided, natural, otherwise].into_iter().find(|t| *t != DataType::Null);
                self.decide(expr, to.unwrap_or(DataType::TEXT))
            }
            _ => expr,
        }
    }
}
