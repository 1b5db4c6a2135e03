//! Brings bytes of a table to the local disk, a few at a time, so that other statements' requests come between. Each
//! call of the operator asks for what is absent of a few megabytes: as a read that misses it, so that whatever
//! drives the operator fetches it, cancels it and reports how far it is.

use super::morsel::Morsel;
use super::source::{Locators, RowSource};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::{Batch, Vector};
use nacre_operator::context::Context;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::plan::Plan;
use nacre_sql::plan::node::warm_up::{WarmPart, WarmUp};
use nacre_table::{Misses, Segment, SegmentView, TableView};
use nacre_types::plant::{self, Bug};
use nacre_types::{DataType, Error, Result, Value, limits};
use std::ops::Range;
use std::sync::Arc;

/// Most bytes and ranges that are asked for at once: about half of the requests that a fetch may make.
const STEP_BYTES: u64 = 16 << 20;
const STEP_RANGES: usize = 4;

/// Builds the operator.
pub(crate) fn build_warm_up(node: &WarmUp, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    let mut input = &node.input;
    // What the scan does not test only leaves more to be brought.
    while let Plan::Filter { input: below, .. } = input {
        input = below;
    }
    let view = match (ScanSpec::of(input), input) {
        (Some(spec), _) => Some(view_of(&context.table_of(spec.schema)?, spec, context)),
        (None, Plan::Values { rows, .. }) if rows.is_empty() => None,
        _ => return Err(Error::unsupported("a subquery in WARM BLOB CACHE … WHERE")),
    };
    let (node, input) = (node.clone(), input.clone());
    Ok(Box::new(Warming {
        node,
        input,
        view,
        left: Vec::new(),
        fetched: 0,
        local: 0,
        is_done: false,
    }))
}

struct Warming {
    node: WarmUp,
    /// The scan.
    input: Plan,
    /// Until the files are chosen.
    view: Option<TableView>,
    /// In reverse order.
    left: Vec<FileToWarm>,
    fetched: u64,
    local: u64,
    is_done: bool,
}

/// What is left of a file.
struct FileToWarm {
    file: Arc<Segment>,
    /// In reverse order, none of more than [`STEP_BYTES`].
    ranges: Vec<Range<u64>>,
    /// Bytes of the next ranges that were absent when they were asked for.
    asked: Option<u64>,
    /// Rows that stand for it in the progress of the statement.
    rows: usize,
}

/// Segments, and blocks of them; all if `None`.
type Chosen = Vec<(SegmentView, Option<Vec<usize>>)>;

impl FileToWarm {
    fn new(file: &Arc<Segment>, ranges: Vec<Range<u64>>) -> FileToWarm {
        let mut cut: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            let starts = range.clone().step_by(STEP_BYTES as usize);
            cut.extend(starts.map(|at| at..range.end.min(at + STEP_BYTES)));
        }
        if plant::is(Bug::WarmShort) {
            cut.pop();
        }
        cut.reverse();
        FileToWarm { file: file.clone(), ranges: cut, asked: None, rows: file.rows() }
    }

    fn whole(file: &Arc<Segment>) -> FileToWarm {
        FileToWarm::new(file, std::iter::once(0..file.bytes()).collect())
    }

    /// The ranges to ask for next, ascending.
    fn step(&self) -> Vec<Range<u64>> {
        let mut bytes = 0;
        let fits = |range: &&Range<u64>| {
            bytes += range.end - range.start;
            bytes <= STEP_BYTES
        };
        self.ranges.iter().rev().take(STEP_RANGES).take_while(fits).cloned().collect()
    }
}

impl Warming {
    /// The segments and blocks that the filters leave.
    fn choose(&self, view: &TableView, context: &Context<'_>) -> Result<Chosen> {
        let spec = ScanSpec::of(&self.input).filter(|_| self.node.is_filtered);
        let Some(spec) = spec else {
            return Ok(view.segments().map(|segment| (segment, None)).collect());
        };
        let source = RowSource::new(spec, view.clone(), Locators::Leave, context);
        let morsels = source.morsels(limits::MAX_SEGMENT_ROWS, context)?;
        let blocks = |morsel| match morsel {
            Morsel::Blocks { view, blocks, .. } => Some((view, Some(blocks))),
            Morsel::Memory(_) | Morsel::Rows { .. } | Morsel::Batches(_) => None,
        };
        Ok(morsels.into_iter().filter_map(blocks).collect())
    }

    /// What is to be brought, file by file.
    fn plan(&self, view: &TableView, context: &Context<'_>) -> Result<Vec<FileToWarm>> {
        let chosen = self.choose(view, context)?;
        let mut left = Vec::new();
        let every: Vec<usize> = (0..self.node.table.columns.len()).collect();
        let columns = match &self.node.part {
            WarmPart::Table => Some(&every),
            WarmPart::Columns(columns) => Some(columns),
            WarmPart::Index(None) => self.node.table.primary_key.as_ref().map(|key| &key.columns),
            WarmPart::Index(Some(_)) => None,
        };
        let is_whole = self.node.part == WarmPart::Table && !self.node.is_filtered;
        Misses::each(&chosen, |(segment, blocks)| {
            let file = &segment.segment;
            if is_whole {
                left.push(FileToWarm::whole(file));
            } else if let Some(columns) = columns {
                let stored = |at: &usize| segment.columns.get(*at).copied().flatten();
                let stored: Vec<usize> = columns.iter().filter_map(stored).collect();
                left.push(FileToWarm::new(file, file.ranges(&stored, blocks.as_deref())?));
            }
            Ok(())
        })?;
        let is_wanted = |index| match &self.node.part {
            WarmPart::Table => is_whole,
            WarmPart::Index(wanted) => *wanted == index,
            WarmPart::Columns(_) => false,
        };
        let is_chosen = |id: u64| chosen.iter().any(|(segment, _)| segment.segment.id() == id);
        let files = view.index_files().into_iter().filter(|of| is_wanted(of.index));
        Misses::each(files, |of| {
            // Bytes of a segment's own file are among those of the segment.
            let is_own = of.segment == Some(of.file.id());
            if of.segment.is_some_and(|id| !is_chosen(id)) || is_whole && is_own {
                return Ok(());
            }
            left.push(match &of.columns {
                Some(columns) => FileToWarm::new(&of.file, of.file.ranges(columns, None)?),
                None => FileToWarm::whole(&of.file),
            });
            Ok(())
        })?;
        left.reverse();
        Ok(left)
    }

    /// Goes on to the next bytes of a file. Returns how many of the table's rows stand for those before, for the
    /// progress of the statement; `None` at the end.
    ///
    /// # Errors
    /// The bytes to be brought.
    fn bring(&mut self) -> Result<Option<usize>> {
        let Some(left) = self.left.last_mut() else { return Ok(None) };
        let step = left.step();
        let bytes: u64 = step.iter().map(|range| range.end - range.start).sum();
        if left.asked.is_none()
            && let Some(missing) = left.file.absent(&step)?
        {
            let absent: u64 = missing.ranges.iter().map(|range| range.end - range.start).sum();
            debug_assert!(absent > 0 && absent <= bytes, "{absent} of {bytes} bytes are absent");
            left.asked = Some(absent);
            return Err(Error::to_warm(missing));
        }
        let fetched = left.asked.take().unwrap_or(0);
        self.fetched += fetched;
        self.local += bytes - fetched;
        left.ranges.truncate(left.ranges.len() - step.len());
        let rows = left.rows / (left.ranges.len() + 1);
        left.rows -= rows;
        if left.ranges.is_empty() {
            self.left.pop();
        }
        Ok(Some(rows))
    }
}

impl Operator for Warming {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.give_way()?;
        if let Some(view) = &self.view {
            self.left = context.counted(|context| self.plan(view, context))?;
            self.view = None;
        }
        if self.is_done {
            return Ok(None);
        }
        while let Some(rows) = self.bring()? {
            context.statistics.rows_read.add(rows);
            context.give_way()?;
        }
        self.is_done = true;
        let count = |bytes: u64| {
            let bytes = Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
            Arc::new(Vector::from_values(DataType::Int64, [&bytes]))
        };
        Ok(Some(Batch::new(vec![count(self.fetched), count(self.local)], 1)))
    }
}
