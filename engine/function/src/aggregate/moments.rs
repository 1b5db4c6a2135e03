//! Variance, correlation and other moments, from counts, means and sums of powers.

use super::rows::unlike;
use crate::entry::aggregate::Accumulation::Stream;
use crate::entry::aggregate::{AggregateFunction, State, aggregate, double, double_pair};
use crate::entry::doc::Doc;
use crate::kernel::double::doubles;
use crate::vector::groups::Groups;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::{Vector, VectorBuilder};
use nacre_types::{DataType, Result, Value};
use std::ops::Range;
use std::sync::Arc;

static VAR_POP: AggregateFunction = aggregate(
    &["var_pop"],
    Doc::new(
        "var_pop(x)",
        "Population variance.",
        "round(var_pop(x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.5556",
    ),
    |binding, arguments| double(&VAR_POP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xx, .. }| Some(xx / n))),
);

static VAR_SAMP: AggregateFunction = aggregate(
    &["var_samp", "variance"],
    Doc::new(
        "var_samp(x), variance",
        "Sample variance.",
        "round(variance(x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2.3333",
    ),
    |binding, arguments| double(&VAR_SAMP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xx, .. }| (n >= 2.0).then(|| xx / (n - 1.0)))),
);

static STDDEV_POP: AggregateFunction = aggregate(
    &["stddev_pop", "std"],
    Doc::new(
        "stddev_pop(x), std",
        "Population standard deviation.",
        "round(stddev_pop(x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.2472",
    ),
    |binding, arguments| double(&STDDEV_POP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xx, .. }| Some((xx / n).sqrt()))),
);

static STDDEV_SAMP: AggregateFunction = aggregate(
    &["stddev_samp", "stddev"],
    Doc::new(
        "stddev_samp(x), stddev",
        "Sample standard deviation.",
        "round(stddev(x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.5275",
    ),
    |binding, arguments| double(&STDDEV_SAMP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xx, .. }| (n >= 2.0).then(|| (xx / (n - 1.0)).sqrt()))),
);

static COVAR_POP: AggregateFunction = aggregate(
    &["covar_pop"],
    Doc::new(
        "covar_pop(y, x)",
        "Population covariance.",
        "round(covar_pop(x * 2, x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "3.1111",
    ),
    |binding, arguments| double_pair(&COVAR_POP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xy, .. }| Some(xy / n))),
);

static COVAR_SAMP: AggregateFunction = aggregate(
    &["covar_samp"],
    Doc::new(
        "covar_samp(y, x)",
        "Sample covariance.",
        "round(covar_samp(x * 2, x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "4.6667",
    ),
    |binding, arguments| double_pair(&COVAR_SAMP, binding, arguments),
    Stream(|_| Moments::of(|&Sums { n, xy, .. }| (n >= 2.0).then(|| xy / (n - 1.0)))),
);

static CORR: AggregateFunction = aggregate(
    &["corr"],
    Doc::new(
        "corr(y, x)",
        "Correlation; null where an argument is constant.",
        "round(corr(x * 2, x), 6) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.0",
    ),
    |binding, arguments| double_pair(&CORR, binding, arguments),
    Stream(|_| {
        Moments::of(|&Sums { xx, yy, xy, .. }| {
            (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt())
        })
    }),
);

static REGR_SLOPE: AggregateFunction = aggregate(
    &["regr_slope"],
    Doc::new(
        "regr_slope(y, x)",
        "Slope of the regression line.",
        "round(regr_slope(x * 2 + 1, x), 6) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2.0",
    ),
    |binding, arguments| double_pair(&REGR_SLOPE, binding, arguments),
    Stream(|_| Moments::of(|&Sums { xx, xy, .. }| (xx != 0.0).then(|| xy / xx))),
);

static REGR_INTERCEPT: AggregateFunction = aggregate(
    &["regr_intercept"],
    Doc::new(
        "regr_intercept(y, x)",
        "Where the regression line meets the axis.",
        "round(regr_intercept(x * 2 + 1, x), 6) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.0",
    ),
    |binding, arguments| double_pair(&REGR_INTERCEPT, binding, arguments),
    Stream(|_| {
        Moments::of(|&Sums { mean_x, mean_y, xx, xy, .. }| {
            (xx != 0.0).then(|| mean_y - xy / xx * mean_x)
        })
    }),
);

static REGR_R2: AggregateFunction = aggregate(
    &["regr_r2"],
    Doc::new(
        "regr_r2(y, x)",
        "Square of the correlation.",
        "round(regr_r2(x * 2, x), 6) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.0",
    ),
    |binding, arguments| double_pair(&REGR_R2, binding, arguments),
    Stream(|_| {
        Moments::of(|&Sums { xx, yy, xy, .. }| {
            (xx != 0.0).then(|| if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) })
        })
    }),
);

static SKEWNESS: AggregateFunction = aggregate(
    &["skewness"],
    Doc::new(
        "skewness(x)",
        "Skewness, corrected for a sample.",
        "round(skewness(x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "0.9352",
    ),
    |binding, arguments| double(&SKEWNESS, binding, arguments),
    Stream(|_| {
        Moments::of(|&Sums { n, xx, xxx, .. }| {
            let biased = n.sqrt() * xxx / xx.powf(1.5);
            (n >= 3.0 && xx != 0.0).then(|| biased * (n * (n - 1.0)).sqrt() / (n - 2.0))
        })
    }),
);

static KURTOSIS: AggregateFunction = aggregate(
    &["kurtosis"],
    Doc::new(
        "kurtosis(x)",
        "Excess kurtosis, corrected for a sample.",
        "kurtosis(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "NULL",
    ),
    |binding, arguments| double(&KURTOSIS, binding, arguments),
    Stream(|_| {
        Moments::of(|&Sums { n, xx, xxxx, .. }| {
            let excess = n * xxxx / (xx * xx) - 3.0;
            let correction = (n - 1.0) / ((n - 2.0) * (n - 3.0));
            (n >= 4.0 && xx != 0.0).then_some(correction * ((n + 1.0) * excess + 6.0))
        })
    }),
);

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[
    &VAR_POP,
    &VAR_SAMP,
    &STDDEV_POP,
    &STDDEV_SAMP,
    &COVAR_POP,
    &COVAR_SAMP,
    &CORR,
    &REGR_SLOPE,
    &REGR_INTERCEPT,
    &REGR_R2,
    &SKEWNESS,
    &KURTOSIS,
];

/// Count, means, and sums of powers of the deviations from the mean.
#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
    xxx: f64,
    xxxx: f64,
}

impl Sums {
    /// Adds a pair with the one-pass update of Pébay, *Formulas for Robust, One-Pass Parallel
    /// Computation of Covariances and Arbitrary-Order Statistical Moments*, 2008.
    fn add(&mut self, x: f64, y: f64) {
        let before = self.n;
        let n = before + 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        let (mx, my) = (dx / n, dy / n);
        let term = dx * mx * before;
        self.n = n;
        self.mean_x += mx;
        self.mean_y += my;
        self.xxxx += term * mx * mx * (n * n - 3.0 * n + 3.0) + 6.0 * mx * mx * self.xx
            - 4.0 * mx * self.xxx;
        self.xxx += term * mx * (n - 2.0) - 3.0 * mx * self.xx;
        self.xx += term;
        self.yy += dy * my * before;
        self.xy += dx * (y - self.mean_y);
    }
}

/// Sums per group. Rows with a null argument are ignored.
struct Moments {
    sums: Vec<Sums>,
    /// Computes the result; `None` is null. Without rows it is null in any case.
    result: fn(&Sums) -> Option<f64>,
}

impl Moments {
    fn of(result: fn(&Sums) -> Option<f64>) -> Result<Box<dyn State>> {
        Ok(Box::new(Moments { sums: Vec::new(), result }))
    }
}

impl State for Moments {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, Sums::default());
    }

    fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Sums>()
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let Some(x) = args.first() else { return Ok(()) };
        let (x, y) = (doubles(x)?, args.get(1).map(|y| doubles(y)).transpose()?);
        for row in rows.iter().filter(|row| args.iter().all(|arg| !arg.is_null(*row))) {
            let y = y.as_ref().map_or(0.0, |y| y.get(row));
            self.sums[groups.of(row)].add(x.get(row), y);
        }
        Ok(())
    }

    /// Only aggregates made of parts are merged.
    fn merge(&mut self, _: &dyn State, _: usize, _: &[u32]) -> Result<()> {
        Err(unlike())
    }

    fn finish(&self, groups: Range<usize>, _: Room) -> Result<Vector> {
        let mut out = VectorBuilder::new(DataType::Float64);
        for sums in &self.sums[groups] {
            let result = if sums.n < 1.0 { None } else { (self.result)(sums) };
            out.push(&result.map_or(Value::Null, Value::Float));
        }
        Ok(out.finish())
    }

    fn is_order_free(&self) -> bool {
        false
    }
}
