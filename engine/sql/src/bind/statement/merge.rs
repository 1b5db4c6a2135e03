//! `MERGE`: a join of the target's rows, which are numbered, with those of the source. Each row of the
//! join gets the number of the first clause that applies to it, and the values that this clause writes.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::operator::connect;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::{Merged, ROW_NUMBER, Scope, ScopeColumn};
use crate::bind::statement::assignment::{column_position, table_fields};
use crate::bind::statement::dml::check_assignable;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Field, JoinKind, MergeAction, Plan, RowStatement, Statement, WriteStatement};
use nacre_types::{DataType, Error, Result, TableSchema, Value, invariant};
use sqlparser::ast::{
    self, MergeClauseKind as Kind, MergeInsertKind, MergeUpdateKind, OutputClause,
};
use std::ops::Range;

/// Name of the column of `RETURNING` that says what was done.
const ACTION: &str = "merge_action";

/// The rows of the join.
struct Joined<'t> {
    table: &'t TableSchema,
    /// The target's columns, the number of the row, the source's columns, and whether there is a row of
    /// the source.
    scope: Scope,
    source: Range<usize>,
}

/// What clauses write.
struct Written {
    actions: Vec<MergeAction>,
    /// For each column of the table: the clauses that give it a value, by number, and the value.
    values: Vec<Vec<(usize, Expr)>>,
    /// Columns that some `UPDATE` assigns.
    assigned: Vec<usize>,
    messages: Vec<(usize, Expr)>,
}

impl Joined<'_> {
    /// The position of the number of the target's row.
    fn row(&self) -> usize {
        self.table.columns.len()
    }

    /// Whether a row of the join has none of the target's, or none of the source's.
    fn lacks(&self, at: usize, negated: bool) -> Expr {
        let arg = Box::new(Expr::column(at, self.scope.columns[at].data_type));
        Expr { kind: ExprKind::IsNull { arg, negated }, data_type: DataType::Boolean }
    }

    /// Which rows of the join a clause is for.
    fn is_of(&self, kind: Kind) -> Expr {
        let (row, marker) = (self.row(), self.source.end);
        match kind {
            Kind::Matched => connect(true, vec![self.lacks(row, true), self.lacks(marker, true)]),
            Kind::NotMatched | Kind::NotMatchedByTarget => self.lacks(row, false),
            Kind::NotMatchedBySource => self.lacks(marker, false),
        }
    }

    /// The names that a clause may use.
    fn names(&self, kind: Kind) -> Scope {
        let hidden = match kind {
            Kind::Matched => 0..0,
            Kind::NotMatched | Kind::NotMatchedByTarget => 0..self.row(),
            Kind::NotMatchedBySource => self.source.clone(),
        };
        let mut scope = self.scope.clone();
        scope.columns[hidden].iter_mut().for_each(|column| {
            (column.table, column.name) = (String::new(), ROW_NUMBER.into());
        });
        scope
    }

    /// The columns of the source.
    fn given(&self) -> Vec<Expr> {
        let column = |at: usize| Expr::column(at, self.scope.columns[at].data_type);
        self.source.clone().map(column).collect()
    }

    /// The columns of the table that an action gives the source's columns to.
    fn targets(&self, by_name: bool) -> Result<Vec<usize>> {
        let is_given = |at: &usize| !self.table.columns[*at].is_generated();
        if !by_name {
            return Ok((0..self.table.columns.len()).filter(is_given).collect());
        }
        let position = |at: usize| {
            let name = ast::Ident::new(self.scope.columns[at].name.clone());
            Ok(column_position(self.table, &vec![name].into())?.0)
        };
        self.source.clone().map(position).collect()
    }
}

impl<'a> Binder<'a> {
    pub(crate) fn merge(&mut self, merge: &'a ast::Merge) -> Result<Statement> {
        let (table, target_scope, scan) = self.target(&merge.table)?;
        let (source, source_scope) = self.nested(|b| b.factor(&merge.source))?;
        let shown = target_scope.columns[0].table.clone();
        if source_scope.columns.iter().any(|column| column.table.eq_ignore_ascii_case(&shown)) {
            let message = format!("table {shown} is both target and source; give one an alias");
            return Err(Error::type_error(message).with_sqlstate("42712"));
        }
        let rows = self.fresh();
        let hidden = |data_type| ScopeColumn {
            table: String::new(),
            name: ROW_NUMBER.into(),
            data_type,
            nullable: true,
        };
        let mut scope = target_scope;
        scope.columns.push(hidden(DataType::Int64));
        let start = scope.columns.len();
        scope.columns.extend(source_scope.columns);
        let source_columns = start..scope.columns.len();
        scope.columns.push(hidden(DataType::Boolean));
        let joined = Joined { table: &table, scope, source: source_columns };
        let mut env = Env::new(&joined.scope, "ON");
        let on = self.expr(&merge.on, &mut env)?;
        let on = self.condition(on, "ON").map_err(|e| e.at(place(&merge.on)))?;
        let has = |wanted: &[Kind]| merge.clauses.iter().any(|c| wanted.contains(&c.clause_kind));
        let for_target = has(&[Kind::NotMatchedBySource]);
        let for_source = has(&[Kind::NotMatched, Kind::NotMatchedByTarget]);
        let kind = match (for_target, for_source) {
            (false, false) => JoinKind::Inner,
            (true, false) => JoinKind::Left,
            (false, true) => JoinKind::Right,
            (true, true) => JoinKind::Full,
        };
        let mut fields = table_fields(&table);
        fields.push(field("row", DataType::Int64));
        let all = Plan::Join {
            left: Box::new(Plan::Given { id: rows, fields }),
            right: Box::new(marked(source)),
            kind,
            keys: Vec::new(),
            residual: Some(on),
        };
        let (numbered, written) = self.clauses(merge, &joined, all)?;
        let returning = match &merge.output {
            Some(OutputClause::Returning { select_items, .. }) => {
                Some(self.returned(select_items, &returned_scope(&joined))?)
            }
            Some(_) => return Err(unsupported("OUTPUT")),
            None => None,
        };
        let matches = written_values(numbered, &joined, &written, returning.is_some());
        let Written { actions, assigned, .. } = written;
        let table = table.clone();
        let write = WriteStatement::Merge { table, target: scan, rows, matches, actions, assigned };
        Ok(match returning {
            Some((exprs, fields)) => RowStatement::Returning { write, exprs, fields },
            None => RowStatement::Write(write),
        }
        .into())
    }

    /// Binds the clauses. Returns the rows of the join to which one applies, followed by its number.
    fn clauses(
        &mut self,
        merge: &'a ast::Merge,
        joined: &Joined<'_>,
        all: Plan,
    ) -> Result<(Plan, Written)> {
        let mut written = Written {
            actions: Vec::new(),
            values: vec![Vec::new(); joined.table.columns.len()],
            assigned: Vec::new(),
            messages: Vec::new(),
        };
        let (mut branches, mut closed): (Vec<(Expr, Expr)>, Vec<Kind>) = (Vec::new(), Vec::new());
        for (number, clause) in merge.clauses.iter().enumerate() {
            let kind = match clause.clause_kind {
                Kind::NotMatchedByTarget => Kind::NotMatched,
                kind => kind,
            };
            if closed.contains(&kind) {
                let message = format!("a clause WHEN {kind} follows one without a condition");
                return Err(Error::syntax(message).with_hint("it would never apply"));
            }
            let names = joined.names(kind);
            let mut test = vec![joined.is_of(kind)];
            match &clause.predicate {
                Some(predicate) => {
                    let mut env = Env::new(&names, "WHEN");
                    let bound = self.expr(predicate, &mut env)?;
                    let bound =
                        self.condition(bound, "WHEN").map_err(|e| e.at(place(predicate)))?;
                    test.push(bound);
                }
                None => closed.push(kind),
            }
            let action = self.clause_action(clause, kind, number, joined, &names, &mut written)?;
            let result = match action {
                MergeAction::Nothing => Value::Null,
                _ => Value::Int(number as i64),
            };
            let test = if test.len() > 1 { in_order(test) } else { connect(true, test) };
            branches.push((test, Expr::literal(result, DataType::Int64)));
            written.actions.push(action);
        }
        let mut fields = all.fields();
        let mut exprs: Vec<Expr> = columns(&fields);
        exprs.push(case(branches, None, DataType::Int64));
        let number = fields.len();
        fields.push(field("clause", DataType::Int64));
        let input = Box::new(Plan::Project { input: Box::new(all), exprs, fields });
        let arg = Box::new(Expr::column(number, DataType::Int64));
        let kind = ExprKind::IsNull { arg, negated: true };
        let predicate = Expr { kind, data_type: DataType::Boolean };
        Ok((Plan::Filter { input, predicate }, written))
    }

    fn clause_action(
        &mut self,
        clause: &'a ast::MergeClause,
        kind: Kind,
        number: usize,
        joined: &Joined<'_>,
        names: &Scope,
        written: &mut Written,
    ) -> Result<MergeAction> {
        let table = joined.table;
        let not_for = |what: &str| {
            Err(Error::syntax(format!(
                "WHEN {kind} cannot be combined with UPDATE or DELETE actions"
            ))
            .with_hint(format!("there is no row to {what}")))
        };
        match &clause.action {
            ast::MergeAction::DoNothing { .. } => Ok(MergeAction::Nothing),
            ast::MergeAction::Update(ast::MergeUpdateExpr {
                update_predicate: Some(message),
                ..
            }) => {
                let mut env = Env::new(names, "ERROR");
                let message = self.expr(message, &mut env)?;
                let message = self.settle(message, DataType::TEXT);
                let kind = ExprKind::Cast(Box::new(message));
                written.messages.push((number, Expr { kind, data_type: DataType::TEXT }));
                Ok(MergeAction::Fail)
            }
            ast::MergeAction::Delete { .. } if kind == Kind::NotMatched => not_for("delete"),
            ast::MergeAction::Update(_) if kind == Kind::NotMatched => not_for("update"),
            ast::MergeAction::Delete { .. } => Ok(MergeAction::Delete),
            ast::MergeAction::Update(update) => {
                let assignments = match &update.kind {
                    MergeUpdateKind::Set(list) => self.assignments(table, names, list)?,
                    MergeUpdateKind::Wildcard if kind == Kind::NotMatchedBySource => {
                        return Err(Error::syntax("UPDATE without SET has no source"));
                    }
                    MergeUpdateKind::Wildcard => {
                        let targets = joined.targets(update.delete_predicate.is_some())?;
                        let given = joined.given();
                        if targets.len() != given.len() {
                            return Err(Error::syntax(format!(
                                "UPDATE has {} target columns but {} values: they do not match column \
                                 count",
                                targets.len(),
                                given.len()
                            )));
                        }
                        let mut list = Vec::with_capacity(targets.len());
                        for (at, value) in targets.into_iter().zip(given) {
                            check_assignable(table, at)?;
                            let column = &table.columns[at];
                            list.push((at, self.assign(value, column.data_type, &column.name)?));
                        }
                        list
                    }
                };
                for (at, value) in assignments {
                    written.values[at].push((number, value));
                    if !written.assigned.contains(&at) {
                        written.assigned.push(at);
                    }
                }
                Ok(MergeAction::Update)
            }
            ast::MergeAction::Insert(_) if kind != Kind::NotMatched => Err(Error::syntax(format!(
                "WHEN {kind} cannot be combined with INSERT: there is a row of the target"
            ))),
            ast::MergeAction::Insert(insert) => {
                let mut named = Vec::new();
                for column in &insert.columns {
                    let (at, place) = column_position(table, column)?;
                    if named.contains(&at) {
                        let name = &table.columns[at].name;
                        let message = format!("column {name} is specified more than once");
                        return Err(Error::already_exists(message)
                            .with_sqlstate("42701")
                            .at(place));
                    }
                    named.push(at);
                }
                let (values, by_name) = match &insert.kind {
                    MergeInsertKind::Values(values) => {
                        let row = values.rows.first();
                        (
                            Some(row.map(|row| row.content.iter().collect()).unwrap_or_default()),
                            false,
                        )
                    }
                    kind => (None, *kind == MergeInsertKind::Row),
                };
                let is_default = values.as_ref().is_some_and(|values: &Vec<_>| values.is_empty());
                let columns = match named.is_empty() {
                    true if is_default => Vec::new(),
                    true => joined.targets(by_name)?,
                    false => named,
                };
                let row = self.merged_row(table, columns, values, &joined.given(), names)?;
                for (at, value) in row.into_iter().enumerate() {
                    written.values[at].push((number, value));
                }
                Ok(MergeAction::Insert)
            }
        }
    }
}

/// Projects the rows of the join to the number of the target's row, the number of the clause, the
/// message of an error, the values of the table's columns, and for `RETURNING` what is done and the
/// columns of the source.
fn written_values(input: Plan, joined: &Joined<'_>, written: &Written, returns: bool) -> Plan {
    let inputs = input.fields();
    let number = inputs.len() - 1;
    invariant!(number == joined.source.end + 1, "clause {number} of {} columns", inputs.len());
    let is = |clause: usize| Expr {
        kind: ExprKind::Binary {
            op: BinaryOp::Equal,
            left: Box::new(Expr::column(number, DataType::Int64)),
            right: Box::new(Expr::literal(Value::Int(clause as i64), DataType::Int64)),
        },
        data_type: DataType::Boolean,
    };
    let chosen = |list: &[(usize, Expr)], otherwise: Option<Expr>, data_type: DataType| {
        let branches = list.iter().map(|(clause, value)| (is(*clause), value.clone())).collect();
        case(branches, otherwise, data_type)
    };
    let mut exprs = vec![
        Expr::column(joined.row(), DataType::Int64),
        Expr::column(number, DataType::Int64),
        chosen(&written.messages, None, DataType::TEXT),
    ];
    let mut fields = vec![
        field("row", DataType::Int64),
        field("clause", DataType::Int64),
        field("message", DataType::TEXT),
    ];
    for (at, column) in joined.table.columns.iter().enumerate() {
        let old = Expr::column(at, column.data_type);
        exprs.push(chosen(&written.values[at], Some(old), column.data_type));
        fields.push(field(&column.name, column.data_type));
    }
    if returns {
        let name = |(clause, action): (usize, &MergeAction)| {
            (clause, Expr::literal(Value::Text(action.name().into()), DataType::TEXT))
        };
        let names: Vec<(usize, Expr)> = written.actions.iter().enumerate().map(name).collect();
        exprs.push(chosen(&names, None, DataType::TEXT));
        fields.push(field(ACTION, DataType::TEXT));
        for at in joined.source.clone() {
            exprs.push(Expr::column(at, inputs[at].data_type));
            fields.push(inputs[at].clone());
        }
    }
    Plan::Project { input: Box::new(input), exprs, fields }
}

/// What `RETURNING` sees: the target's columns, what was done, and the source's columns under the name
/// of the source.
fn returned_scope(joined: &Joined<'_>) -> Scope {
    let width = joined.row();
    let mut scope = joined.scope.clone();
    scope.columns[width] = ScopeColumn {
        table: String::new(),
        name: ACTION.into(),
        data_type: DataType::TEXT,
        nullable: false,
    };
    scope.columns.truncate(joined.source.end);
    scope.columns[width + 1..].iter_mut().for_each(|column| column.nullable = true);
    scope.qualified_from = Some(width + 1);
    // `*` does not show it.
    scope.merged = vec![Merged {
        name: ACTION.into(),
        expr: Expr::column(width, DataType::TEXT),
        hidden: vec![width],
        before: usize::MAX,
    }];
    scope
}

/// The rows of the source, each followed by a true.
fn marked(source: Plan) -> Plan {
    let mut fields = source.fields();
    let mut exprs = columns(&fields);
    exprs.push(Expr::literal(Value::Boolean(true), DataType::Boolean));
    fields.push(field("source", DataType::Boolean));
    Plan::Project { input: Box::new(source), exprs, fields }
}

fn columns(fields: &[Field]) -> Vec<Expr> {
    fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type)).collect()
}

fn field(name: &str, data_type: DataType) -> Field {
    Field { name: name.into(), data_type, nullable: true }
}

/// A conjunction whose second part is evaluated only where the first one is true: it may fail elsewhere.
fn in_order(tests: Vec<Expr>) -> Expr {
    let mut tests = tests.into_iter().rev();
    let last =
        tests.next().unwrap_or_else(|| Expr::literal(Value::Boolean(true), DataType::Boolean));
    tests.fold(last, |then, test| case(vec![(test, then)], None, DataType::Boolean))
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>, data_type: DataType) -> Expr {
    if branches.is_empty() {
        return otherwise.unwrap_or_else(|| Expr::literal(Value::Null, data_type));
    }
    let kind = ExprKind::Case { branches, otherwise: otherwise.map(Box::new) };
    Expr { kind, data_type }
}
