//! Joins. The right input is collected and its keys become groups; each left row looks up its group and
//! is paired with the rows there. Without keys every right row is in one group, which is the nested loop.
//!
//! The collected side is not changed by being probed, so that several threads may share it, each with an operator
//! of its own (`parallel`); only marks are set there, which rows found a partner. Null keys never match. The residual is part of the join: a row whose pairs it refuses is unmatched.

use super::join_keys::{evaluate_all, key_type, without_nulls};
use crate::context::{Context, Operator, Step, pull};
use crate::expr::{self, Rows};
use crate::group::{Grouper, Seen};
use crate::join_filter::Filters;
use crate::memory::Held;
use crate::spill::{Nulls, SpilledJoin};
use crate::store::{NO_ROW, RowStore};
use nacre_column::{Batch, Vector};
use nacre_sql::expr::Expr;
use nacre_sql::plan::JoinKind;
use nacre_types::{DataType, Result, Value, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a join is made from.
#[derive(Clone)]
pub(crate) struct JoinSpec {
    pub kind: JoinKind,
    pub keys: Vec<(Expr, Expr)>,
    pub residual: Option<Expr>,
    pub left_types: Vec<DataType>,
    pub right_types: Vec<DataType>,
}

/// The right input: its rows, and after the last one the rows of each group together.
pub(crate) struct Build {
    rows: RowStore,
    grouper: Grouper,
    /// Group of each row, [`NO_ROW`] when its key has a null.
    group_of: Vec<u32>,
    /// Rows of group `g`: `members[starts[g]..starts[g + 1]]`.
    starts: Vec<u32>,
    members: Vec<u32>,
    /// What there was, rows that were not collected included.
    pub nulls: Nulls,
    held: Held,
    /// Whether rows come out by themselves in the end, and then which of them found a partner.
    keeps: bool,
    marks: Vec<AtomicBool>,
}

/// A left batch on its way.
struct Probe {
    batch: Batch,
    /// Selected rows and their groups.
    rows: Vec<u32>,
    groups: Vec<u32>,
    /// Next row, and how many members of its group are done.
    at: usize,
    done: usize,
    /// Which of `rows` found a partner, where that is needed.
    matched: Vec<bool>,
    /// `MarkIn`: for which of `rows` a comparison was null.
    unknown: Vec<bool>,
}

/// Pairs of rows that share a key.
#[derive(Default)]
struct Pairs {
    /// Positions in the left batch.
    left: Vec<u32>,
    /// Positions in the build, or [`NO_ROW`].
    right: Vec<u32>,
    /// Positions in [`Probe::rows`].
    ordinals: Vec<u32>,
}

/// Hash join and nested loop.
pub(crate) struct HashJoin {
    spec: JoinSpec,
    residual: Option<[Expr; 1]>,
    left_keys: Vec<Expr>,
    right_keys: Vec<Expr>,
    left: Box<dyn Operator>,
    /// Until it is collected.
    right: Option<Box<dyn Operator>>,
    build: Arc<Build>,
    /// What the left side would like to know of the keys, by key.
    filters: Filters,
    seen: Seen,
    /// One of several that share a build: others see to its rows.
    shares: bool,
    probe: Option<Probe>,
    left_done: bool,
    /// Right and full joins: next row to ask whether it was left alone.
    unmatched_at: usize,
    /// When this joins partitions of a join that spilled: how often they were cut.
    level: u32,
    spilled: Option<Box<SpilledJoin>>,
}

impl Build {
    /// Nothing collected.
    pub fn new(spec: &JoinSpec) -> Build {
        let types: Vec<_> = spec.keys.iter().map(|(l, r)| key_type(l.data_type, r.data_type)).collect();
        Build {
            rows: RowStore::new(&spec.right_types),
            grouper: Grouper::new(&types),
            group_of: Vec::new(),
            starts: Vec::new(),
            members: Vec::new(),
            nulls: Nulls::default(),
            held: Held::default(),
            keeps: keeps_right(spec.kind),
            marks: Vec::new(),
        }
    }

    fn is_marked(&self, row: u32) -> bool {
        self.marks[row as usize].load(Ordering::Relaxed)
    }

    fn mark(&self, row: u32) {
        self.marks[row as usize].store(true, Ordering::Relaxed);
    }

    /// Collects all of an input; `limit` when that cannot be held.
    pub fn collected(mut right: Box<dyn Operator>, spec: &JoinSpec, context: &Context<'_>) -> Result<Arc<Build>> {
        let mut build = Build::new(spec);
        let keys: Vec<Expr> = spec.keys.iter().map(|(_, key)| key.clone()).collect();
        while let Step::Batch(batch) = right.next(context)? {
            context.check_cancelled()?;
            if !build.collect(&batch, &keys, keeps_right(spec.kind), context)? {
                return Err(context.over_limit("join"));
            }
        }
        build.finish();
        Ok(Arc::new(build))
    }

    /// Takes in a batch; false when all of it together is more than can be held.
    pub fn collect(&mut self, batch: &Batch, keys: &[Expr], keeps_right: bool, context: &Context<'_>) -> Result<bool> {
        let rows = Rows { len: batch.rows, selection: batch.selection.as_deref() };
        let keys = evaluate_all(keys, batch, context)?;
        let usable = without_nulls(&keys, rows);
        self.nulls.any_row |= !rows.is_empty();
        self.nulls.any_null |= usable.as_ref().is_some_and(|usable| usable.len() < rows.count());
        let mut groups = Vec::new();
        match usable {
            None => {
                self.grouper.assign(&keys, rows, &mut groups)?;
                self.rows.append(batch, rows)?;
                self.group_of.extend_from_slice(&groups);
            }
            Some(usable) => {
                let narrowed = rows.narrowed(&usable);
                self.grouper.assign(&keys, narrowed, &mut groups)?;
                if keeps_right {
                    // Rows with a null key match nothing, but must come out in the end.
                    self.rows.append(batch, rows)?;
                    let mut with_key = usable.iter().zip(&groups).peekable();
                    for row in rows.iter() {
                        let group = with_key.next_if(|(usable, _)| **usable as usize == row);
                        self.group_of.push(group.map_or(NO_ROW, |(_, group)| *group));
                    }
                } else {
                    self.rows.append(batch, narrowed)?;
                    self.group_of.extend_from_slice(&groups);
                }
            }
        }
        let held = self.rows.memory_bytes() + self.grouper.memory_bytes() + self.group_of.len() * 8;
        Ok(self.held.hold(held, context))
    }

    /// Fills the filters of the keys.
    pub fn fill(&self, filters: &Filters) {
        for (key, filter) in filters.iter().enumerate() {
            if let (Some(filter), Some(values)) = (filter, self.grouper.integers(key)) {
                filter.fill(values);
            }
        }
    }

    /// Gives all rows away.
    pub fn drain(&mut self, spec: &JoinSpec, to: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let Build { rows, nulls, .. } = std::mem::replace(self, Build::new(spec));
        self.nulls = nulls;
        let order: Vec<u32> = (0..rows.rows() as u32).collect();
        order.chunks(limits::VECTOR_ROWS).try_for_each(|rows_of| to(Batch::new(rows.take(rows_of), rows_of.len())))
    }

    /// All rows are there.
    pub fn finish(&mut self) {
        let groups = self.grouper.groups();
        let mut starts = vec![0u32; groups + 1];
        for group in self.group_of.iter().filter(|g| **g != NO_ROW) {
            starts[*group as usize + 1] += 1;
        }
        for g in 0..groups {
            starts[g + 1] += starts[g];
        }
        let mut next = starts.clone();
        self.members = vec![0; starts.last().map_or(0, |n| *n as usize)];
        for (row, group) in self.group_of.iter().enumerate().filter(|(_, g)| **g != NO_ROW) {
            let at = &mut next[*group as usize];
            self.members[*at as usize] = row as u32;
            *at += 1;
        }
        self.starts = starts;
        self.group_of = Vec::new();
        if self.keeps {
            self.marks.resize_with(self.rows.rows(), AtomicBool::default);
        }
    }
}

/// Nothing on the right: nothing of the left can come out either.
fn has_no_rows(build: &Build, kind: JoinKind) -> bool {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    let needs_partner = matches!(kind, Inner | Semi | Right | RightSemi | RightAnti);
    needs_partner && build.members.is_empty()
}

pub(crate) fn keeps_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti)
}

impl HashJoin {
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>, spec: JoinSpec) -> HashJoin {
        let build = Arc::new(Build::new(&spec));
        HashJoin { right: Some(right), shares: false, ..HashJoin::probing(left, build, spec) }
    }

    /// What is left of the rows of a build when everybody who shares it is done.
    pub fn rest(build: Arc<Build>, spec: JoinSpec) -> HashJoin {
        let nothing = Box::new(super::Values::new(spec.left_types.clone(), Vec::new()));
        HashJoin { shares: false, ..HashJoin::probing(nothing, build, spec) }
    }

    /// Over what was collected before. Does not give out rows of the right alone; [`HashJoin::rest`] does.
    pub fn probing(left: Box<dyn Operator>, build: Arc<Build>, mut spec: JoinSpec) -> HashJoin {
        let (left_keys, right_keys) = std::mem::take(&mut spec.keys).into_iter().unzip();
        let residual = spec.residual.take().map(|e| [e]);
        let left_done = has_no_rows(&build, spec.kind);
        HashJoin {
            spec,
            residual,
            left_keys,
            right_keys,
            left,
            right: None,
            build,
            filters: Vec::new(),
            seen: Seen::default(),
            shares: true,
            probe: None,
            left_done,
            unmatched_at: 0,
            level: 0,
            spilled: None,
        }
    }

    /// Tells the left side about the keys before it is asked for rows.
    pub fn filling(mut self, filters: Filters) -> HashJoin {
        self.filters = filters;
        self
    }

    /// Over what was collected before, if nobody else looks at it.
    pub fn over(left: Box<dyn Operator>, build: Arc<Build>, spec: JoinSpec) -> HashJoin {
        HashJoin { shares: false, ..HashJoin::probing(left, build, spec) }
    }

    /// Of partitions that were cut so often, out of a right side that had this.
    pub fn of_partition(mut self, level: u32, nulls: Nulls) -> HashJoin {
        if let Some(build) = Arc::get_mut(&mut self.build) {
            build.nulls = nulls;
        }
        HashJoin { level, ..self }
    }

    /// Collects the right side, in partitions once it does not fit. A step to be passed on is answered.
    fn collect_right(&mut self, context: &Context<'_>) -> Result<Option<Step>> {
        let Some(mut right) = self.right.take() else { return Ok(None) };
        loop {
            let batch = match right.next(context)? {
                Step::Batch(batch) => batch,
                Step::Done => break,
                #[allow(unreachable_patterns)]
                other => {
                    self.right = Some(right);
                    return Ok(Some(other));
                }
            };
            context.check_cancelled()?;
            if let Some(spilled) = &mut self.spilled {
                spilled.add_right(&batch, context)?;
                continue;
            }
            let Some(build) = Arc::get_mut(&mut self.build) else { continue };
            if !build.collect(&batch, &self.right_keys, keeps_right(self.spec.kind), context)? {
                let spec = whole_spec(&self.spec, &self.left_keys, &self.right_keys, &self.residual);
                self.spilled = Some(Box::new(SpilledJoin::begin(spec, self.level, build, context)?));
            }
        }
        if let Some(spilled) = &mut self.spilled {
            // Filters that are not filled let everything pass.
            return spilled.finish_right(context).map(|()| None);
        }
        if let Some(build) = Arc::get_mut(&mut self.build) {
            build.finish();
        }
        self.build.fill(&self.filters);
        self.left_done = has_no_rows(&self.build, self.spec.kind);
        Ok(None)
    }

    fn keeps_right(&self) -> bool {
        keeps_right(self.spec.kind)
    }

    fn keeps_left(&self) -> bool {
        matches!(self.spec.kind, JoinKind::Left | JoinKind::Full | JoinKind::Single)
    }

    /// Whether left rows come out at most once, by themselves, when all their partners are known.
    fn judges_left(&self) -> bool {
        use JoinKind::{Anti, Mark, MarkIn, Semi};
        matches!(self.spec.kind, Semi | Anti | Mark | MarkIn)
    }

    /// Whether right rows come out by themselves, when all their partners are known.
    fn judges_right(&self) -> bool {
        matches!(self.spec.kind, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    fn start_probe(&mut self, batch: Batch, context: &Context<'_>) -> Result<Probe> {
        let rows = Rows { len: batch.rows, selection: batch.selection.as_deref() };
        let keys = evaluate_all(&self.left_keys, &batch, context)?;
        let mut groups = Vec::new();
        let mut unknown = Vec::new();
        let nullable = self.spec.kind == JoinKind::MarkIn && self.residual.is_none();
        if self.spec.kind == JoinKind::MarkIn {
            // Comparing with a null among others says nothing, comparing with nothing says no.
            unknown = vec![nullable && self.build.nulls.any_null; rows.count()];
        }
        match without_nulls(&keys, rows) {
            None => self.build.grouper.lookup(&keys, rows, &mut self.seen, &mut groups)?,
            Some(usable) => {
                if nullable && self.build.nulls.any_row {
                    let mut with_key = usable.iter().peekable();
                    for (unknown, row) in unknown.iter_mut().zip(rows.iter()) {
                        *unknown |= with_key.next_if(|usable| **usable as usize == row).is_none();
                    }
                }
                let mut found = Vec::new();
                self.build.grouper.lookup(&keys, rows.narrowed(&usable), &mut self.seen, &mut found)?;
                let mut with_key = usable.iter().zip(&found).peekable();
                for row in rows.iter() {
                    let group = with_key.next_if(|(usable, _)| **usable as usize == row);
                    groups.push(group.map_or(NO_ROW, |(_, group)| *group));
                }
            }
        }
        let selected = rows.to_selection();
        let tracked = if self.residual.is_some() { selected.len() } else { 0 };
        if self.judges_right() && self.residual.is_none() {
            self.mark_groups(&groups);
        }
        Ok(Probe { rows: selected, groups, at: 0, done: 0, matched: vec![false; tracked], unknown, batch })
    }

    /// All rows of these groups have a partner.
    fn mark_groups(&self, groups: &[u32]) {
        let build = &self.build;
        for group in groups.iter().filter(|g| **g != NO_ROW) {
            let group = *group as usize;
            let members = &build.members[build.starts[group] as usize..build.starts[group + 1] as usize];
            // They all have one, or none has, or another thread is about to say so.
            if members.first().is_some_and(|row| !build.is_marked(*row)) {
                members.iter().for_each(|row| build.mark(*row));
            }
        }
    }

    /// The next pairs, at most a vector of them; none at the end of the left batch.
    fn next_pairs(&self, probe: &mut Probe) -> Pairs {
        let mut pairs = Pairs::default();
        let alone_in_place = self.keeps_left() && self.residual.is_none();
        while probe.at < probe.rows.len() && pairs.left.len() < limits::VECTOR_ROWS {
            let (row, group) = (probe.rows[probe.at], probe.groups[probe.at]);
            let members: &[u32] = if group == NO_ROW {
                &[]
            } else {
                let group = group as usize;
                &self.build.members[self.build.starts[group] as usize..self.build.starts[group + 1] as usize]
            };
            let members = if members.is_empty() && alone_in_place { &[NO_ROW] } else { members };
            let room = limits::VECTOR_ROWS - pairs.left.len();
            let taken = &members[probe.done..(probe.done + room).min(members.len())];
            if self.judges_right() {
                // Who has a partner needs no other.
                pairs.right.extend(taken.iter().filter(|row| !self.build.is_marked(**row)));
                pairs.left.resize(pairs.right.len(), row);
                pairs.ordinals.resize(pairs.right.len(), probe.at as u32);
            } else {
                pairs.left.extend(std::iter::repeat_n(row, taken.len()));
                pairs.ordinals.extend(std::iter::repeat_n(probe.at as u32, taken.len()));
                pairs.right.extend_from_slice(taken);
            }
            probe.done += taken.len();
            if probe.done == members.len() {
                probe.at += 1;
                probe.done = 0;
            }
        }
        pairs
    }

    fn pair_batch(&self, probe: &Probe, pairs: &Pairs) -> Batch {
        let whole =
            pairs.left.len() == probe.batch.rows && pairs.left.iter().enumerate().all(|(i, p)| i == *p as usize);
        let mut columns: Vec<Arc<Vector>> = if whole {
            probe.batch.columns.clone()
        } else {
            probe.batch.columns.iter().map(|c| Arc::new(c.take(&pairs.left))).collect()
        };
        columns.extend(self.build.rows.take(&pairs.right));
        Batch { columns, rows: pairs.left.len(), selection: None }
    }

    /// What the next pairs of a left batch yield; `None` when there are no more.
    fn advance(&mut self, probe: &mut Probe, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.check_cancelled()?;
            let pairs = self.next_pairs(probe);
            if pairs.left.is_empty() {
                return Ok(None);
            }
            let mut batch = self.pair_batch(probe, &pairs);
            if let Some(residual) = &self.residual {
                let passed = if self.spec.kind == JoinKind::MarkIn {
                    let (passed, unknown) = expr::truths(&residual[0], &batch, context)?;
                    for at in unknown {
                        probe.unknown[pairs.ordinals[at as usize] as usize] = true;
                    }
                    passed
                } else {
                    expr::filter(residual, &batch, context)?
                };
                for at in &passed {
                    let matched = &mut probe.matched[pairs.ordinals[*at as usize] as usize];
                    if self.spec.kind == JoinKind::Single && *matched {
                        return Err(more_than_one());
                    }
                    *matched = true;
                }
                batch.selection = Some(passed);
            } else if self.spec.kind == JoinKind::Single
                && (probe.done > 0 || pairs.ordinals.windows(2).any(|pair| pair[0] == pair[1]))
            {
                return Err(more_than_one());
            }
            if self.keeps_right() {
                for at in (Rows { len: batch.rows, selection: batch.selection.as_deref() }).iter() {
                    if pairs.right[at] != NO_ROW {
                        self.build.mark(pairs.right[at]);
                    }
                }
            }
            if !self.judges_left() && !self.judges_right() && batch.selected() > 0 {
                return Ok(Some(super::settle(batch)));
            }
        }
    }

    /// Left rows without a partner, once all pairs of the batch went through the residual.
    fn left_alone(&self, probe: &Probe) -> Option<Batch> {
        let alone: Vec<u32> =
            probe.rows.iter().zip(&probe.matched).filter(|(_, matched)| !**matched).map(|(row, _)| *row).collect();
        if alone.is_empty() {
            return None;
        }
        let mut columns: Vec<_> = probe.batch.columns.iter().map(|c| Arc::new(c.take(&alone))).collect();
        columns.extend(nulls(&self.spec.right_types, alone.len()));
        Some(Batch::new(columns, alone.len()))
    }

    /// Semi, anti and mark joins: the left rows that are kept.
    fn left_kept(&self, mut probe: Probe) -> Option<Batch> {
        let wanted = self.spec.kind == JoinKind::Semi;
        let has_partner = |at: usize| match self.residual {
            Some(_) => probe.matched[at],
            None => probe.groups[at] != NO_ROW,
        };
        if self.spec.kind.marks() {
            let len = probe.batch.rows;
            let (mut marks, mut validity) = (vec![false; len], nacre_column::Bitmap::filled(len, true));
            let mut any_null = false;
            for (at, row) in probe.rows.iter().enumerate() {
                marks[*row as usize] = has_partner(at);
                if !has_partner(at) && probe.unknown.get(at).copied().unwrap_or(false) {
                    validity.set(*row as usize, false);
                    any_null = true;
                }
            }
            let marks = nacre_column::Values::Bool(marks);
            probe.batch.columns.push(Arc::new(Vector::new(DataType::Boolean, marks, any_null.then_some(validity))));
            return Some(probe.batch);
        }
        let kept: Vec<u32> =
            (0..probe.rows.len()).filter(|at| has_partner(*at) == wanted).map(|at| probe.rows[at]).collect();
        if kept.is_empty() {
            return None;
        }
        probe.batch.selection = Some(kept);
        Some(super::settle(probe.batch))
    }

    fn right_alone(&mut self) -> Option<Batch> {
        let mut alone = Vec::new();
        let wanted = self.spec.kind == JoinKind::RightSemi;
        while self.unmatched_at < self.build.marks.len() && alone.len() < limits::VECTOR_ROWS {
            if self.build.is_marked(self.unmatched_at as u32) == wanted {
                alone.push(self.unmatched_at as u32);
            }
            self.unmatched_at += 1;
        }
        if alone.is_empty() {
            return None;
        }
        let mut columns = if self.judges_right() { Vec::new() } else { nulls(&self.spec.left_types, alone.len()) };
        columns.extend(self.build.rows.take(&alone));
        Some(Batch::new(columns, alone.len()))
    }
}

/// What a join was made from.
fn whole_spec(spec: &JoinSpec, left: &[Expr], right: &[Expr], residual: &Option<[Expr; 1]>) -> JoinSpec {
    JoinSpec {
        keys: left.iter().cloned().zip(right.iter().cloned()).collect(),
        residual: residual.as_ref().map(|[e]| e.clone()),
        ..spec.clone()
    }
}

#[cold]
fn more_than_one() -> nacre_types::Error {
    nacre_types::Error::type_error("a subquery used as a value has more than one row")
        .with_sqlstate("21000")
        .with_hint("add LIMIT 1 or an aggregate")
}

fn nulls(types: &[DataType], len: usize) -> Vec<Arc<Vector>> {
    types.iter().map(|t| Arc::new(Vector::constant(*t, &Value::Null, len))).collect()
}

impl Operator for HashJoin {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        if let Some(step) = self.collect_right(context)? {
            return Ok(step);
        }
        if let Some(spilled) = &mut self.spilled {
            return spilled.next(&mut *self.left, context);
        }
        loop {
            let Some(mut probe) = self.probe.take() else {
                if self.left_done {
                    break;
                }
                match pull!(self.left, context) {
                    Some(batch) => self.probe = Some(self.start_probe(batch, context)?),
                    None => self.left_done = true,
                }
                continue;
            };
            let judges = self.judges_left() || self.judges_right();
            if (!judges || self.residual.is_some())
                && let Some(batch) = self.advance(&mut probe, context)?
            {
                self.probe = Some(probe);
                return Ok(Step::Batch(batch));
            }
            let rest = if self.judges_left() {
                self.left_kept(probe)
            } else if self.keeps_left() && self.residual.is_some() {
                self.left_alone(&probe)
            } else {
                None
            };
            if let Some(batch) = rest {
                return Ok(Step::Batch(batch));
            }
        }
        context.check_cancelled()?;
        if self.shares {
            return Ok(Step::Done);
        }
        Ok(self.right_alone().map_or(Step::Done, Step::Batch))
    }
}
