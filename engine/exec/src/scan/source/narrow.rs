//! Evaluates the clauses of a scan on a range of a segment, as a decision says.
//!
//! Sets of rows are bitmaps. Each clause gets the rows that are left and returns those of them that
//! pass: for itself, a leaf may test all rows of the range.

use super::range::RangeColumns;
use crate::scan::filter::adaptive::decision::{Decision, Trial};
use crate::scan::filter::adaptive::estimates::Observations;
use crate::scan::filter::adaptive::learned::{Learned, Truths};
use crate::scan::filter::clauses::{Clause, Clauses, Test};
use nacre_column::{Batch, Bitmap, Form, Values, Vector, kernel};
use nacre_operator::expr::{self, ActiveRows};
use nacre_operator::join_filter::RuntimeFilters;
use nacre_sql::expr::Expr;
use nacre_types::{DataType, PhysicalType, Result, Value, limits};
use std::borrow::Cow;
use std::sync::Arc;

/// The clauses of a scan and what decides how they are evaluated.
pub(super) struct Narrow<'a, 'r> {
    pub clauses: &'a Clauses,
    pub runtime: &'a RuntimeFilters,
    pub learned: &'a Learned,
    pub decision: &'a Decision,
    pub seen: &'a mut Observations,
    pub columns: &'a mut RangeColumns<'r>,
    /// Whether all clauses are evaluated on all rows, decoded.
    pub group: bool,
}

impl Narrow<'_, '_> {
    /// Those of the rows that pass all clauses.
    pub fn run(&mut self, alive: &Bitmap) -> Result<Bitmap> {
        debug_assert_eq!(alive.len(), self.columns.len(), "a bit for each row of the range");
        let tree = &self.decision.tree;
        if self.decision.trial != Trial::Leaves {
            return self.clause(tree, alive, &mut |own, leaf, left| own.leaf(leaf, left));
        }
        let mut results = Vec::with_capacity(self.clauses.leaves.len());
        for leaf in 0..self.clauses.leaves.len() {
            // What takes long is measured in the first range of the block only.
            let is_known = self.decision.few[leaf] || self.seen.leaves[leaf].regular.is_long();
            results.push(if is_known { None } else { Some(self.measure(leaf, alive)?) });
        }
        self.clause(tree, alive, &mut |own, leaf, left| match &results[leaf] {
            Some(passed) => Ok(passed.and(left)),
            None => own.leaf(leaf, left),
        })
    }

    /// Those of the rows in `left` that pass a clause.
    fn clause(
        &mut self,
        clause: &Clause,
        left: &Bitmap,
        leaf: &mut dyn FnMut(&mut Self, usize, &Bitmap) -> Result<Bitmap>,
    ) -> Result<Bitmap> {
        let group = self.group;
        match clause {
            Clause::Leaf(at) => leaf(self, *at, left),
            Clause::All(list) => {
                let mut rows = left.clone();
                for clause in list {
                    if rows.count_ones() == 0 {
                        break;
                    }
                    let passed = self.clause(clause, if group { left } else { &rows }, leaf)?;
                    rows = if group { rows.and(&passed) } else { passed };
                }
                Ok(rows)
            }
            Clause::Any(list) => {
                let (mut rows, mut accepted) = (left.clone(), Bitmap::filled(left.len(), false));
                for clause in list {
                    if rows.count_ones() == 0 {
                        break;
                    }
                    let passed = self.clause(clause, if group { left } else { &rows }, leaf)?;
                    rows = rows.and_not(&passed);
                    accepted = accepted.or(&passed);
                }
                Ok(accepted)
            }
        }
    }

    /// Those of the rows in `left` that pass a leaf.
    fn leaf(&mut self, at: usize, left: &Bitmap) -> Result<Bitmap> {
        let many = left.count_ones();
        let passed = match &self.clauses.leaves[at].test {
            Test::Values { column, set } => {
                self.values(at, *column, &self.bounded(at, set), left, many, true)?
            }
            Test::Null { column } => {
                let some = kernel::Predicate::nothing(self.physical(*column)).not();
                self.values(at, *column, &some, left, many, false)?
            }
            Test::Expr(expr) => self.expr(at, expr, left, many)?,
            Test::Joined { column, filter } => {
                let Some((_, filter)) = self.runtime.0.get(*filter) else {
                    return Ok(left.clone());
                };
                if !filter.is_worth_it() {
                    return Ok(left.clone());
                }
                let (vector, positions) = self.read(*column, left, many)?;
                let passed = match &positions {
                    Some(positions) => {
                        let all = Bitmap::filled(positions.len(), true);
                        spread(positions, &filter.passing(&vector, &all), left.len())
                    }
                    None => filter.passing(&vector, left),
                };
                self.columns.context.statistics.join_filtered.add(many - passed.count_ones());
                passed
            }
        };
        debug_assert_eq!(passed.and_not(left).count_ones(), 0, "a clause adds no rows");
        let seen = &mut self.seen.leaves[at];
        seen.seen += many;
        seen.passed += passed.count_ones();
        Ok(passed)
    }

    /// The set of values that a leaf tests, up to the bound of a sort above.
    fn bounded<'s>(&self, at: usize, set: &'s kernel::Predicate) -> Cow<'s, kernel::Predicate> {
        let filter = self.clauses.leaves[at].bound.and_then(|filter| self.runtime.0.get(filter));
        match filter.and_then(|(_, filter)| filter.bounded(set)) {
            Some(set) => Cow::Owned(set),
            None => Cow::Borrowed(set),
        }
    }

    fn physical(&self, column: usize) -> PhysicalType {
        self.columns.columns.data_type(column).physical()
    }

    /// A column: decoded, or if few rows are left only at their positions, which are returned too.
    fn read(
        &mut self,
        column: usize,
        left: &Bitmap,
        many: usize,
    ) -> Result<(Arc<Vector>, Option<Vec<u32>>)> {
        if self.group || !self.columns.is_few(column, many)? {
            return Ok((self.columns.decode(column)?, None));
        }
        let positions = left.ones();
        Ok((self.columns.at(column, &positions)?, Some(positions)))
    }

    /// The rows whose value is in a set, or not in it.
    fn values(
        &mut self,
        at: usize,
        column: usize,
        set: &kernel::Predicate,
        left: &Bitmap,
        many: usize,
        is_in: bool,
    ) -> Result<Bitmap> {
        let encoded = self.decision.encoded[at] && !self.group;
        let tested = self.decision.tested[at];
        let few = encoded && self.columns.is_few_to_test(column, many, tested)?;
        let passes = if encoded && !few && !self.columns.is_decoded(column) {
            self.encoded(column, set)?
        } else {
            let (vector, positions) = self.read(column, left, many)?;
            let passes = kernel::filter(&vector, set);
            match positions {
                None => passes,
                Some(positions) => spread(&positions, &passes, left.len()),
            }
        };
        Ok(if is_in { left.and(&passes) } else { left.and_not(&passes) })
    }

    /// The rows of the range whose encoded value is in a set.
    fn encoded(&self, column: usize, set: &kernel::Predicate) -> Result<Bitmap> {
        let RangeColumns { columns, view, range, context, .. } = &*self.columns;
        columns.filter(view, column, set, range.clone(), context)
    }

    /// The rows for which an expression is true.
    fn expr(&mut self, at: usize, expr: &Expr, left: &Bitmap, many: usize) -> Result<Bitmap> {
        let group = self.group;
        if self.decision.encoded[at]
            && !group
            && let Some(passed) = self.matching(at, left)?
        {
            return Ok(passed);
        }
        let columns = &self.clauses.leaves[at].columns;
        let few = !group && self.columns.is_compact(many, columns.iter().copied())?;
        let positions = few.then(|| left.ones());
        let mut vectors = vec![None; self.columns.columns.len()];
        for column in columns {
            vectors[*column] = Some(match &positions {
                Some(positions) => self.columns.at(*column, positions)?,
                None => self.columns.decode(*column)?,
            });
        }
        let by_entry = match (&columns[..], self.decision.encoded[at] && !group) {
            ([column], true) => match &vectors[*column] {
                Some(vector) => self.by_entry(at, expr, *column, vector, many)?,
                None => None,
            },
            _ => None,
        };
        let len = positions.as_ref().map_or(left.len(), Vec::len);
        let passes = match by_entry {
            Some(passes) => passes,
            None => {
                let all = group || positions.is_some() || many == len;
                let rows = (!all).then(|| left.ones());
                let selection = rows.as_deref();
                self.true_rows(expr, &vectors, ActiveRows { len, selection })?
            }
        };
        Ok(match positions {
            Some(positions) => spread(&positions, &passes, left.len()),
            None => left.and(&passes),
        })
    }

    /// The rows in `left` whose encoded text passes the pattern of a leaf; `None` if it has none,
    /// if the column is decoded already, or stored otherwise.
    fn matching(&mut self, at: usize, left: &Bitmap) -> Result<Option<Bitmap>> {
        let leaf = &self.clauses.leaves[at];
        let (Some(pattern), [column]) = (&leaf.pattern, &leaf.columns[..]) else { return Ok(None) };
        if self.columns.is_decoded(*column) {
            return Ok(None);
        }
        let RangeColumns { columns, view, range, context, .. } = &*self.columns;
        columns.matches(view, *column, pattern, range.start, left, context)
    }

    /// Evaluates an expression over vectors, of which those that it does not read are missing.
    fn true_rows(
        &self,
        expr: &Expr,
        vectors: &[Option<Arc<Vector>>],
        rows: ActiveRows<'_>,
    ) -> Result<Bitmap> {
        expr::true_rows(expr, &batch_of(vectors, rows.len), rows, self.columns.context)
    }

    /// The rows of a dictionary-coded vector for which an expression over it alone is true, by
    /// results for each entry; `None` if the vector has no dictionary, or one with more entries
    /// than rows to test.
    fn by_entry(
        &self,
        at: usize,
        expr: &Expr,
        column: usize,
        vector: &Vector,
        many: usize,
    ) -> Result<Option<Bitmap>> {
        let Form::Dictionary { codes, values } = vector.form() else { return Ok(None) };
        let segment = self.columns.view.segment.id();
        let truths = match self.learned.truths(segment, at, values) {
            Some(known) => known,
            None => {
                // Later blocks likely have as many rows to test as this range.
                let rows = self.columns.view.segment.rows() * many / self.columns.len().max(1);
                if values.len() > rows.max(many) {
                    return Ok(None);
                }
                let truths = Arc::new(self.entries(expr, column, vector.data_type(), values)?);
                self.learned.keep_truths(segment, at, truths.clone());
                truths
            }
        };
        let mut passes = Bitmap::default();
        passes.reserve(codes.len());
        for chunk in codes.chunks(64) {
            let bit = |(at, code): (usize, &u32)| (truths.passes.get(*code as usize) as u64) << at;
            let bits = chunk.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
            passes.extend_bits(bits, chunk.len());
        }
        Ok(Some(match vector.validity() {
            None => passes,
            Some(valid) if truths.null_passes => {
                Bitmap::filled(codes.len(), true).and_not(valid).or(&passes.and(valid))
            }
            Some(valid) => passes.and(valid),
        }))
    }

    /// Evaluates an expression over one column for each entry of a dictionary, and for null.
    fn entries(
        &self,
        expr: &Expr,
        column: usize,
        data_type: DataType,
        values: &Arc<Values>,
    ) -> Result<Truths> {
        let evaluate = |vector: Vector| {
            let rows = ActiveRows::all(vector.len());
            let mut vectors = vec![None; self.columns.columns.len()];
            vectors[column] = Some(Arc::new(vector));
            self.true_rows(expr, &vectors, rows)
        };
        let null = evaluate(Vector::constant(data_type, &Value::Null, 1))?.get(0);
        let mut passes = Bitmap::default();
        let mut at = 0;
        while at < values.len() {
            // Vectors have a limited length.
            let end = (at + limits::VECTOR_ROWS).min(values.len());
            let some = values.take((at as u32..end as u32).collect::<Vec<_>>().into_iter());
            let bits = evaluate(Vector::new(data_type, some, None))?;
            bits.words().iter().enumerate().for_each(|(word, bits)| {
                passes.extend_bits(*bits, (end - at - word * 64).min(64));
            });
            at = end;
        }
        Ok(Truths::new(values, passes, null))
    }

    /// Evaluates a leaf on all rows by each strategy, and times it.
    fn measure(&mut self, at: usize, alive: &Bitmap) -> Result<Bitmap> {
        let (context, rows) = (self.columns.context, self.columns.len());
        let leaf = &self.clauses.leaves[at];
        let (mut encoded, mut encoded_ns) = (None, 0);
        if leaf.pattern.is_some() && leaf.columns.iter().all(|c| !self.columns.is_decoded(*c)) {
            let from = context.now_ns();
            encoded = self.matching(at, alive)?;
            encoded_ns = context.now_ns().saturating_sub(from);
            self.seen.leaves[at].on_codes = Some(encoded.is_some());
        }
        for column in &leaf.columns {
            if !self.columns.is_decoded(*column) {
                let from = context.now_ns();
                self.columns.decode(*column)?;
                self.seen.decoding[*column].add(rows, context.now_ns().saturating_sub(from));
            }
        }
        if encoded.is_none() {
            let from = context.now_ns();
            encoded = match (&leaf.test, &leaf.columns[..]) {
                (Test::Values { column, set }, _) => {
                    Some(self.encoded(*column, &self.bounded(at, set))?)
                }
                (Test::Expr(expr), [column]) => {
                    let vector = self.columns.decode(*column)?;
                    self.by_entry(at, expr, *column, &vector, alive.count_ones())?
                }
                _ => None,
            };
            encoded_ns = context.now_ns().saturating_sub(from);
        }
        let before = self.seen.leaves[at].seen;
        self.group = true;
        let from = context.now_ns();
        let regular = self.leaf(at, alive);
        let regular_ns = context.now_ns().saturating_sub(from);
        self.group = false;
        let regular = regular?;
        let seen = &mut self.seen.leaves[at];
        // A join's filter that is not worth it is not evaluated.
        if seen.seen > before {
            seen.regular.add(rows, regular_ns);
        }
        if let Some(encoded) = encoded {
            seen.encoded.add(rows, encoded_ns);
            debug_assert_eq!(encoded.and(alive), regular, "strategies of clause {at}");
        }
        Ok(regular)
    }
}

/// A batch of these vectors. Placeholders keep the others at their positions.
pub(super) fn batch_of(vectors: &[Option<Arc<Vector>>], rows: usize) -> Batch {
    let stand_in = Arc::new(Vector::constant(DataType::Null, &Value::Null, rows));
    let columns = vectors.iter().map(|c| c.clone().unwrap_or_else(|| stand_in.clone())).collect();
    Batch { columns, rows, selection: None }
}

/// The rows at some of the positions: `passed` has a bit for each position.
fn spread(positions: &[u32], passed: &Bitmap, len: usize) -> Bitmap {
    debug_assert_eq!(positions.len(), passed.len(), "a bit for each position");
    Bitmap::of_ones(passed.ones().iter().map(|at| positions[*at as usize]), len)
}
