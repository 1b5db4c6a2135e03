//! What aggregates accumulate: one state a group, kept column-wise.

use super::collect::Collected;
use nacre_column::{Bitmap, BytesColumn, Values, Vector};
use nacre_function::kernel::{decimals, order::packed_length};
use nacre_function::vector::{
    room::Room,
    rows::ActiveRows,
    view::{self, Texts, View, Wide},
};
use nacre_sql::expr::AggregateFunction;
use nacre_types::{DataType, Error, PhysicalType, Result, decimal, key};

/// The group of each row.
#[derive(Clone, Copy)]
pub(crate) enum Groups<'a> {
    /// All rows are of group 0.
    One,
    /// By row position.
    Each(&'a [u32]),
}

impl Groups<'_> {
    #[inline]
    pub(crate) fn of(self, row: usize) -> usize {
        match self {
            Groups::One => 0,
            Groups::Each(groups) => groups[row] as usize,
        }
    }
}

/// The state of one aggregate for all groups.
pub(crate) enum Accumulator {
    /// ActiveRows, or rows that are not null.
    Count(Vec<i64>),
    /// Exact sums, and how many values went in.
    Exact { sums: Vec<i128>, counts: Vec<u64> },
    /// Sums of doubles, and how many values went in.
    Float { sums: Vec<f64>, counts: Vec<u64> },
    /// Least or greatest values; text is kept in `texts`, so many bytes in all, everything else in `values`.
    Extreme {
        largest: bool,
        interval: bool,
        values: Values,
        texts: Vec<Box<[u8]>>,
        text_bytes: usize,
        seen: Vec<bool>,
    },
    /// Everything of several arguments.
    Collected(Collected),
}

impl Accumulator {
    /// For a function over arguments of a type.
    pub fn new(function: AggregateFunction, argument: DataType) -> Result<Accumulator> {
        use AggregateFunction::{Avg, Count, CountStar, Max, Min, Sum};
        Ok(match function {
            Count | CountStar => Accumulator::Count(Vec::new()),
            Sum | Avg if argument.is_float() => {
                Accumulator::Float { sums: Vec::new(), counts: Vec::new() }
            }
            Sum | Avg if argument.is_numeric() || argument == DataType::Null => {
                Accumulator::Exact { sums: Vec::new(), counts: Vec::new() }
            }
            Sum | Avg => {
                return Err(Error::type_error(format!("no SUM or AVG of {argument}"))
                    .with_sqlstate("42883"));
            }
            Min | Max => Accumulator::Extreme {
                largest: function == Max,
                interval: argument == DataType::Interval,
                values: Values::empty(argument.physical()),
                texts: Vec::new(),
                text_bytes: 0,
                seen: Vec::new(),
            },
            _ => return Err(Error::unsupported("this aggregate")),
        })
    }

    /// Whether it comes to the same in whatever order values come.
    pub fn is_of_any_order(&self) -> bool {
        match self {
            Accumulator::Count(_) | Accumulator::Exact { .. } => true,
            // Of intervals that are equally long it keeps the first; sums of doubles are rounded as they go.
            Accumulator::Extreme { interval, .. } => !interval,
            Accumulator::Float { .. } | Accumulator::Collected(_) => false,
        }
    }

    /// Makes room for so many groups.
    pub fn resize(&mut self, groups: usize) {
        match self {
            Accumulator::Count(counts) => counts.resize(groups, 0),
            Accumulator::Exact { sums, counts } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            Accumulator::Float { sums, counts } => {
                sums.resize(groups, 0.0);
                counts.resize(groups, 0);
            }
            Accumulator::Collected(collected) => collected.resize(groups),
            Accumulator::Extreme { values, texts, seen, .. } => {
                seen.resize(groups, false);
                match values {
                    Values::Bool(v) => v.resize(groups, false),
                    Values::I64(v) => v.resize(groups, 0),
                    Values::I128(v) => v.resize(groups, 0),
                    Values::F64(v) => v.resize(groups, 0.0),
                    Values::Bytes(_) => texts.resize(groups, Box::default()),
                }
            }
        }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Accumulator::Count(counts) => counts.capacity() * 8,
            Accumulator::Exact { sums, counts } => sums.capacity() * 16 + counts.capacity() * 8,
            Accumulator::Float { sums, counts } => sums.capacity() * 8 + counts.capacity() * 8,
            Accumulator::Collected(collected) => collected.memory_bytes(),
            Accumulator::Extreme { values, texts, text_bytes, seen, .. } => {
                values.len() * 16 + texts.capacity() * 48 + text_bytes + seen.capacity()
            }
        }
    }

    /// Counts rows whatever is in them.
    pub fn count_rows(&mut self, rows: ActiveRows<'_>, groups: Groups<'_>) {
        let Accumulator::Count(counts) = self else { return };
        match groups {
            Groups::One => counts[0] += rows.count() as i64,
            Groups::Each(groups) => match rows.selection {
                None => groups.iter().for_each(|g| counts[*g as usize] += 1),
                Some(selection) => {
                    selection.iter().for_each(|row| counts[groups[*row as usize] as usize] += 1)
                }
            },
        }
    }

    /// Takes in the values of these rows that are not null.
    pub fn update(
        &mut self,
        vector: &Vector,
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        if vector.data_type() == DataType::Null {
            return Ok(());
        }
        if let Accumulator::Count(_) = self
            && vector.validity().is_none()
        {
            self.count_rows(rows, groups);
            return Ok(());
        }
        // With the nulls out of the way, the loops below need not look for them.
        let not_null: Vec<u32>;
        let rows = match vector.validity() {
            None => rows,
            Some(validity) => {
                not_null =
                    rows.iter().filter(|row| validity.get(*row)).map(|row| row as u32).collect();
                rows.narrowed(&not_null)
            }
        };
        match self {
            Accumulator::Count(_) => self.count_rows(rows, groups),
            Accumulator::Collected(_) => return Err(wrong(vector.data_type())),
            Accumulator::Exact { sums, counts } => {
                let Some(values) = view::wide(vector) else {
                    return Err(wrong(vector.data_type()));
                };
                add_exact(&values, rows, groups, sums, counts)?;
            }
            Accumulator::Float { sums, counts } => {
                let Some(values) = view::f64s(vector) else {
                    return Err(wrong(vector.data_type()));
                };
                for row in rows.iter() {
                    let group = groups.of(row);
                    sums[group] += values.get(row);
                    counts[group] += 1;
                }
            }
            Accumulator::Extreme { largest, interval, values, texts, text_bytes, seen } => {
                let largest = *largest;
                match values {
                    Values::I64(best) => {
                        let Some(v) = view::i64s(vector) else {
                            return Err(wrong(vector.data_type()));
                        };
                        keep(rows, groups, best, seen, &v, |a, b| (a > b) == largest && a != b);
                    }
                    Values::F64(best) => {
                        let Some(v) = view::f64s(vector) else {
                            return Err(wrong(vector.data_type()));
                        };
                        keep(rows, groups, best, seen, &v, |a, b| {
                            let (a, b) = (key::order_f64(a), key::order_f64(b));
                            (a > b) == largest && a != b
                        });
                    }
                    Values::I128(best) => {
                        let Some(v) = view::i128s(vector) else {
                            return Err(wrong(vector.data_type()));
                        };
                        let interval = *interval;
                        let order = |v: i128| if interval { packed_length(v) } else { v };
                        keep(rows, groups, best, seen, &v, |a, b| {
                            (order(a) > order(b)) == largest && order(a) != order(b)
                        });
                    }
                    Values::Bool(best) => {
                        let Some(v) = view::bools(vector) else {
                            return Err(wrong(vector.data_type()));
                        };
                        keep(rows, groups, best, seen, &v, |a, b| (a & !b) == largest && a != b);
                    }
                    Values::Bytes(_) => {
                        let values = Texts::new(vector);
                        for row in rows.iter() {
                            let (group, text) = (groups.of(row), values.bytes(row));
                            let best: &[u8] = &texts[group];
                            if !seen[group] || (text != best && (text > best) == largest) {
                                *text_bytes = *text_bytes + text.len() - best.len();
                                texts[group] = text.into();
                                seen[group] = true;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The results of some groups.
    pub fn finish(
        &self,
        function: AggregateFunction,
        argument: DataType,
        data_type: DataType,
        from: usize,
        to: usize,
    ) -> Result<Vector> {
        let average = function == AggregateFunction::Avg;
        let valid_counts = |counts: &[u64]| validity(counts[from..to].iter().map(|n| *n > 0));
        Ok(match self {
            Accumulator::Count(counts) => {
                Vector::new(data_type, Values::I64(counts[from..to].to_vec()), None)
            }
            Accumulator::Exact { sums, counts } => {
                let scale = data_type.scale();
                let mut out = Vec::with_capacity(to - from);
                for (sum, n) in sums[from..to].iter().zip(&counts[from..to]) {
                    let shift = scale as i32 - argument.scale() as i32;
                    let value = if *n == 0 {
                        Some(0)
                    } else if average {
                        decimals::divide(*sum, *n as i128, shift)
                    } else {
                        decimal::rescale(*sum, argument.scale(), scale)
                    };
                    let name = if average { "AVG" } else { "SUM" };
                    out.push(decimals::fit(value, data_type).map_err(|e| e.context(name))?);
                }
                let values = match data_type.physical() {
                    PhysicalType::I64 => Values::I64(out.iter().map(|v| *v as i64).collect()),
                    PhysicalType::F64 => Values::F64(
                        out.iter().map(|v| decimal::to_f64(*v, argument.scale())).collect(),
                    ),
                    _ => Values::I128(out),
                };
                Vector::new(data_type, values, valid_counts(counts))
            }
            Accumulator::Float { sums, counts } => {
                let pairs = sums[from..to].iter().zip(&counts[from..to]);
                let out = pairs
                    .map(|(sum, n)| if average && *n > 0 { sum / *n as f64 } else { *sum })
                    .collect();
                Vector::new(data_type, Values::F64(out), valid_counts(counts))
            }
            Accumulator::Collected(collected) => collected.finish(data_type, from, to)?,
            Accumulator::Extreme { values, texts, seen, .. } => {
                let values = match values {
                    Values::Bytes(_) => {
                        let (mut out, mut room) = (
                            BytesColumn::default(),
                            Room::new(crate::buffer::limits::MOST_TEXT_BYTES),
                        );
                        for text in &texts[from..to] {
                            room.take(text.len())?;
                            out.push(text);
                        }
                        Values::Bytes(out)
                    }
                    other => other.take(from as u32..to as u32),
                };
                Vector::new(data_type, values, validity(seen[from..to].iter().copied()))
            }
        })
    }
}

fn validity(valid: impl ExactSizeIterator<Item = bool>) -> Option<Bitmap> {
    let mut out = Bitmap::filled(valid.len(), true);
    let mut nulls = false;
    for (at, valid) in valid.enumerate() {
        if !valid {
            out.set(at, false);
            nulls = true;
        }
    }
    nulls.then_some(out)
}

#[cold]
fn wrong(data_type: DataType) -> Error {
    Error::type_error(format!("an aggregate was given {data_type}"))
}

#[cold]
fn too_large() -> Error {
    Error::out_of_range("SUM out of range")
}

fn add_exact(
    values: &Wide<'_>,
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
    sums: &mut [i128],
    counts: &mut [u64],
) -> Result<()> {
    if let Groups::One = groups {
        counts[0] += rows.count() as u64;
        let sum = match (values, rows.selection) {
            (Wide::Narrow(View::Rows(v)), None) => sum_block(v),
            (Wide::Narrow(v), _) => rows.iter().map(|row| v.get(row) as i128).sum(),
            (Wide::Full(v), _) => {
                let mut sum = 0i128;
                for row in rows.iter() {
                    sum = sum.checked_add(v.get(row)).ok_or_else(too_large)?;
                }
                sum
            }
        };
        sums[0] = sums[0].checked_add(sum).ok_or_else(too_large)?;
        return Ok(());
    }
    for row in rows.iter() {
        let group = groups.of(row);
        counts[group] += 1;
        sums[group] = sums[group].checked_add(values.get(row)).ok_or_else(too_large)?;
    }
    Ok(())
}

/// The sum of at most 2^31 values: halves are summed apart in 64 bits, which vectorises.
fn sum_block(values: &[i64]) -> i128 {
    let (mut low, mut high) = (0u64, 0i64);
    for v in values {
        low += (*v as u64) & 0xffff_ffff;
        high += *v >> 32;
    }
    ((high as i128) << 32) + low as i128
}

fn keep<T: Copy>(
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
    best: &mut [T],
    seen: &mut [bool],
    values: &View<'_, T>,
    better: impl Fn(T, T) -> bool,
) {
    for row in rows.iter() {
        let (group, v) = (groups.of(row), values.get(row));
        if !seen[group] || better(v, best[group]) {
            best[group] = v;
            seen[group] = true;
        }
    }
}
