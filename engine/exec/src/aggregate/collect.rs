//! Aggregates of more than one argument, of an order, or of all values at once: medians, ordered text, moments.
//!
//! Their arguments come as one [`nacre_sql::ScalarFunction::Row`]. Moments are kept as they come; for all others
//! the rows are collected, and looked at group by group at the end.

use super::accumulate::Groups;
use crate::buffer::ColumnBuffer;
use crate::buffer::limits::MOST_TEXT_BYTES;
use crate::expr::{ActiveRows, compare_values, doubles_of};
use crate::sort::SortKeys;
use nacre_column::{Vector, VectorBuilder};
use nacre_function::scalar::any::ROW;
use nacre_function::vector::room::Room;
use nacre_sql::expr::{Aggregate, AggregateFunction, Expr, ExprKind, Moment};
use nacre_sql::plan::SortKey;
use nacre_types::{DataType, Error, Result, Value, decimal, limits};
use std::sync::{Arc, OnceLock};

/// The arguments of an aggregate that has several.
pub(crate) fn arguments(aggregate: &Aggregate) -> Option<&[Expr]> {
    match aggregate.arg.as_ref().map(|arg| &arg.kind) {
        Some(ExprKind::Function { function, args }) if *function == &ROW => Some(args),
        _ => None,
    }
}

/// The state of one such aggregate for all groups.
pub(crate) enum Collected {
    /// Count, means, and sums of powers of the differences from the mean: x, y, xx, yy, xy, xxx, xxxx.
    Moments { moment: Moment, states: Vec<[f64; 8]> },
    /// Every row.
    Rows {
        function: AggregateFunction,
        columns: Vec<ColumnBuffer>,
        groups: Vec<u32>,
        keys: Vec<SortKey>,
        /// Once results are asked for, until there are more rows.
        members: OnceLock<Members>,
    },
}

/// The rows of each group, in the order they came.
pub(crate) struct Members {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Members {
    fn new(groups: &[u32]) -> Members {
        let count = groups.iter().max().map_or(0, |group| *group as usize + 1);
        // Where the next row of each group comes; at the end where the group after it begins.
        let mut starts = vec![0; count + 1];
        groups.iter().for_each(|group| starts[*group as usize + 1] += 1);
        (1..=count).for_each(|group| starts[group] += starts[group - 1]);
        let mut next = starts.clone();
        let mut rows = vec![0; groups.len()];
        for (row, group) in groups.iter().enumerate() {
            let next = &mut next[*group as usize];
            rows[*next as usize] = row as u32;
            *next += 1;
        }
        Members { starts, rows }
    }

    fn of(&self, group: usize) -> &[u32] {
        match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(start), Some(end)) => &self.rows[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

impl Collected {
    pub fn new(aggregate: &Aggregate, args: &[Expr]) -> Collected {
        if let AggregateFunction::Moment(moment) = aggregate.function {
            return Collected::Moments { moment, states: Vec::new() };
        }
        let own = own_arguments(aggregate.function);
        // After the function's own arguments come pairs of a key and how it sorts.
        let pairs = args.get(own..).unwrap_or_default().chunks(2);
        let keys = pairs
            .map(|pair| {
                let flags = match pair.get(1).map(|e| &e.kind) {
                    Some(ExprKind::Literal(Value::Int(v))) => *v,
                    _ => 0,
                };
                SortKey {
                    expr: pair[0].clone(),
                    descending: flags & 1 != 0,
                    nulls_first: flags & 2 != 0,
                }
            })
            .collect();
        let columns = args.iter().map(|e| ColumnBuffer::new(e.data_type)).collect();
        Collected::Rows {
            function: aggregate.function,
            columns,
            groups: Vec::new(),
            keys,
            members: OnceLock::new(),
        }
    }

    pub fn resize(&mut self, groups: usize) {
        if let Collected::Moments { states, .. } = self {
            states.resize(groups, [0.0; 8]);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Collected::Moments { states, .. } => states.capacity() * 64,
            Collected::Rows { columns, groups, .. } => {
                columns.iter().map(ColumnBuffer::memory_bytes).sum::<usize>()
                    + groups.capacity() * 4
            }
        }
    }

    /// Takes in rows; those without a first argument, or a second where it decides, do not count.
    pub fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let deciding = match self {
            Collected::Moments { .. } => args,
            Collected::Rows {
                function: AggregateFunction::ArgMin | AggregateFunction::ArgMax,
                ..
            } => args.get(1..2).unwrap_or_default(),
            Collected::Rows { .. } => args.get(..1).unwrap_or_default(),
        };
        let kept: Vec<u32> = rows
            .iter()
            .filter(|row| deciding.iter().all(|arg| !arg.is_null(*row)))
            .map(|row| row as u32)
            .collect();
        match self {
            Collected::Moments { states, .. } => {
                let x = doubles_of(&args[0])?;
                let y = args.get(1).map(|y| doubles_of(y)).transpose()?;
                for row in kept {
                    let row = row as usize;
                    add(
                        &mut states[groups.of(row)],
                        x.get(row),
                        y.as_ref().map_or(0.0, |y| y.get(row)),
                    );
                }
            }
            Collected::Rows { columns, groups: known, members, .. } => {
                members.take();
                known.extend(kept.iter().map(|row| groups.of(*row as usize) as u32));
                if known.len() >= u32::MAX as usize {
                    return Err(Error::limit("more than 4,294,967,294 rows in one aggregate"));
                }
                for (column, arg) in columns.iter_mut().zip(args) {
                    column.append(arg, rows.narrowed(&kept))?;
                }
            }
        }
        Ok(())
    }

    /// The results of some groups.
    pub fn finish(&self, data_type: DataType, from: usize, to: usize) -> Result<Vector> {
        let mut out = VectorBuilder::new(data_type);
        let (function, columns, members, keys) = match self {
            Collected::Moments { moment, states } => {
                states[from..to].iter().for_each(|s| {
                    out.push(&moment_of(*moment, s).map_or(Value::Null, Value::Float))
                });
                return Ok(out.finish());
            }
            Collected::Rows { function, columns, groups, keys, members } => {
                (*function, columns, members.get_or_init(|| Members::new(groups)), keys)
            }
        };
        let mut room = Room::new(MOST_TEXT_BYTES);
        for rows in (from..to).map(|group| members.of(group)) {
            let args: Vec<Vector> = columns.iter().map(|c| c.take(rows)).collect();
            let mut order: Vec<u32> = (0..rows.len() as u32).collect();
            if !keys.is_empty() {
                let vectors: Vec<Arc<Vector>> = args[own_arguments(function)..]
                    .iter()
                    .step_by(2)
                    .map(|v| Arc::new(v.clone()))
                    .collect();
                let mut sort = SortKeys::new(keys);
                sort.append(keys, &vectors, ActiveRows::all(rows.len()));
                order = sort.order(usize::MAX);
            }
            let value = compute(function, &args, &order, data_type)?;
            room.take_value(&value)?;
            out.push(&value);
        }
        Ok(out.finish())
    }
}

/// Arguments before the sort keys, at most.
pub(crate) fn own_arguments(function: AggregateFunction) -> usize {
    use AggregateFunction::{ArgMax, ArgMin, Moment, Quantile, StringAgg};
    match function {
        StringAgg | Quantile { .. } | ArgMin | ArgMax | Moment(_) => 2,
        _ => 1,
    }
}

fn compute(
    function: AggregateFunction,
    args: &[Vector],
    order: &[u32],
    data_type: DataType,
) -> Result<Value> {
    use AggregateFunction as A;
    let value = |row: u32| args[0].value(row as usize);
    let Some(first) = order.first() else { return Ok(Value::Null) };
    let integers = || {
        order.iter().filter_map(|row| match value(*row) {
            Value::Int(v) => Some(v),
            _ => None,
        })
    };
    Ok(match function {
        A::First => value(*first),
        A::Last => order.last().map_or(Value::Null, |row| value(*row)),
        A::BitAnd => Value::Int(integers().fold(-1, |a, b| a & b)),
        A::BitOr => Value::Int(integers().fold(0, |a, b| a | b)),
        A::BitXor => Value::Int(integers().fold(0, |a, b| a ^ b)),
        A::Product => {
            let product: f64 = order.iter().map(|row| float(&value(*row))).product();
            if !product.is_finite() && order.iter().all(|row| float(&value(*row)).is_finite()) {
                return Err(Error::out_of_range("PRODUCT out of range"));
            }
            Value::Float(product)
        }
        A::StringAgg => {
            let mut out = String::new();
            for (at, row) in order.iter().enumerate() {
                if at > 0
                    && let Value::Text(separator) = args[1].value(*row as usize)
                {
                    out += &separator;
                }
                out += &value(*row).to_string();
                if out.len() > limits::MAX_VALUE_BYTES {
                    return Err(Error::limit(format!(
                        "a text value of more than {} bytes",
                        limits::MAX_VALUE_BYTES
                    )));
                }
            }
            Value::Text(out)
        }
        A::ArgMin | A::ArgMax => {
            let key = |row: u32| args[1].value(row as usize);
            let mut best = *first;
            for row in &order[1..] {
                let order = compare_values(&key(*row), &key(best));
                if if function == A::ArgMin { order.is_lt() } else { order.is_gt() } {
                    best = *row;
                }
            }
            value(best)
        }
        A::Mode | A::Quantile { .. } => {
            let mut sorted: Vec<Value> = order.iter().map(|row| value(*row)).collect();
            sorted.sort_by(compare_values);
            match function {
                A::Mode => mode(sorted),
                A::Quantile { discrete, descending } => {
                    if descending {
                        sorted.reverse();
                    }
                    quantile(sorted, &args[1].value(*first as usize), discrete, data_type)?
                }
                _ => Value::Null,
            }
        }
        _ => return Err(Error::unsupported("this aggregate")),
    })
}

/// The most frequent of sorted values; the smallest of several.
fn mode(sorted: Vec<Value>) -> Value {
    let mut best = (0, Value::Null);
    for run in sorted.chunk_by(|a, b| compare_values(a, b).is_eq()) {
        if run.len() > best.0 {
            best = (run.len(), run[0].clone());
        }
    }
    best.1
}

fn quantile(
    sorted: Vec<Value>,
    fraction: &Value,
    discrete: bool,
    data_type: DataType,
) -> Result<Value> {
    let fraction = float(fraction);
    if !(0.0..=1.0).contains(&fraction) {
        return Err(Error::type_error("a quantile is between 0 and 1").with_sqlstate("22003"));
    }
    let last = sorted.len() - 1;
    if discrete {
        let at = (fraction * sorted.len() as f64).ceil() as usize;
        return Ok(sorted[at.saturating_sub(1).min(last)].clone());
    }
    let place = fraction * last as f64;
    let (low, high) = (place.floor() as usize, (place.ceil() as usize).min(last));
    let (a, b) = (float(&sorted[low]), float(&sorted[high]));
    let share = place - low as f64;
    let between = match (a == b, (b - a).is_finite()) {
        (true, _) => a,
        (_, true) => a + (b - a) * share,
        // Infinities, or too far from each other for a difference.
        (_, false) => a * (1.0 - share) + b * share,
    };
    crate::expr::cast_value(&Value::Float(between), data_type)
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(v) => *v,
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Decimal { unscaled, scale } => decimal::to_f64(*unscaled, *scale),
        _ => 0.0,
    }
}

/// One pair more (Pébay's one-pass update of central moments).
fn add(s: &mut [f64; 8], x: f64, y: f64) {
    let before = s[0];
    let n = before + 1.0;
    let (dx, dy) = (x - s[1], y - s[2]);
    let (mx, my) = (dx / n, dy / n);
    let term = dx * mx * before;
    s[0] = n;
    s[1] += mx;
    s[2] += my;
    s[7] += term * mx * mx * (n * n - 3.0 * n + 3.0) + 6.0 * mx * mx * s[3] - 4.0 * mx * s[6];
    s[6] += term * mx * (n - 2.0) - 3.0 * mx * s[3];
    s[3] += term;
    s[4] += dy * my * before;
    s[5] += dx * (y - s[2]);
}

fn moment_of(moment: Moment, s: &[f64; 8]) -> Option<f64> {
    let [n, mean_x, mean_y, xx, yy, xy, xxx, xxxx] = *s;
    let least = match moment {
        Moment::VarianceSample | Moment::DeviationSample | Moment::CovarianceSample => 2.0,
        Moment::Skewness => 3.0,
        Moment::Kurtosis => 4.0,
        _ => 1.0,
    };
    if n < least {
        return None;
    }
    let value = match moment {
        Moment::VariancePopulation => xx / n,
        Moment::VarianceSample => xx / (n - 1.0),
        Moment::DeviationPopulation => (xx / n).sqrt(),
        Moment::DeviationSample => (xx / (n - 1.0)).sqrt(),
        Moment::CovariancePopulation => xy / n,
        Moment::CovarianceSample => xy / (n - 1.0),
        Moment::Correlation if xx == 0.0 || yy == 0.0 => return None,
        Moment::Correlation => xy / (xx * yy).sqrt(),
        Moment::Slope | Moment::Intercept | Moment::R2 if xx == 0.0 => return None,
        Moment::Slope => xy / xx,
        Moment::Intercept => mean_y - xy / xx * mean_x,
        Moment::R2 if yy == 0.0 => 1.0,
        Moment::R2 => xy * xy / (xx * yy),
        Moment::Skewness | Moment::Kurtosis if xx == 0.0 => return None,
        // Both with the correction for a sample.
        Moment::Skewness => {
            let biased = n.sqrt() * xxx / xx.powf(1.5);
            biased * (n * (n - 1.0)).sqrt() / (n - 2.0)
        }
        Moment::Kurtosis => {
            let excess = n * xxxx / (xx * xx) - 3.0;
            (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess + 6.0)
        }
    };
    Some(value)
}
