//! Stable text of statements and plans, for `EXPLAIN` and golden tests. `text` renders expressions.

pub(crate) mod text;

pub(crate) use text::{Leaf, aggregate_text, expr_text, literal_text, unresolved_text};

use crate::access::{ScanOutput, access_text, index_access, probed_index};
use crate::expr::Expr;
use crate::plan::join_filter::Told;
use crate::plan::key_order::{index_order_name, key_order};
use crate::plan::{Field, JoinKind, OnDuplicateKey, Plan, RowStatement, Statement};
use crate::statement::Title;
use nacre_types::TableSchema;
use std::fmt::Write;
use text::{field_name, joined, key_text, operand};

fn upsert_line(table: &TableSchema, on_duplicate: &OnDuplicateKey) -> String {
    let old = table.columns.iter().map(|c| c.name.clone());
    let names: Vec<String> =
        old.chain(table.columns.iter().map(|c| format!("excluded.{}", c.name))).collect();
    let name = |at: usize| names[at].clone();
    match on_duplicate {
        OnDuplicateKey::Ignore => format!("Insert {} on duplicate: nothing", table.name),
        OnDuplicateKey::Replace => format!("Insert {} on duplicate: replace", table.name),
        OnDuplicateKey::Update { assignments, filter } => {
            let set = |(at, e): &(usize, Expr)| {
                format!("{} = {}", table.columns[*at].name, expr_text(e, &name, false))
            };
            let mut line = format!(
                "Insert {} on duplicate: set {}",
                table.name,
                joined(assignments.iter().map(set))
            );
            if let Some(filter) = filter {
                let _ = write!(line, " where {}", expr_text(filter, &name, false));
            }
            line
        }
    }
}

/// Renders one line per node, with children indented below their parent.
pub fn explain(statement: &Statement) -> Vec<String> {
    explain_nodes(statement).into_iter().map(|(line, _)| line).collect()
}

/// Returns the lines of [`explain`], each with the node it shows; `None` for lines of the statement
/// itself.
pub fn explain_nodes(statement: &Statement) -> Vec<(String, Option<&Plan>)> {
    match statement {
        Statement::Rows(statement) => explain_row_nodes(statement),
        Statement::Catalog(statement) => {
            statement.describe().lines.into_iter().map(|line| (line, None)).collect()
        }
        Statement::Control(statement) => vec![(statement.describe(), None)],
    }
}

/// Like [`explain_nodes`], for a statement that reads or writes rows.
pub fn explain_row_nodes(statement: &RowStatement) -> Vec<(String, Option<&Plan>)> {
    if let RowStatement::Explain(inner) = statement {
        return explain_nodes(inner);
    }
    let statement = statement.describe();
    let mut lines = Lines(Vec::new(), Told::default());
    let title = title_line(statement.title);
    let depth = usize::from(title.is_some());
    title.into_iter().for_each(|line| lines.push(line));
    for plan in statement.plans.into_iter().flatten() {
        plan_lines(plan, depth, &mut lines);
    }
    lines.0
}

/// A blank, a word and a number of rows; nothing without one.
fn limit_text(word: &str, rows: Option<&Expr>) -> String {
    let text = |rows| format!(" {word}{}", expr_text(rows, &|_| String::new(), false));
    rows.map_or_else(String::new, text)
}

fn title_line(title: Title<'_>) -> Option<String> {
    match title {
        Title::Untitled => None,
        Title::Action(action, target) => Some(format!("{action} {target}")),
        Title::Upsert(table, on_duplicate) => Some(upsert_line(table, on_duplicate)),
        Title::Update(table, input, assignments) => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let set = |(at, e): &(usize, Expr)| {
                format!("{} = {}", table.columns[*at].name, expr_text(e, &name, false))
            };
            Some(format!("Update {} set {}", table.name, joined(assignments.iter().map(set))))
        }
        Title::Matches(table, Some(columns)) => {
            let names = columns.iter().map(|at| table.columns[*at].name.clone());
            Some(format!("Update {} set {} of matches", table.name, joined(names)))
        }
        Title::Matches(table, None) => Some(format!("Delete {} of matches", table.name)),
    }
}

/// Lines with the node that each shows, and the joins that pass key filters to scans.
struct Lines<'p>(Vec<(String, Option<&'p Plan>)>, Told);

impl Lines<'_> {
    fn push(&mut self, line: String) {
        self.0.push((line, None));
    }
}

fn plan_lines<'p>(plan: &'p Plan, depth: usize, lines: &mut Lines<'p>) {
    lines.1.look(plan);
    node_lines(plan, depth, lines);
}

fn node_lines<'p>(plan: &'p Plan, depth: usize, lines: &mut Lines<'p>) {
    let mut line = "  ".repeat(depth);
    let mut children: Vec<&'p Plan> = Vec::new();
    match plan {
        Plan::Scan { table, projection, filters, keys, .. } => {
            let output = ScanOutput { table, projection, keys };
            let fields = plan.fields();
            let name = |at: usize| field_name(&fields, at);
            let columns = fields.iter().map(|field| field.name.clone());
            let _ = write!(line, "Scan {} [{}]", table.name, joined(columns));
            for (at, filter) in filters.iter().enumerate() {
                line += if at == 0 { " where " } else { " and " };
                line += &operand(filter, 3, &name, false);
            }
            if let Some(access) = index_access(output, filters) {
                line += " using ";
                line += &access_text(table, &access);
            }
            let told = lines.1.of_scan(plan);
            for (at, (join, column)) in told.iter().enumerate() {
                line += if at == 0 { " filtered by " } else { " and " };
                let _ = write!(line, "join {join} on {}", name(*column));
            }
            if let Some(index) = probed_index(output, filters, &told) {
                let _ = write!(line, " or using {index}");
            }
        }
        Plan::Values { fields, rows } => {
            let columns = (0..fields.len()).map(|at| field_name(fields, at));
            let _ = write!(line, "Values [{}] {} rows", joined(columns), rows.len());
        }
        Plan::Filter { input, predicate } => {
            let fields = input.fields();
            line += "Filter ";
            line += &expr_text(predicate, &|at| field_name(&fields, at), false);
            children.push(input);
        }
        Plan::Project { input, exprs, fields } => {
            let inner = input.fields();
            let column = |(e, f): (&Expr, &Field)| {
                let text = expr_text(e, &|at| field_name(&inner, at), false);
                if text == f.name || f.name.is_empty() {
                    text
                } else {
                    format!("{text} as {}", f.name)
                }
            };
            let _ = write!(line, "Project [{}]", joined(exprs.iter().zip(fields).map(column)));
            children.push(input);
        }
        Plan::Aggregate { input, groups, aggregates, .. } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let groups_text = joined(groups.iter().map(|g| expr_text(g, &name, false)));
            let aggregates_text =
                joined(aggregates.iter().map(|a| aggregate_text(a, &name, false)));
            let _ = write!(line, "Aggregate by [{groups_text}] compute [{aggregates_text}]");
            children.push(input);
        }
        Plan::Join { left, right, kind, keys, residual } => {
            let (a, b) = (left.fields(), right.fields());
            line += match kind {
                JoinKind::Inner if keys.is_empty() && residual.is_none() => "CrossJoin",
                JoinKind::Inner => "InnerJoin",
                JoinKind::Left => "LeftJoin",
                JoinKind::Right => "RightJoin",
                JoinKind::Full => "FullJoin",
                JoinKind::Semi => "SemiJoin",
                JoinKind::Anti => "AntiJoin",
                JoinKind::RightSemi => "RightSemiJoin",
                JoinKind::RightAnti => "RightAntiJoin",
                JoinKind::Single => "SingleJoin",
                JoinKind::Mark => "MarkJoin",
                JoinKind::MarkIn => "MarkInJoin",
            };
            if let Some(number) = lines.1.of_join(plan) {
                let _ = write!(line, " {number}");
            }
            for (at, (l, r)) in keys.iter().enumerate() {
                line += if at == 0 { " on " } else { " and " };
                line += &expr_text(l, &|at| field_name(&a, at), false);
                line += " = ";
                line += &expr_text(r, &|at| field_name(&b, at), false);
            }
            if let Some(residual) = residual {
                let both: Vec<Field> = a.iter().chain(&b).cloned().collect();
                line += " if ";
                line += &expr_text(residual, &|at| field_name(&both, at), false);
            }
            children.push(left);
            children.push(right);
        }
        Plan::Union { inputs, .. } => {
            line += "Union";
            children.extend(inputs);
        }
        Plan::Sort { input, keys, limit } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let _ = write!(line, "Sort [{}]", joined(keys.iter().map(|k| key_text(k, &name))));
            if let Some(limit) = limit {
                let _ = write!(line, " limit {limit}");
                // Without a limit, the segments decide at execution whether to read in this order.
                if key_order(input, keys).is_some() {
                    line += " in key order";
                } else if let Some(index) = index_order_name(input, keys) {
                    let _ = write!(line, " in the order of {index}");
                }
            }
            children.push(input);
        }
        Plan::Limit { input, offset, limit } => {
            line += "Limit";
            line += &limit_text("", limit.as_ref());
            line += &limit_text("offset ", offset.as_ref());
            children.push(input);
        }
        Plan::Node(node) => {
            line += &node.explain();
            node.for_each_input(&mut |input| children.push(input));
        }
        Plan::Given { id, .. } => {
            let _ = write!(line, "Given {id}");
        }
        Plan::Recursive { id, base, step, distinct, .. } => {
            let _ = write!(line, "Recursive {id}{}", if *distinct { " distinct" } else { "" });
            children.push(base);
            children.push(step);
        }
        Plan::Shared { id, input } => {
            // Show the input at the first occurrence only.
            let _ = write!(line, "Shared {id}");
            if !lines.0.iter().any(|(l, _)| l.trim_start() == line.trim_start()) {
                children.push(input);
            }
        }
    }
    lines.0.push((line, Some(plan)));
    for child in children {
        node_lines(child, depth + 1, lines);
    }
}
