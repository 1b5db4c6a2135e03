//! Index access: finds the indexes whose leading columns are restricted by the filters of a scan.
//! Whether using them pays is decided at execution, when the number of matching rows is known.

use super::equality::equalities;
use super::output::ScanOutput;
use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, TableSchema};

/// Combination of index lookups. It finds all rows that pass the filters, and possibly others.
#[derive(Clone, Debug)]
pub enum IndexAccess<'a> {
    /// A lookup in one index.
    Keys(IndexKeys<'a>),
    /// The intersection of the rows found by each.
    All(Vec<IndexAccess<'a>>),
    /// The union of the rows found by each.
    Any(Vec<IndexAccess<'a>>),
}

/// Keys of an index: each leading column equals one of its listed values, and the next column is
/// within bounds.
#[derive(Clone, Debug)]
pub struct IndexKeys<'a> {
    /// Position in the indexes of the table; `None` for the primary key.
    pub index: Option<usize>,
    /// For each leading column, the values it may equal; `None` stands for null.
    pub equal: Vec<Vec<Option<&'a Expr>>>,
    /// Lower bound of the next column, and whether it is included.
    pub low: Option<(&'a Expr, bool)>,
    /// Upper bound of the next column, and whether it is included.
    pub high: Option<(&'a Expr, bool)>,
}

/// Restriction of a column by the filters.
#[derive(Default)]
struct Column<'a> {
    equal: Option<Vec<Option<&'a Expr>>>,
    low: Option<(&'a Expr, bool)>,
    high: Option<(&'a Expr, bool)>,
}

/// Returns the index lookups that find the rows which pass `filters` over the output of a scan;
/// `None` if no index helps, or if the filters fix the whole primary key.
pub fn index_access<'a>(output: ScanOutput<'_>, filters: &'a [Expr]) -> Option<IndexAccess<'a>> {
    let table = output.table;
    if table.indexes.is_empty() && table.primary_key.is_none() {
        return None;
    }
    let access = of_conjuncts(output, filters)?;
    let fixed = equalities(output, filters);
    let by_key = table.primary_key.as_ref().is_some_and(|key| fixed.fix(&key.columns));
    (!by_key).then_some(access)
}

/// Renders the names of the indexes for `EXPLAIN`.
pub(crate) fn access_text(table: &TableSchema, access: &IndexAccess<'_>) -> String {
    let (list, word) = match access {
        IndexAccess::Keys(keys) => return key_name(table, keys.index).to_string(),
        IndexAccess::All(list) => (list, " and "),
        IndexAccess::Any(list) => (list, " or "),
    };
    let mut names: Vec<String> = Vec::new();
    for access in list {
        let text = access_text(table, access);
        let text = if matches!(access, IndexAccess::Keys(_)) { text } else { format!("({text})") };
        if !names.contains(&text) {
            names.push(text);
        }
    }
    names.join(word)
}

/// Returns the name of an index; `None` is the primary key.
pub fn key_name(table: &TableSchema, index: Option<usize>) -> &str {
    match (index, &table.primary_key) {
        (Some(at), _) => &table.indexes[at].name,
        (None, Some(key)) => &key.name,
        (None, None) => "",
    }
}

/// Chooses the index (`None`: the primary key) in which a join looks up rows of a table. A join
/// supplies values for the columns for which `joined` holds, filters may supply those for which
/// `fixed` holds; both take positions in the table. Also returns the number of leading index
/// columns with a value.
pub fn joined_key(
    table: &TableSchema,
    joined: &dyn Fn(usize) -> bool,
    fixed: &dyn Fn(usize) -> bool,
) -> Option<(Option<usize>, usize)> {
    let primary = table.primary_key.iter().map(|key| (None, key.columns.clone()));
    let indexes = table.indexes.iter().enumerate();
    let indexes = indexes.filter_map(|(at, index)| Some((Some(at), table.index_positions(index)?)));
    let mut best: Option<((usize, bool), Option<usize>, usize)> = None;
    for (index, columns) in primary.chain(indexes) {
        let known = columns.iter().take_while(|at| joined(**at) || fixed(**at)).count();
        let from_join = columns[..known].iter().filter(|at| joined(**at)).count();
        let rank = (from_join, known == columns.len());
        if from_join > 0 && best.as_ref().is_none_or(|(least, ..)| rank > *least) {
            best = Some((rank, index, known));
        }
    }
    best.map(|(_, index, known)| (index, known))
}

/// Returns the name of the secondary index in which a scan may look up keys that joins pass to it.
/// `told` lists joins, each with the output column of the scan that it has keys for.
pub(crate) fn probed_index<'t>(
    output: ScanOutput<'t>,
    filters: &[Expr],
    told: &[(usize, usize)],
) -> Option<&'t str> {
    let table = output.table;
    let joined = |at: usize| told.iter().any(|(_, column)| output.column(*column) == Some(at));
    let fixed = fixed_columns(output, filters);
    let (index, _) = joined_key(table, &joined, &|at| fixed[at].is_some())?;
    index.map(|_| key_name(table, index))
}

/// Returns, for each column of a table and each computed one, the values that filters restrict it to, if they do; `None`
/// stands for null.
pub fn fixed_columns<'a>(
    output: ScanOutput<'_>,
    filters: &'a [Expr],
) -> Vec<Option<Vec<Option<&'a Expr>>>> {
    known_columns(output, filters).0.into_iter().map(|column| column.equal).collect()
}

fn of_conjuncts<'a>(output: ScanOutput<'_>, filters: &'a [Expr]) -> Option<IndexAccess<'a>> {
    let table = output.table;
    let (columns, either) = known_columns(output, filters);
    let of_branches = |branches: &'a [Expr]| {
        let branch = |branch: &'a Expr| of_conjuncts(output, std::slice::from_ref(branch));
        branches.iter().map(branch).collect::<Option<_>>().map(IndexAccess::Any)
    };
    let mut found: Vec<IndexAccess<'a>> = either.into_iter().filter_map(of_branches).collect();
    let mut keys: Vec<(IndexKeys<'a>, Vec<usize>)> = Vec::new();
    if let Some(key) = &table.primary_key
        && let Some(equal) =
            key.columns.iter().map(|at| columns[*at].equal.clone()).collect::<Option<Vec<_>>>()
    {
        // Only for the whole key. Rows are clustered by the primary key, so zone maps serve
        // prefixes and ranges.
        keys.push((IndexKeys { index: None, equal, low: None, high: None }, key.columns.clone()));
    }
    for (index, schema) in table.indexes.iter().enumerate() {
        let (of_index, used) = of_index(index, &table.key_positions(schema), &columns);
        // Skip an index whose columns another one covers.
        let says_less = |other: &(IndexKeys<'a>, Vec<usize>)| {
            used.iter().all(|column| other.1.contains(column))
        };
        if used.is_empty() || keys.iter().any(says_less) {
            continue;
        }
        keys.retain(|other| !other.1.iter().all(|column| used.contains(column)));
        keys.push((of_index, used));
    }
    found.extend(keys.into_iter().map(|(keys, _)| IndexAccess::Keys(keys)));
    match found.len() {
        0 | 1 => found.pop(),
        _ => Some(IndexAccess::All(found)),
    }
}

/// Collects the restrictions of each column, and the branches of each `OR` among the filters.
fn known_columns<'a>(
    output: ScanOutput<'_>,
    filters: &'a [Expr],
) -> (Vec<Column<'a>>, Vec<&'a [Expr]>) {
    let width = output.table.columns.len() + output.table.computed.len();
    let mut columns: Vec<Column<'a>> = (0..width).map(|_| Column::default()).collect();
    let mut either: Vec<&'a [Expr]> = Vec::new();
    for filter in flattened(filters) {
        if let ExprKind::Or(branches) = &filter.kind {
            either.push(branches);
            continue;
        }
        let Some((at, known)) = known_of_column(output, filter) else { continue };
        let Some(column) = columns.get_mut(at) else { continue };
        // The shortest of several lists is the most selective.
        let shorter = |a: &Vec<_>, b: &Option<Vec<_>>| b.as_ref().is_none_or(|b| a.len() < b.len());
        if let Some(equal) = known.equal.filter(|equal| shorter(equal, &column.equal)) {
            column.equal = Some(equal);
        }
        column.low = column.low.or(known.low);
        column.high = column.high.or(known.high);
    }
    (columns, either)
}

/// Returns the restrictions of the leading columns of an index, and the positions of these columns.
fn of_index<'a>(
    index: usize,
    positions: &[usize],
    columns: &[Column<'a>],
) -> (IndexKeys<'a>, Vec<usize>) {
    let mut keys = IndexKeys { index: Some(index), equal: Vec::new(), low: None, high: None };
    let mut used = Vec::new();
    for position in positions {
        let column = &columns[*position];
        if let Some(equal) = &column.equal {
            keys.equal.push(equal.clone());
            used.push(*position);
            continue;
        }
        (keys.low, keys.high) = (column.low, column.high);
        if column.low.is_some() || column.high.is_some() {
            used.push(*position);
        }
        break;
    }
    (keys, used)
}

/// Returns the keys of an index that may pass the filters: the whole index if they do not restrict
/// its first column.
pub fn index_keys<'a>(output: ScanOutput<'_>, filters: &'a [Expr], index: usize) -> IndexKeys<'a> {
    let positions = output.table.key_positions(&output.table.indexes[index]);
    of_index(index, &positions, &known_columns(output, filters).0).0
}

/// Returns the conjuncts of the filters.
fn flattened(filters: &[Expr]) -> Vec<&Expr> {
    let mut out = Vec::new();
    let mut todo: Vec<&Expr> = filters.iter().rev().collect();
    while let Some(filter) = todo.pop() {
        match &filter.kind {
            ExprKind::And(list) => todo.extend(list.iter().rev()),
            _ => out.push(filter),
        }
    }
    out
}

/// Returns the position of the column that a filter restricts, and the restriction.
fn known_of_column<'a>(output: ScanOutput<'_>, filter: &'a Expr) -> Option<(usize, Column<'a>)> {
    match &filter.kind {
        ExprKind::IsNull { arg, negated: false } => {
            let at = output.place(arg)?;
            Some((at, Column { equal: Some(vec![None]), ..Column::default() }))
        }
        ExprKind::InList { arg, list, negated: false } => {
            let at = output.place(arg)?;
            let equal = list.iter().all(is_constant).then(|| list.iter().map(Some).collect())?;
            Some((at, Column { equal: Some(equal), ..Column::default() }))
        }
        _ => {
            let (at, op, value) = compared(output, filter)?;
            let column = match op {
                BinaryOp::Equal => Column { equal: Some(vec![Some(value)]), ..Column::default() },
                BinaryOp::Greater => Column { low: Some((value, false)), ..Column::default() },
                BinaryOp::GreaterOrEqual => {
                    Column { low: Some((value, true)), ..Column::default() }
                }
                BinaryOp::Less => Column { high: Some((value, false)), ..Column::default() },
                BinaryOp::LessOrEqual => Column { high: Some((value, true)), ..Column::default() },
                _ => return None,
            };
            Some((at, column))
        }
    }
}

/// Matches `column op constant`, also of computed columns; mirrors `constant op column`.
fn compared<'a>(output: ScanOutput<'_>, filter: &'a Expr) -> Option<(usize, BinaryOp, &'a Expr)> {
    let ExprKind::Binary { op, left, right } = &filter.kind else { return None };
    if left.data_type == DataType::Interval {
        return None;
    }
    if is_constant(right) {
        Some((output.place(left)?, *op, right))
    } else if is_constant(left) {
        Some((output.place(right)?, op.turned(), left))
    } else {
        None
    }
}

fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Parameter(_) => true,
        ExprKind::Cast(inner) | ExprKind::Negate(inner) => is_constant(inner),
        _ => false,
    }
}
