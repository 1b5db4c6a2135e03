//! Returns the first rows of a table in the order of a secondary index. Each segment's index part
//! is in that order, as are the rows in memory. These runs are merged, and rows are fetched and
//! filtered until there are enough.
//!
//! The number of rows to fetch is not known in advance. If it exceeds the cost of a scan, or the
//! rows do not fit in memory, they are sorted instead; none has been returned by then.

use crate::scan::index::Lookup;
use crate::scan::source::{Origin, PathsInMemory, SegmentReader};
use crate::scan::spec::ScanSpec;
use nacre_column::Batch;
use nacre_operator::buffer::RowBuffer;
use nacre_operator::context::Context;
use nacre_operator::expr::{self, ActiveRows};
use nacre_operator::memory::Reservation;
use nacre_operator::operator::protocol::{Operator, Rebuild};
use nacre_operator::sort::Sort;
use nacre_sql::expr::Expr;
use nacre_sql::plan::SortKey;
use nacre_sql::{IndexAccess, KeyOrder, index_keys};
use nacre_table::{IndexProbe, SegmentPlace, SegmentView, TableView};
use nacre_types::hash::Map;
use nacre_types::{DataType, Result, key, limits};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Minimum number of rows to fetch at a time.
const FIRST_ROWS: usize = 32;

/// The merge of the index's runs.
pub(in crate::scan) struct ByIndex {
    reader: SegmentReader,
    probes: Vec<IndexProbe>,
    runs: Vec<Run>,
    /// The keys of the runs' next rows.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// The columns of the order, as positions in the index.
    columns: Vec<usize>,
    /// Types of the index's columns.
    types: Vec<DataType>,
    descending: bool,
    view: TableView,
    /// The segments that rows were fetched from.
    opened: Map<SegmentPlace, SegmentView>,
    filters: Vec<Expr>,
    in_memory: PathsInMemory,
    /// Rows that passed, in order.
    rows: RowBuffer,
    held: Reservation,
    row_types: Vec<DataType>,
    want: usize,
    /// Maximum number of rows to fetch before falling back to a sort.
    most: usize,
    /// Rows fetched so far.
    seen: usize,
    /// The rows to fetch next, in order.
    places: Vec<Candidate>,
    /// How many rows to fetch next.
    at_once: usize,
    emitted: usize,
    stage: Stage,
    /// The fallback: the sort's keys, the scan, and the operator once it is needed.
    sort_keys: Vec<SortKey>,
    rebuild: Rebuild,
    fallback: Option<Box<dyn Operator>>,
}

/// How far the operator is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Collecting,
    /// The rows are to be sorted instead.
    FallingBack,
    Returning,
}

/// The rows of one segment, or in memory, that one probe found.
struct Run {
    probe: usize,
    /// Index of the run in the probe; `None` for rows in memory.
    segment: Option<usize>,
    at: usize,
    len: usize,
}

/// The next row in order: a row of a segment, or a row in memory that a probe found.
enum Candidate {
    Segment { segment: SegmentPlace, row: u32 },
    Memory { probe: usize, at: usize },
}

/// A request for the first rows in the order of an index.
pub(in crate::scan) struct Request<'a> {
    /// The index's position.
    pub index: usize,
    pub order: &'a KeyOrder,
    /// Number of rows needed.
    pub limit: u64,
}

/// Builds the operator; `None` if the index cannot produce the order, or too many rows would have
/// to be fetched. `rebuild` builds the operator of the scan without an order.
pub(in crate::scan) fn build(
    spec: ScanSpec<'_>,
    lookup: &Lookup<'_, '_>,
    request: &Request<'_>,
    rebuild: impl FnOnce() -> Rebuild,
) -> Result<Option<ByIndex>> {
    let ScanSpec { schema, filters, .. } = spec;
    let (view, context, order) = (lookup.view, lookup.context, request.order);
    let Some(want) = usize::try_from(request.limit).ok().filter(|want| *want <= lookup.most) else {
        return Ok(None);
    };
    let (Some(positions), Some(of_index)) =
        (lookup.positions(Some(request.index)), schema.indexes.get(request.index))
    else {
        return Ok(None);
    };
    if view.unindexed_rows(of_index.id)? > 0 {
        return Ok(None);
    }
    let keys = index_keys(spec.output(), filters, request.index);
    let Some(ranges) = lookup.ranges(&positions, &keys) else { return Ok(None) };
    let output = spec.output();
    let place =
        |at: &usize| positions.iter().position(|position| output.column(*at) == Some(*position));
    let Some(columns) = order.columns.iter().map(place).collect::<Option<Vec<usize>>>() else {
        return Ok(None);
    };
    // Each index column before the last one of the order must be in the order or fixed to one
    // value.
    let is_one = |at: usize| keys.equal.get(at).is_some_and(|equal| equal.len() == 1);
    let Some(last) = columns.last() else { return Ok(None) };
    if (0..*last).any(|at| !columns.contains(&at) && !is_one(at)) {
        return Ok(None);
    }
    let mut probes = Vec::with_capacity(ranges.len());
    for range in &ranges {
        probes.push(view.probe_index(of_index.id, range)?);
        context.statistics.index_probes.add(1);
    }
    context.statistics.note_index(of_index.name.clone());
    let row_types = spec.types();
    let mut by_index = ByIndex {
        reader: SegmentReader::new(spec, context),
        runs: Vec::new(),
        heads: BinaryHeap::new(),
        columns,
        types: positions.iter().map(|at| schema.key_column(*at).data_type).collect(),
        descending: order.descending,
        view: view.clone(),
        opened: Map::default(),
        filters: filters.to_vec(),
        in_memory: PathsInMemory::new(spec),
        rows: RowBuffer::new(&row_types),
        held: Reservation::default(),
        want,
        most: lookup.most,
        seen: 0,
        places: Vec::new(),
        at_once: FIRST_ROWS,
        emitted: 0,
        stage: Stage::Collecting,
        sort_keys: order.sort_keys(&row_types),
        row_types,
        rebuild: rebuild(),
        fallback: None,
        probes,
    };
    by_index.begin()?;
    context.statistics.runs.add(by_index.runs.len());
    Ok(Some(by_index))
}

impl ByIndex {
    fn begin(&mut self) -> Result<()> {
        for (probe, of_range) in self.probes.iter().enumerate() {
            let segments = of_range.runs.iter().enumerate().map(|(at, run)| (Some(at), run.len()));
            for (segment, len) in
                segments.chain([(None, of_range.memory_rows())]).filter(|(_, len)| *len > 0)
            {
                self.runs.push(Run { probe, segment, at: 0, len });
            }
        }
        for run in 0..self.runs.len() {
            let head = self.head(&self.runs[run])?;
            self.heads.push(Reverse((head, run)));
        }
        Ok(())
    }

    /// The position in the index of a run's next row.
    fn position(&self, run: &Run) -> usize {
        if self.descending { run.len - 1 - run.at } else { run.at }
    }

    /// The key of a run's next row, by the columns of the order.
    fn head(&self, run: &Run) -> Result<Vec<u8>> {
        let (probe, at) = (&self.probes[run.probe], self.position(run));
        let mut out = Vec::with_capacity(self.columns.len() * 9);
        match run.segment {
            Some(segment) => {
                for column in &self.columns {
                    key::append(
                        &mut out,
                        self.types[*column],
                        &probe.runs[segment].key_value(at, *column)?,
                    )?;
                }
            }
            None => {
                let parts: Vec<&[u8]> = key::parts(probe.memory_key(at), &self.types).collect();
                self.columns.iter().for_each(|column| out.extend_from_slice(parts[*column]));
            }
        }
        if self.descending {
            out.iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(out)
    }

    /// Finds the next rows in order, without deleted ones, until there are `count` places or the
    /// end is reached.
    fn find_candidates(&mut self, count: usize) -> Result<()> {
        while self.places.len() < count {
            let Some(Reverse((_, number))) = self.heads.peek() else { break };
            let number = *number;
            let run = &self.runs[number];
            let (probe, at) = (run.probe, self.position(run));
            let place = match run.segment {
                None => Some(Candidate::Memory { probe, at }),
                Some(segment) => {
                    let found = &self.probes[probe].runs[segment];
                    let rows = found.in_key_order(at, 1)?;
                    let segment = found.segment;
                    rows.first().map(|row| Candidate::Segment { segment, row: *row })
                }
            };
            let next = run.at + 1;
            let head = match next < run.len {
                true => Some(self.head(&Run { at: next, ..*run })?),
                false => None,
            };
            // Nothing is read from here on.
            self.runs[number].at = next;
            self.seen += 1;
            self.places.extend(place);
            self.heads.pop();
            self.heads.extend(head.map(|head| Reverse((head, number))));
        }
        Ok(())
    }

    /// Fetches the rows at the places and appends those that pass the filters, in order.
    fn pick(&mut self, context: &Context<'_>) -> Result<()> {
        let places = &self.places;
        let mut picked = RowBuffer::new(&self.row_types);
        // The ranks, in order, of the rows in `picked`.
        let mut ranks: Vec<usize> = Vec::new();
        let mut by_segment: Vec<(SegmentPlace, u32, usize)> = Vec::new();
        for (rank, place) in places.iter().enumerate() {
            match place {
                Candidate::Segment { segment, row } => by_segment.push((*segment, *row, rank)),
                Candidate::Memory { probe, at } => {
                    context.statistics.memory_rows.add(1);
                    let read = &self.in_memory.read;
                    let (batch, _) = self.probes[*probe].memory(*at, *at + 1, read)?;
                    let batch = self.in_memory.complete(batch, context)?;
                    let passed =
                        expr::filter_rows(&self.filters, &batch, ActiveRows::all(1), context)?;
                    if !passed.is_empty() {
                        picked.append(&batch, ActiveRows::all(1))?;
                        ranks.push(rank);
                    }
                }
            }
        }
        by_segment.sort_unstable();
        for of_one in by_segment.chunk_by(|a, b| a.0 == b.0) {
            let rows = of_one.iter().map(|(_, row, _)| *row).collect();
            let place = of_one[0].0;
            let view = self.opened.entry(place).or_insert_with(|| self.view.segment(place));
            let Some((batch, Origin::SegmentRows { rows, .. })) =
                self.reader.read_found(view, rows, context)?
            else {
                continue;
            };
            picked.append(&batch, ActiveRows::all(batch.rows))?;
            for row in rows {
                let at = of_one.partition_point(|(_, other, _)| *other < row);
                ranks.push(of_one[at].2);
            }
        }
        let mut order: Vec<u32> = (0..ranks.len() as u32).collect();
        order.sort_unstable_by_key(|at| ranks[*at as usize]);
        order.truncate(self.want - self.rows.rows());
        let batch = Batch::new(picked.take(&order), order.len());
        context.statistics.rows_read.add(places.len());
        self.places.clear();
        self.rows.append(&batch, ActiveRows::all(order.len()))
    }

    /// Fetches rows until there are enough. Returns false if that takes too many, or if they do not
    /// fit in memory.
    fn collect(&mut self, context: &Context<'_>) -> Result<bool> {
        while self.rows.rows() < self.want && !(self.heads.is_empty() && self.places.is_empty()) {
            context.give_way()?;
            if self.seen > self.most {
                return Ok(false);
            }
            let left = self.want - self.rows.rows();
            self.find_candidates(self.at_once.max(left).min(limits::VECTOR_ROWS))?;
            self.pick(context)?;
            if !self.held.try_resize(self.rows.memory_bytes(), context.memory) {
                return Ok(false);
            }
            self.at_once = (self.at_once * 2).min(limits::VECTOR_ROWS);
        }
        Ok(true)
    }
}

impl Operator for ByIndex {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if self.stage == Stage::Collecting {
            self.stage = match self.collect(context)? {
                true => Stage::Returning,
                false => Stage::FallingBack,
            };
        }
        if self.stage == Stage::FallingBack {
            self.rows = RowBuffer::new(&self.row_types);
            self.held.release();
            let rows = (self.rebuild)(context)?;
            let (keys, limit) = (self.sort_keys.clone(), Some(self.want as u64));
            self.fallback = Some(Box::new(Sort::new(rows, &self.row_types, keys, limit, None)));
            self.stage = Stage::Returning;
        }
        if let Some(fallback) = &mut self.fallback {
            return fallback.next(context);
        }
        let end = self.rows.rows().min(self.emitted + limits::VECTOR_ROWS);
        if self.emitted == end {
            return Ok(None);
        }
        let rows: Vec<u32> = (self.emitted as u32..end as u32).collect();
        self.emitted = end;
        Ok(Some(Batch::new(self.rows.take(&rows), rows.len())))
    }
}

/// Whether no other index could serve the filters.
pub(in crate::scan) fn is_alone(access: Option<&IndexAccess<'_>>, request: &Request<'_>) -> bool {
    match access {
        None => true,
        Some(IndexAccess::Keys(keys)) => keys.index == Some(request.index),
        Some(_) => false,
    }
}
