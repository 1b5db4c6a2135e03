//! Plans and expressions as stable text: for `EXPLAIN`, for golden tests and for column names.

use crate::access::{access_text, index_access, probed_index};
use crate::expr::{
    Aggregate, AggregateFunction, BinaryOp, DatePart, Expr, ExprKind, Moment, ScalarFunction, SubqueryKind,
};
use crate::join_filters::Told;
use crate::ordered::{index_order_name, key_order};
use crate::plan::{
    Bound, Field, Frame, FrameUnit, JoinKind, OnDuplicateKey, Plan, SessionOption, SortKey, Statement, WindowCall,
    WindowFunction,
};
use nacre_types::{DataType, TableSchema, Value};
use std::fmt::Write;

fn upsert_line(table: &TableSchema, on_duplicate: &OnDuplicateKey) -> String {
    let old = table.columns.iter().map(|c| c.name.clone());
    let names: Vec<String> = old.chain(table.columns.iter().map(|c| format!("excluded.{}", c.name))).collect();
    let name = |at: usize| names.get(at).cloned().unwrap_or_default();
    match on_duplicate {
        OnDuplicateKey::Ignore => format!("Insert {} on duplicate: nothing", table.name),
        OnDuplicateKey::Replace => format!("Insert {} on duplicate: replace", table.name),
        OnDuplicateKey::Update { assignments, filter } => {
            let set = |(at, e): &(usize, Expr)| format!("{} = {}", table.columns[*at].name, expr_text(e, &name, false));
            let mut line = format!("Insert {} on duplicate: set {}", table.name, joined(assignments.iter().map(set)));
            if let Some(filter) = filter {
                let _ = write!(line, " where {}", expr_text(filter, &name, false));
            }
            line
        }
    }
}

/// One line a node, children indented below their parent.
pub fn explain(statement: &Statement) -> Vec<String> {
    explain_nodes(statement).into_iter().map(|(line, _)| line).collect()
}

/// The lines of [`explain`], each with the node it shows; without one where it is the statement itself.
pub fn explain_nodes(statement: &Statement) -> Vec<(String, Option<&Plan>)> {
    let mut lines = Lines(Vec::new(), Told::default());
    match statement {
        Statement::Query(plan) => plan_lines(plan, 0, &mut lines),
        Statement::Insert { table, source } => {
            lines.push(format!("Insert {}", table.name));
            plan_lines(source, 1, &mut lines);
        }
        Statement::Upsert { table, source, on_duplicate, .. } => {
            lines.push(upsert_line(table, on_duplicate));
            plan_lines(source, 1, &mut lines);
        }
        Statement::CreateTableAs { schema, source, .. } => {
            lines.push(format!("CreateTableAs {}", schema.name));
            plan_lines(source, 1, &mut lines);
        }
        Statement::CreateView { view, .. } => lines.push(format!("CreateView {}", view.name)),
        Statement::DropView { names, .. } => lines.push(format!("DropView {}", joined(names.iter().cloned()))),
        Statement::Update { table, input, assignments } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let set = |(at, e): &(usize, Expr)| format!("{} = {}", table.columns[*at].name, expr_text(e, &name, false));
            lines.push(format!("Update {} set {}", table.name, joined(assignments.iter().map(set))));
            plan_lines(input, 1, &mut lines);
        }
        Statement::Delete { table, input } => {
            lines.push(format!("Delete {}", table.name));
            plan_lines(input, 1, &mut lines);
        }
        Statement::Change { table, target, matches, columns, .. } => {
            lines.push(match columns {
                Some(columns) => {
                    let names = columns.iter().map(|at| table.columns[*at].name.clone());
                    format!("Update {} set {} of matches", table.name, joined(names))
                }
                None => format!("Delete {} of matches", table.name),
            });
            plan_lines(target, 1, &mut lines);
            plan_lines(matches, 1, &mut lines);
        }
        Statement::Returning { statement, .. } => return explain_nodes(statement),
        Statement::Lock { table, input, output } => {
            lines.push(format!("Lock {}", table.name));
            plan_lines(input, 1, &mut lines);
            plan_lines(output, 1, &mut lines);
        }
        Statement::Explain(inner) | Statement::Profile(inner) => return explain_nodes(inner),
        Statement::CreateTable { schema, .. } => {
            let column = |c: &nacre_types::Column| {
                format!("{} {}{}", c.name, c.data_type, if c.nullable { "" } else { " NOT NULL" })
            };
            lines.push(format!("CreateTable {} [{}]", schema.name, joined(schema.columns.iter().map(column))));
            if let Some(key) = &schema.primary_key {
                let names = key.columns.iter().map(|at| schema.columns[*at].name.clone());
                lines.push(format!("  PrimaryKey [{}]", joined(names)));
            }
            for index in schema.declared_indexes() {
                let names = index.columns.iter().filter_map(|id| schema.column_position(*id));
                let names = joined(names.map(|at| schema.columns[at].name.clone()));
                lines.push(format!("  {}Index {} [{names}]", if index.unique { "Unique" } else { "" }, index.name));
            }
        }
        Statement::DropTable { names, .. } => lines.push(format!("DropTable {}", joined(names.iter().cloned()))),
        Statement::Begin => lines.push("Begin".into()),
        Statement::Commit => lines.push("Commit".into()),
        Statement::Rollback => lines.push("Rollback".into()),
        Statement::Savepoint(name) => lines.push(format!("Savepoint {name}")),
        Statement::RollbackTo(name) => lines.push(format!("RollbackTo {name}")),
        Statement::Release(name) => lines.push(format!("Release {name}")),
        Statement::Set(SessionOption::Threads(0)) => lines.push("Set threads to the default".into()),
        Statement::Set(SessionOption::Threads(count)) => lines.push(format!("Set threads to {count}")),
        Statement::Set(SessionOption::MemoryLimit(None)) => lines.push("Set memory_limit to the default".into()),
        Statement::Set(SessionOption::MemoryLimit(Some(bytes))) => lines.push(format!("Set memory_limit to {bytes}")),
        Statement::Optimize { table, full } => {
            lines.push(format!("Optimize {}{}", table.name, if *full { " full" } else { "" }))
        }
        Statement::CreateIndex { table, index } => {
            let names = index.columns.iter().filter_map(|id| table.column_position(*id));
            let names = joined(names.map(|at| table.columns[at].name.clone()));
            let unique = if index.unique { "Unique" } else { "" };
            lines.push(format!("Create{unique}Index {} on {} [{names}]", index.name, table.name));
        }
        Statement::DropIndex { indexes } => {
            lines.push(format!("DropIndex {}", joined(indexes.iter().map(|(t, i)| format!("{i} on {}", t.name)))));
        }
        Statement::AlterTable { table, .. } => lines.push(format!("AlterTable {}", table.name)),
        Statement::Truncate { tables } => {
            lines.push(format!("Truncate {}", joined(tables.iter().map(|t| t.name.clone()))));
        }
        Statement::Nothing => lines.push("Nothing".into()),
    }
    lines.0
}

/// Lines, and which node each shows; and which joins tell which scans of their keys.
struct Lines<'p>(Vec<(String, Option<&'p Plan>)>, Told);

impl Lines<'_> {
    fn push(&mut self, line: String) {
        self.0.push((line, None));
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out += ", ";
        }
        out += &part;
    }
    out
}

fn field_name(fields: &[Field], at: usize) -> String {
    match fields.get(at) {
        Some(field) if !field.name.is_empty() => field.name.clone(),
        _ => format!("#{at}"),
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
        Plan::Scan { table, projection, filters } => {
            let fields = plan.fields();
            let name = |at: usize| field_name(&fields, at);
            let columns = projection.iter().map(|at| table.columns[*at].name.clone());
            let _ = write!(line, "Scan {} [{}]", table.name, joined(columns));
            for (at, filter) in filters.iter().enumerate() {
                line += if at == 0 { " where " } else { " and " };
                line += &operand(filter, 3, &name, false);
            }
            if let Some(access) = index_access(table, projection, filters) {
                line += " using ";
                line += &access_text(table, &access);
            }
            let told = lines.1.of_scan(plan);
            for (at, (join, column)) in told.iter().enumerate() {
                line += if at == 0 { " filtered by " } else { " and " };
                let _ = write!(line, "join {join} on {}", name(*column));
            }
            if let Some(index) = probed_index(table, projection, filters, &told) {
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
                if text == f.name || f.name.is_empty() { text } else { format!("{text} as {}", f.name) }
            };
            let _ = write!(line, "Project [{}]", joined(exprs.iter().zip(fields).map(column)));
            children.push(input);
        }
        Plan::Aggregate { input, groups, aggregates, .. } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let groups_text = joined(groups.iter().map(|g| expr_text(g, &name, false)));
            let aggregates_text = joined(aggregates.iter().map(|a| aggregate_text(a, &name, false)));
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
        Plan::Window { input, partition, order, calls, .. } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let by = joined(partition.iter().map(|e| expr_text(e, &name, false)));
            let order = joined(order.iter().map(|k| key_text(k, &name)));
            let calls = joined(calls.iter().map(|c| window_text(c, &name)));
            let _ = write!(line, "Window by [{by}] order [{order}] compute [{calls}]");
            children.push(input);
        }
        Plan::Union { inputs, .. } => {
            line += "Union";
            children.extend(inputs);
        }
        Plan::SetOperation { left, right, except, all, .. } => {
            line += if *except { "Except" } else { "Intersect" };
            line += if *all { " all" } else { "" };
            children.push(left);
            children.push(right);
        }
        Plan::Sort { input, keys, limit } => {
            let fields = input.fields();
            let name = |at: usize| field_name(&fields, at);
            let _ = write!(line, "Sort [{}]", joined(keys.iter().map(|k| key_text(k, &name))));
            if let Some(limit) = limit {
                let _ = write!(line, " limit {limit}");
                // Without a limit it depends on the segments.
                if key_order(input, keys).is_some() {
                    line += " in key order";
                } else if let Some(index) = index_order_name(input, keys) {
                    let _ = write!(line, " in the order of {index}");
                }
            }
            children.push(input);
        }
        Plan::Limit { input, offset, limit } | Plan::LimitBy { input, offset, limit, .. } => {
            let none = |_: usize| String::new();
            line += "Limit";
            if let Plan::LimitBy { keys, .. } = plan {
                let fields = input.fields();
                let keys = keys.iter().map(|k| expr_text(k, &|at| field_name(&fields, at), false));
                let _ = write!(line, "By [{}]", joined(keys));
            }
            if let Some(limit) = limit {
                line.push(' ');
                line += &expr_text(limit, &none, false);
            }
            if let Some(offset) = offset {
                line += " offset ";
                line += &expr_text(offset, &none, false);
            }
            children.push(input);
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
            // Shown in full where it comes first.
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

/// A literal as it is written in SQL.
pub(crate) fn literal_text(value: &Value, data_type: DataType) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::Text(text) | Value::Json(text) => quoted(text),
        Value::Binary(_) => format!("X'{}'", value.to_string().trim_start_matches("\\x")),
        Value::Date(_) | Value::Time(_) | Value::Timestamp(_) | Value::Interval(_) => {
            format!("{data_type} '{value}'")
        }
        _ => value.to_string(),
    }
}

fn key_text(key: &SortKey, name: &dyn Fn(usize) -> String) -> String {
    let mut text = expr_text(&key.expr, name, false);
    if key.descending {
        text += " desc";
    }
    if key.nulls_first == key.descending {
        text += if key.nulls_first { " nulls first" } else { " nulls last" };
    }
    text
}

fn window_text(call: &WindowCall, name: &dyn Fn(usize) -> String) -> String {
    let mut out = match &call.function {
        WindowFunction::Aggregate(aggregate) => aggregate_text(aggregate, name, false),
        function => format!("{}({})", function.name(), joined(call.args.iter().map(|e| expr_text(e, name, false)))),
    };
    if call.frame != Frame::default() {
        let unit = match call.frame.unit {
            FrameUnit::Rows => "rows",
            FrameUnit::Range => "range",
            FrameUnit::Groups => "groups",
        };
        let bound = |b: &Bound| match b {
            Bound::UnboundedPreceding => "unbounded preceding".to_string(),
            Bound::Preceding(e) => format!("{} preceding", expr_text(e, name, false)),
            Bound::CurrentRow => "current row".to_string(),
            Bound::Following(e) => format!("{} following", expr_text(e, name, false)),
            Bound::UnboundedFollowing => "unbounded following".to_string(),
        };
        let _ = write!(out, " {unit} between {} and {}", bound(&call.frame.start), bound(&call.frame.end));
    }
    out
}

/// An aggregate call; `brief` leaves out casts.
pub(crate) fn aggregate_text(aggregate: &Aggregate, name: &dyn Fn(usize) -> String, brief: bool) -> String {
    let function = aggregate_name(aggregate.function);
    let distinct = if aggregate.distinct { "distinct " } else { "" };
    let arg = match aggregate.arg.as_ref() {
        None => "*".into(),
        Some(Expr { kind: ExprKind::Function { function: ScalarFunction::Row, args }, .. }) => {
            joined(args.iter().map(|a| expr_text(a, name, brief)))
        }
        Some(arg) => expr_text(arg, name, brief),
    };
    let mut out = format!("{function}({distinct}{arg})");
    if let Some(filter) = &aggregate.filter {
        out += " filter (where ";
        out += &expr_text(filter, name, brief);
        out.push(')');
    }
    out
}

/// The name of an aggregate.
pub(crate) fn aggregate_name(function: AggregateFunction) -> &'static str {
    match function {
        AggregateFunction::CountStar | AggregateFunction::Count => "count",
        AggregateFunction::Grouping => "grouping",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
        AggregateFunction::First => "first",
        AggregateFunction::Last => "last",
        AggregateFunction::BitAnd => "bit_and",
        AggregateFunction::BitOr => "bit_or",
        AggregateFunction::BitXor => "bit_xor",
        AggregateFunction::Product => "product",
        AggregateFunction::StringAgg => "string_agg",
        AggregateFunction::Quantile { discrete: true } => "quantile_disc",
        AggregateFunction::Quantile { discrete: false } => "quantile_cont",
        AggregateFunction::Mode => "mode",
        AggregateFunction::ArgMin => "arg_min",
        AggregateFunction::ArgMax => "arg_max",
        AggregateFunction::Moment(moment) => moment_name(moment),
    }
}

fn moment_name(moment: Moment) -> &'static str {
    match moment {
        Moment::VariancePopulation => "var_pop",
        Moment::VarianceSample => "var_samp",
        Moment::DeviationPopulation => "stddev_pop",
        Moment::DeviationSample => "stddev_samp",
        Moment::CovariancePopulation => "covar_pop",
        Moment::CovarianceSample => "covar_samp",
        Moment::Correlation => "corr",
        Moment::Slope => "regr_slope",
        Moment::Intercept => "regr_intercept",
        Moment::R2 => "regr_r2",
        Moment::Skewness => "skewness",
        Moment::Kurtosis => "kurtosis",
    }
}

/// How tightly an expression binds; what binds looser than its place gets parentheses.
fn strength(expr: &Expr) -> u8 {
    use BinaryOp::*;
    match &expr.kind {
        ExprKind::Or(_) => 1,
        ExprKind::And(_) => 2,
        ExprKind::Not(_) => 3,
        ExprKind::Like { .. } | ExprKind::InList { .. } | ExprKind::IsNull { .. } | ExprKind::IsBoolean { .. } => 4,
        ExprKind::Binary { op, .. } => match op {
            _ if op.is_comparison() => 4,
            Multiply | Divide | IntegerDivide | Modulo => 7,
            Add | Subtract => 6,
            _ => 5,
        },
        ExprKind::Negate(_) => 8,
        _ => 9,
    }
}

fn operand(expr: &Expr, least: u8, name: &dyn Fn(usize) -> String, brief: bool) -> String {
    let mut inner = expr;
    while let (true, ExprKind::Cast(arg)) = (brief, &inner.kind) {
        inner = arg;
    }
    let text = expr_text(inner, name, brief);
    if strength(inner) < least { format!("({text})") } else { text }
}

/// An expression over columns with these names; `brief` leaves out casts.
pub(crate) fn expr_text(expr: &Expr, name: &dyn Fn(usize) -> String, brief: bool) -> String {
    let text = |e: &Expr| expr_text(e, name, brief);
    let list = |l: &[Expr]| joined(l.iter().map(text));
    let not = |negated: &bool| if *negated { "not " } else { "" };
    match &expr.kind {
        ExprKind::Column(at) => name(*at),
        ExprKind::Literal(value) => literal_text(value, expr.data_type),
        ExprKind::Parameter(at) => format!("${}", at + 1),
        ExprKind::Cast(arg) if brief => text(arg),
        ExprKind::Cast(arg) => format!("cast({} as {})", text(arg), expr.data_type),
        ExprKind::Not(arg) => format!("not {}", operand(arg, 4, name, brief)),
        ExprKind::Negate(arg) => format!("-{}", operand(arg, 9, name, brief)),
        ExprKind::IsNull { arg, negated } => format!("{} is {}null", operand(arg, 5, name, brief), not(negated)),
        ExprKind::IsBoolean { arg, value, negated } => {
            format!("{} is {}{value}", operand(arg, 5, name, brief), not(negated))
        }
        ExprKind::Binary { op, left, right } => {
            let own = strength(expr);
            let symbol = op.symbol();
            format!("{} {symbol} {}", operand(left, own, name, brief), operand(right, own + 1, name, brief))
        }
        ExprKind::And(parts) => parts.iter().map(|p| operand(p, 3, name, brief)).collect::<Vec<_>>().join(" and "),
        ExprKind::Or(parts) => parts.iter().map(|p| operand(p, 2, name, brief)).collect::<Vec<_>>().join(" or "),
        ExprKind::Case { branches, otherwise } => {
            let mut out = String::from("case");
            for (condition, result) in branches {
                let _ = write!(out, " when {} then {}", text(condition), text(result));
            }
            if let Some(e) = otherwise {
                let _ = write!(out, " else {}", text(e));
            }
            out + " end"
        }
        ExprKind::InList { arg, list: items, negated } => {
            let shown = if items.len() > 20 { &items[..20] } else { items };
            let more = if items.len() > 20 { format!(", … {} more", items.len() - 20) } else { String::new() };
            format!("{} {}in ({}{more})", operand(arg, 5, name, brief), not(negated), list(shown))
        }
        ExprKind::Like { arg, pattern, escape, negated, case_insensitive } => {
            let word = if *case_insensitive { "ilike" } else { "like" };
            let mut out = format!("{} {}{word} {}", operand(arg, 5, name, brief), not(negated), text(pattern));
            if let Some(c) = escape {
                let _ = write!(out, " escape '{c}'");
            }
            out
        }
        ExprKind::Function { function, args } => {
            let (word, part) = function_name(*function);
            match part {
                Some(part) if args.is_empty() => format!("{word}('{}')", part_name(part)),
                Some(part) => format!("{word}('{}', {})", part_name(part), list(args)),
                None => format!("{word}({})", list(args)),
            }
        }
        ExprKind::Outer { index, .. } => format!("outer.{index}"),
        ExprKind::Subquery(sub) => match sub.kind {
            SubqueryKind::Scalar => "(subquery)".into(),
            SubqueryKind::Exists => "exists (subquery)".into(),
            SubqueryKind::Any(BinaryOp::Equal) => format!("{} in (subquery)", list(&sub.operands)),
            SubqueryKind::Any(op) => format!("{} {} any (subquery)", list(&sub.operands), op.symbol()),
        },
    }
}

fn part_name(part: DatePart) -> &'static str {
    match part {
        DatePart::Year => "year",
        DatePart::Quarter => "quarter",
        DatePart::Month => "month",
        DatePart::Week => "week",
        DatePart::Day => "day",
        DatePart::DayOfWeek => "dow",
        DatePart::DayOfYear => "doy",
        DatePart::Hour => "hour",
        DatePart::Minute => "minute",
        DatePart::Second => "second",
        DatePart::Millisecond => "millisecond",
        DatePart::Microsecond => "microsecond",
        DatePart::Epoch => "epoch",
    }
}

fn function_name(function: ScalarFunction) -> (&'static str, Option<DatePart>) {
    use ScalarFunction::*;
    let name = match function {
        Abs => "abs",
        Ceil => "ceil",
        Floor => "floor",
        Round => "round",
        Trunc => "trunc",
        Sign => "sign",
        Sqrt => "sqrt",
        Power => "power",
        Exp => "exp",
        Ln => "ln",
        Log10 => "log10",
        Mod => "mod",
        Greatest => "greatest",
        Least => "least",
        Coalesce => "coalesce",
        NullIf => "nullif",
        Length => "length",
        OctetLength => "octet_length",
        Lower => "lower",
        Upper => "upper",
        Trim => "trim",
        LeftTrim => "ltrim",
        RightTrim => "rtrim",
        Substring => "substring",
        Replace => "replace",
        Concat => "concat",
        Position => "position",
        Left => "left",
        Right => "right",
        Reverse => "reverse",
        Repeat => "repeat",
        LeftPad => "lpad",
        RightPad => "rpad",
        StartsWith => "starts_with",
        Extract(part) => return ("date_part", Some(part)),
        DateTrunc(part) => return ("date_trunc", Some(part)),
        Year => "year",
        Month => "month",
        Day => "day",
        Row => "row",
        Builtin(builtin) => builtin.name(),
        TypeOf => "typeof",
        CurrentTimestamp => "current_timestamp",
        CurrentDate => "current_date",
    };
    (name, None)
}
