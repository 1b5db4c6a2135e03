//! Views: named query texts, bound again at each use.
//!
//! A view may refer to tables and other views, never to names of the query that uses it. It has no
//! parameters.

use crate::bind::binder::Binder;
use crate::bind::names::{table_name, unsupported};
use crate::expr::Expr;
use crate::plan::{CatalogStatement, Field, Plan, Statement};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, ViewSchema};
use sqlparser::ast;

/// Maximum nesting depth of views.
const MAX_VIEWS: usize = 16;

impl<'a> Binder<'a> {
    pub(crate) fn create_view(&mut self, create: &'a ast::CreateView) -> Result<Statement> {
        let feature = match () {
            _ if create.materialized => "MATERIALIZED VIEW",
            _ if !matches!(create.options, ast::CreateTableOptions::None) => "an option of a VIEW",
            _ if create.with_no_schema_binding => "WITH NO SCHEMA BINDING",
            _ if create.temporary => "TEMPORARY VIEW",
            _ if create.or_alter
                || create.secure
                || create.copy_grants
                || !create.cluster_by.is_empty()
                || create.to.is_some()
                || create.params.is_some() =>
            {
                "this form of CREATE VIEW"
            }
            _ => "",
        };
        if !feature.is_empty() {
            return Err(unsupported(feature));
        }
        let (name, at) = table_name(&create.name)?;
        let exists = |kind: &str| {
            Err(Error::already_exists(format!("{kind} {name} already exists"))
                .with_sqlstate("42P07")
                .at(at))
        };
        if self.catalog.table(&name).is_some() {
            return exists("table");
        }
        if self.catalog.view(&name).is_some() && !create.or_replace && !create.if_not_exists {
            return exists("view");
        }
        if !self.parameters.is_empty() {
            return Err(unsupported("a view with parameters").at(at));
        }
        self.views.push(name.to_ascii_lowercase());
        let fields = self.query(&create.query)?.fields();
        self.views.pop();
        if create.columns.len() > fields.len() {
            let message = format!(
                "view {name} names {} columns but its query has {}",
                create.columns.len(),
                fields.len()
            );
            return Err(Error::syntax(message).at(at));
        }
        let mut columns: Vec<String> =
            create.columns.iter().map(|c| c.name.value.clone()).collect();
        columns.extend(fields.iter().skip(columns.len()).map(|f| f.name.clone()));
        for (index, column) in columns.iter().enumerate() {
            if columns[..index].iter().any(|c| c.eq_ignore_ascii_case(column)) {
                let error = Error::already_exists(format!(
                    "view {name} has more than one column {column}; give one an alias"
                ));
                return Err(error.with_sqlstate("42701").at(at));
            }
        }
        let view = ViewSchema { name, columns, statement: self.text.to_string() };
        let (replace, if_not_exists) = (create.or_replace, create.if_not_exists);
        Ok(CatalogStatement::CreateView { view, replace, if_not_exists }.into())
    }

    /// Binds a reference to a view. Returns its plan and its name as declared; `None` if there is
    /// no such view.
    pub(crate) fn view(&mut self, name: &str) -> Result<Option<(Plan, String)>> {
        let Some(view) = self.catalog.view(name) else { return Ok(None) };
        let key = view.name.to_ascii_lowercase();
        if self.views.contains(&key) {
            return Err(Error::unsupported(format!("view {} refers to itself", view.name))
                .with_sqlstate("42P19"));
        }
        if self.views.len() >= MAX_VIEWS {
            return Err(Error::limit(format!("views are nested deeper than {MAX_VIEWS} levels")));
        }
        let parsed = crate::parse(&view.statement)?;
        let Some(Ok(ast::Statement::CreateView(create))) = parsed.first().map(|p| p.statement())
        else {
            return Err(Error::corrupt(format!(
                "stored definition of view {} is not a CREATE VIEW statement",
                view.name
            )));
        };
        let mut views = self.views.clone();
        views.push(key);
        let mut inner = Binder::new(self.catalog, &[], 0, "");
        (inner.limits, inner.numbers, inner.views) = (self.limits.of_view(), self.numbers, views);
        let plan = inner.sealed(|b| b.query(&create.query));
        self.is_volatile |= inner.is_volatile;
        let (limits, numbers) = (inner.limits, inner.numbers);
        self.limits.add_view(&limits);
        self.numbers = numbers;
        // Drop the position: it refers to the text of the view, not of the statement.
        let plan = plan.map_err(|e| {
            Error::new(e.kind(), format!("view {}: {}", view.name, e.message()))
                .with_sqlstate(e.sqlstate())
        })?;
        let yielded = plan.fields();
        // The columns of `*`, or their order, may have changed since the view was created: find
        // them by name.
        let by_name = finds_columns(&create.query.body) && !plant::is(Bug::ViewPlaces);
        let by_place = if by_name { create.columns.len() } else { view.columns.len() };
        let (mut exprs, mut fields) = (Vec::new(), Vec::new());
        for (at, column) in view.columns.iter().enumerate() {
            let is_it = |place: &usize| match at < by_place {
                true => *place == at,
                false => *place >= by_place && yielded[*place].name.eq_ignore_ascii_case(column),
            };
            let mut found = (0..yielded.len()).filter(is_it);
            let (Some(place), None) = (found.next(), found.next()) else {
                let message = format!(
                    "view {}: its query no longer yields exactly one column {column}",
                    view.name
                );
                return Err(Error::type_error(message).with_sqlstate("42P16"));
            };
            exprs.push(Expr::column(place, yielded[place].data_type));
            fields.push(Field { name: column.clone(), ..yielded[place].clone() });
        }
        Ok(Some((Plan::Project { input: Box::new(plan), exprs, fields }, view.name.clone())))
    }

    /// Returns the output columns of a view; `None` if there is no such view.
    pub(crate) fn view_fields(&mut self, name: &str) -> Result<Option<Vec<Field>>> {
        Ok(self.view(name)?.map(|(plan, _)| plan.fields()))
    }
}

/// Whether the columns of a query depend on those of its tables: it has a `*` or is a `TABLE t`.
fn finds_columns(body: &ast::SetExpr) -> bool {
    let is_wildcard = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..))
    };
    match body {
        ast::SetExpr::Select(select) => select.projection.iter().any(is_wildcard),
        ast::SetExpr::Query(query) => finds_columns(&query.body),
        ast::SetExpr::SetOperation { left, right, .. } => {
            finds_columns(left) || finds_columns(right)
        }
        ast::SetExpr::Values(_) => false,
        _ => true,
    }
}
