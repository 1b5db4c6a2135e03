//! Probing with left batches: pairs, the residual, and rows without a partner.

use super::build_side::BuildSide;
use super::keys::{evaluate_all, without_nulls};
use super::spec::JoinSpec;
use crate::buffer::limits::{BATCH_BYTES, NO_ROW};
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::group::Seen;
use crate::operator::settle;
use nacre_column::{Batch, Bitmap, BytesColumn, Form, Values, Vector};
use nacre_sql::plan::JoinKind;
use nacre_types::{DataType, Error, Result, Value, limits};
use std::sync::Arc;

/// A left batch being probed.
struct Probe {
    batch: Batch,
    /// Selected rows and their groups.
    rows: Vec<u32>,
    groups: Vec<u32>,
    /// The next row, and how many members of its group are paired.
    at: usize,
    done: usize,
    /// Replaces `at` and `done` if a row needs only one partner.
    rounds: Option<Rounds>,
    /// Pairs that did not fit in the previous batch.
    cut_off: Pairs,
    /// The most bytes of text of a pair, once it is known.
    longest: Option<usize>,
    /// Which of `rows` found a partner, where there is a residual.
    matched: Vec<bool>,
    /// For which of `rows` a comparison was null; only in a `MarkIn` join.
    unknown: Vec<bool>,
}

/// In each round, every left row without a partner so far is paired with some more members of its
/// group. So most rows are done with their first pair, and vectors of pairs are full all the same.
struct Rounds {
    /// Positions in [`Probe::rows`] of the rows in this round.
    waiting: Vec<u32>,
    /// The next of them, and how many of its members in this round are done.
    at: usize,
    done: usize,
    /// The members of each row in this round: `count` of them from `from` on.
    from: usize,
    count: usize,
}

impl Rounds {
    /// The first round, of rows whose group has members.
    fn new(waiting: Vec<u32>) -> Rounds {
        let count = Rounds::filling(waiting.len());
        Rounds { waiting, at: 0, done: 0, from: 0, count }
    }

    /// How many members each row takes so that all pairs fill a vector.
    fn filling(rows: usize) -> usize {
        (limits::VECTOR_ROWS / rows.max(1)).max(1)
    }

    /// Starts the next round with the rows that `is_waiting` keeps, and twice as many members each:
    /// partners of these rows are hard to find.
    fn again(&mut self, mut is_waiting: impl FnMut(u32, usize) -> bool) {
        self.from += self.count;
        self.waiting.retain(|ordinal| is_waiting(*ordinal, self.from));
        self.count = (self.count * 2).max(Rounds::filling(self.waiting.len()));
        (self.at, self.done) = (0, 0);
    }
}

/// Pairs of rows with equal keys.
#[derive(Default)]
struct Pairs {
    /// Positions in the left batch.
    left: Vec<u32>,
    /// Positions in the build, or [`NO_ROW`].
    right: Vec<u32>,
    /// Positions in [`Probe::rows`].
    ordinals: Vec<u32>,
}

impl Pairs {
    /// The pairs from `at` on.
    fn split_off(&mut self, at: usize) -> Pairs {
        Pairs {
            left: self.left.split_off(at),
            right: self.right.split_off(at),
            ordinals: self.ordinals.split_off(at),
        }
    }
}

/// Pairs the rows of left batches, one batch after the other, with those of a complete build side.
pub(super) struct Prober {
    spec: Arc<JoinSpec>,
    build: Arc<BuildSide>,
    /// Dictionaries of left keys, with the groups of their entries.
    seen: Seen,
    /// The left batch being probed.
    probe: Option<Probe>,
    /// The next right row to check for a mark.
    unmatched_at: usize,
}

impl Prober {
    /// Over a complete build side.
    pub fn new(spec: Arc<JoinSpec>, build: Arc<BuildSide>) -> Prober {
        Prober { spec, build, seen: Seen::default(), probe: None, unmatched_at: 0 }
    }

    /// Whether no left row can produce anything.
    pub fn leaves_nothing(&self) -> bool {
        self.build.leaves_nothing(&self.spec)
    }

    /// Takes a left batch, once the one before it is done.
    pub fn begin(&mut self, batch: Batch, context: &Context<'_>) -> Result<()> {
        debug_assert!(self.probe.is_none(), "the left batch before is done");
        self.probe = Some(self.start(batch, context)?);
        Ok(())
    }

    /// The next rows of the left batch at work; `None` once it is done.
    pub fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let Some(mut probe) = self.probe.take() else { return Ok(None) };
        let judges = self.spec.judges_left() || self.spec.judges_right();
        if !judges || self.spec.residual.is_some() {
            match self.advance(&mut probe, context) {
                Ok(None) => {}
                // After the end of a time slice, the next call goes on with this left batch.
                advanced => {
                    self.probe = Some(probe);
                    return advanced;
                }
            }
        }
        Ok(if self.spec.judges_left() {
            self.left_kept(probe)
        } else if self.spec.keeps_left() && self.spec.residual.is_some() {
            self.left_alone(&probe)
        } else {
            None
        })
    }

    fn start(&mut self, batch: Batch, context: &Context<'_>) -> Result<Probe> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let keys = evaluate_all(&self.spec.left.keys, &batch, context)?;
        let mut groups = Vec::new();
        let mut unknown = Vec::new();
        let nullable = self.spec.kind == JoinKind::MarkIn && self.spec.residual.is_none();
        if self.spec.kind == JoinKind::MarkIn {
            // `IN` over a list with a null is unknown unless a value matches; over no rows it is
            // false.
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
                self.build.grouper.lookup(
                    &keys,
                    rows.narrowed(&usable),
                    &mut self.seen,
                    &mut found,
                )?;
                let mut with_key = usable.iter().zip(&found).peekable();
                for row in rows.iter() {
                    let group = with_key.next_if(|(usable, _)| **usable as usize == row);
                    groups.push(group.map_or(NO_ROW, |(_, group)| *group));
                }
            }
        }
        let selected = rows.to_selection();
        debug_assert_eq!(groups.len(), selected.len(), "each selected row has a group");
        let tracked = if self.spec.residual.is_some() { selected.len() } else { 0 };
        if self.spec.judges_right() && self.spec.residual.is_none() {
            self.mark_groups(&groups);
        }
        let rounds = (self.spec.judges_left() && self.spec.residual.is_some()).then(|| {
            let has_members = |at: &u32| !self.build.members(groups[*at as usize]).is_empty();
            Rounds::new((0..selected.len() as u32).filter(has_members).collect())
        });
        let (cut_off, matched) = (Pairs::default(), vec![false; tracked]);
        Ok(Probe {
            rows: selected,
            groups,
            at: 0,
            done: 0,
            rounds,
            cut_off,
            longest: None,
            matched,
            unknown,
            batch,
        })
    }

    /// Marks all rows of these groups.
    fn mark_groups(&self, groups: &[u32]) {
        let build = &self.build;
        for group in groups.iter().filter(|g| **g != NO_ROW) {
            let members = self.build.members(*group);
            // All members are marked, or none is, or another thread is marking them.
            if members.first().is_some_and(|row| !build.is_marked(*row)) {
                members.iter().for_each(|row| build.mark(*row));
            }
        }
    }

    /// The next pairs: at most a vector of them, and about [`BATCH_BYTES`] where texts are long;
    /// none at the end of the left batch.
    fn next_pairs(&self, probe: &mut Probe) -> Result<Pairs> {
        let mut pairs = std::mem::take(&mut probe.cut_off);
        if pairs.left.is_empty() {
            pairs = self.vector_of_pairs(probe);
            if self.spec.kind == JoinKind::Single
                && self.spec.residual.is_none()
                && (probe.done > 0 || pairs.ordinals.windows(2).any(|pair| pair[0] == pair[1]))
            {
                return Err(more_than_one());
            }
        }
        let longest = *probe.longest.get_or_insert_with(|| {
            let left = probe.batch.columns.iter().filter(|c| copied_texts(c).is_some());
            left.map(|column| column.longest()).sum::<usize>() + self.build.longest_row
        });
        if longest.saturating_mul(pairs.left.len()) > BATCH_BYTES {
            let at = self.fitting(probe, &pairs);
            probe.cut_off = pairs.split_off(at);
        }
        Ok(pairs)
    }

    /// How many of these pairs fit in [`BATCH_BYTES`] of text; at least one.
    fn fitting(&self, probe: &Probe, pairs: &Pairs) -> usize {
        let texts: Vec<_> =
            probe.batch.columns.iter().filter_map(|column| copied_texts(column)).collect();
        let mut bytes = 0;
        let fits = |(left, right): (&u32, &u32)| {
            let left: usize = texts.iter().map(|texts| texts.get(*left as usize).len()).sum();
            bytes += left + self.build.rows.copied_bytes(*right);
            bytes <= BATCH_BYTES
        };
        pairs.left.iter().zip(&pairs.right).map(fits).take_while(|fits| *fits).count().max(1)
    }

    /// The next pairs, however long their texts.
    fn vector_of_pairs(&self, probe: &mut Probe) -> Pairs {
        if let Some(mut rounds) = probe.rounds.take() {
            let pairs = self.pairs_by_rounds(probe, &mut rounds);
            probe.rounds = Some(rounds);
            return pairs;
        }
        let mut pairs = Pairs::default();
        let alone_in_place = self.spec.keeps_left() && self.spec.residual.is_none();
        while probe.at < probe.rows.len() && pairs.left.len() < limits::VECTOR_ROWS {
            let (row, group) = (probe.rows[probe.at], probe.groups[probe.at]);
            let members = self.build.members(group);
            let members = if members.is_empty() && alone_in_place { &[NO_ROW] } else { members };
            let room = limits::VECTOR_ROWS - pairs.left.len();
            let taken = &members[probe.done..(probe.done + room).min(members.len())];
            if self.spec.judges_right() {
                // A right row with a partner needs no other.
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

    /// Like [`Prober::vector_of_pairs`], in rounds.
    fn pairs_by_rounds(&self, probe: &Probe, rounds: &mut Rounds) -> Pairs {
        let mut pairs = Pairs::default();
        while pairs.left.len() < limits::VECTOR_ROWS {
            let Some(ordinal) = rounds.waiting.get(rounds.at).copied() else {
                if !pairs.left.is_empty() {
                    // Partners found among these pairs decide which rows the next round has.
                    break;
                }
                let members =
                    |ordinal: u32| self.build.members(probe.groups[ordinal as usize]).len();
                rounds.again(|ordinal, from| {
                    !probe.matched[ordinal as usize] && members(ordinal) > from
                });
                if rounds.waiting.is_empty() {
                    break;
                }
                continue;
            };
            let at = ordinal as usize;
            let members = self.build.members(probe.groups[at]);
            let end = members.len().min(rounds.from + rounds.count);
            let from = rounds.from + rounds.done;
            let to = end.min(from + limits::VECTOR_ROWS - pairs.left.len());
            if !probe.matched[at] {
                pairs.right.extend_from_slice(&members[from..to]);
                pairs.left.resize(pairs.right.len(), probe.rows[at]);
                pairs.ordinals.resize(pairs.right.len(), ordinal);
                rounds.done += to - from;
            }
            if to == end || probe.matched[at] {
                rounds.at += 1;
                rounds.done = 0;
            }
        }
        pairs
    }

    fn pair_batch(&self, probe: &Probe, pairs: &Pairs) -> Batch {
        let whole = pairs.left.len() == probe.batch.rows
            && pairs.left.iter().enumerate().all(|(i, p)| i == *p as usize);
        let mut columns: Vec<Arc<Vector>> = if whole {
            probe.batch.columns.clone()
        } else {
            probe.batch.columns.iter().map(|c| Arc::new(c.take(&pairs.left))).collect()
        };
        columns.extend(self.build.rows.take(&pairs.right));
        Batch { columns, rows: pairs.left.len(), selection: None }
    }

    /// The joined rows of the next pairs of a left batch; `None` when there are no more.
    fn advance(&mut self, probe: &mut Probe, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.give_way()?;
            let pairs = self.next_pairs(probe)?;
            if pairs.left.is_empty() {
                return Ok(None);
            }
            let mut batch = self.pair_batch(probe, &pairs);
            if let Some(residual) = &self.spec.residual {
                let passed = if self.spec.kind == JoinKind::MarkIn {
                    let (passed, unknown) = expr::truths(residual, &batch, context)?;
                    for at in unknown {
                        probe.unknown[pairs.ordinals[at as usize] as usize] = true;
                    }
                    passed
                } else {
                    expr::filter(std::slice::from_ref(residual), &batch, context)?
                };
                for at in &passed {
                    let matched = &mut probe.matched[pairs.ordinals[*at as usize] as usize];
                    if self.spec.kind == JoinKind::Single && *matched {
                        return Err(more_than_one());
                    }
                    *matched = true;
                }
                batch.selection = Some(passed);
            }
            if self.spec.keeps_right() {
                for at in
                    (ActiveRows { len: batch.rows, selection: batch.selection.as_deref() }).iter()
                {
                    if pairs.right[at] != NO_ROW {
                        self.build.mark(pairs.right[at]);
                    }
                }
            }
            if !self.spec.judges_left() && !self.spec.judges_right() && batch.selected() > 0 {
                return Ok(Some(settle(batch)));
            }
        }
    }

    /// Left rows without a partner, once the residual has seen all pairs of the batch.
    fn left_alone(&self, probe: &Probe) -> Option<Batch> {
        let alone: Vec<u32> = probe
            .rows
            .iter()
            .zip(&probe.matched)
            .filter(|(_, matched)| !**matched)
            .map(|(row, _)| *row)
            .collect();
        if alone.is_empty() {
            return None;
        }
        let mut columns: Vec<_> =
            probe.batch.columns.iter().map(|c| Arc::new(c.take(&alone))).collect();
        columns.extend(nulls(&self.spec.right.types, alone.len()));
        Some(Batch::new(columns, alone.len()))
    }

    /// The left rows that a semi, anti or mark join returns.
    fn left_kept(&self, mut probe: Probe) -> Option<Batch> {
        let wanted = self.spec.kind == JoinKind::Semi;
        let has_partner = |at: usize| match self.spec.residual {
            Some(_) => probe.matched[at],
            None => probe.groups[at] != NO_ROW,
        };
        if self.spec.kind.marks() {
            let len = probe.batch.rows;
            let (mut marks, mut validity) = (vec![false; len], Bitmap::filled(len, true));
            let mut any_null = false;
            for (at, row) in probe.rows.iter().enumerate() {
                marks[*row as usize] = has_partner(at);
                if !has_partner(at) && self.spec.kind == JoinKind::MarkIn && probe.unknown[at] {
                    validity.set(*row as usize, false);
                    any_null = true;
                }
            }
            let marks = Values::Bool(marks);
            probe.batch.columns.push(Arc::new(Vector::new(
                DataType::Boolean,
                marks,
                any_null.then_some(validity),
            )));
            return Some(probe.batch);
        }
        let kept: Vec<u32> = (0..probe.rows.len())
            .filter(|at| has_partner(*at) == wanted)
            .map(|at| probe.rows[at])
            .collect();
        if kept.is_empty() {
            return None;
        }
        probe.batch.selection = Some(kept);
        Some(settle(probe.batch))
    }

    /// The next right rows to return on their own, at most a vector; `None` at the end.
    pub fn right_alone(&mut self) -> Option<Batch> {
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
        let mut columns = if self.spec.judges_right() {
            Vec::new()
        } else {
            nulls(&self.spec.left.types, alone.len())
        };
        columns.extend(self.build.rows.take(&alone));
        Some(Batch::new(columns, alone.len()))
    }
}

/// The texts of a left column that taking rows copies.
fn copied_texts(column: &Vector) -> Option<&BytesColumn> {
    match column.form() {
        Form::Flat(Values::Bytes(texts)) => Some(texts),
        _ => None,
    }
}

#[cold]
fn more_than_one() -> Error {
    Error::type_error("a subquery used as a value has more than one row")
        .with_sqlstate("21000")
        .with_hint("add LIMIT 1 or an aggregate")
}

fn nulls(types: &[DataType], len: usize) -> Vec<Arc<Vector>> {
    types.iter().map(|t| Arc::new(Vector::constant(*t, &Value::Null, len))).collect()
}
