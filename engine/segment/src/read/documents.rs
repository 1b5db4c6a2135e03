//! Reading shredded documents: one by seeks of its sub-columns, or the documents of a range of rows
//! from decoded ones.

use super::address::BlockAddress;
use super::document_source::{Cached, Decoded, Loaded};
use super::opened::{DOCUMENT_ONE_IN, Opened};
use nacre_column::{Scalar, Vector, VectorBuilder};
use nacre_format::column::PathMeta;
use nacre_format::document::{DocumentStep, Kind, Schema, Source, assemble};
use nacre_format::footer::{DocumentEntry, PartOf};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, Error, Result, Value};
use std::cmp::Ordering;
use std::ops::Range;

/// Up to this many elements of arrays are read one by one.
const FEW_ROWS: usize = 8;

/// A column of documents.
#[derive(Clone, Copy)]
pub(super) struct Documents<'a> {
    pub(super) opened: &'a Opened,
    pub(super) column: usize,
    pub(super) entry: &'a DocumentEntry,
}

impl Opened {
    /// The documents of a column; `None` if its values are in its blocks.
    #[inline]
    pub(super) fn documents(&self, column: usize) -> Option<Documents<'_>> {
        let entry = self.columns[column].document.as_deref()?;
        debug_assert!(self.columns[column].part.is_none(), "documents in a sub-column");
        Some(Documents { opened: self, column, entry })
    }

    /// The sub-columns of a column, for reports.
    pub fn paths(&self, column: usize) -> Vec<PathMeta> {
        let Some(documents) = self.documents(column) else { return Vec::new() };
        let parts = self.columns.iter().skip(documents.entry.first);
        let of_column = parts.filter_map(|entry| Some((entry, entry.part?)));
        of_column
            .take_while(|(_, part)| part.parent == column)
            .map(|(entry, part)| PathMeta {
                path: documents.schema().path(part.node),
                kind: part.kind.name(),
                rows: entry.rows as u64,
                encoding: entry.meta.encoding,
                bytes: entry.meta.bytes,
            })
            .collect()
    }

    /// A sub-column in messages: its path, and what it has of it.
    pub(super) fn part_name(&self, part: PartOf) -> String {
        let document = self.columns[part.parent].document.as_ref();
        debug_assert!(document.is_some(), "a sub-column of a column without documents");
        let path = document.map(|document| document.schema.path(part.node)).unwrap_or_default();
        format!("{path} ({})", part.kind.name())
    }
}

impl Documents<'_> {
    pub(super) fn schema(&self) -> &Schema {
        &self.entry.schema
    }

    /// The document in a row, or null.
    pub fn get(&self, row: usize) -> Result<Value> {
        self.text(row, String::new()).map(|text| text.map_or(Value::Null, Value::Json))
    }

    /// The same as a scalar.
    pub fn scalar(&self, row: usize) -> Result<Scalar<'static>> {
        let text = self.text(row, String::new())?;
        Ok(text.map_or(Scalar::Null, |text| Scalar::Bytes(text.into_bytes().into())))
    }

    /// Retains those of the rows whose document equals `value`.
    pub fn retain_equal(&self, value: &Value, rows: &mut Vec<u32>) -> Result<()> {
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            if self.scalar(*row as usize)?.compare(value) == Some(Ordering::Equal) {
                kept.push(*row);
            }
        }
        *rows = kept;
        Ok(())
    }

    /// Appends the document in a row to a text; `None` if the row is null.
    fn text(&self, row: usize, out: String) -> Result<Option<String>> {
        if row >= self.opened.rows() {
            return Err(Error::corrupt(format!("segment {} has no row {row}", self.opened.name())));
        }
        {
            // Everything is read under one pin.
            let pages = self.opened.slots.pin();
            let count = self.schema().columns();
            let cached = Cached::new(self.opened, &pages, self.entry.first, count);
            let found = match cached.value(self.column, row) {
                Ok(Scalar::Null) => return Ok(None),
                Ok(_) => assemble(self.schema(), &cached, (0, row), String::new()),
                Err(error) => Err(error),
            };
            match found {
                Ok(text) => return Ok(Some(out + &text)),
                Err(error) if !cached.missed() => return Err(self.located(error, row)),
                Err(_) => {}
            }
        }
        let Some(read) = self.read(row)? else { return Ok(None) };
        match assemble(self.schema(), &read, (0, row), out) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(self.located(error, row)),
        }
    }

    /// Reads what the document in a row takes, of blocks that are not all in memory; `None` if the
    /// row is null. Rows of long blocks are read by parts where a row of a column would be.
    fn read(&self, row: usize) -> Result<Option<Decoded>> {
        let schema = self.schema();
        let mut columns = vec![None; schema.columns()];
        let mut spaces: Vec<Range<usize>> = vec![0..0; schema.nodes.len()];
        for wave in of_waves(schema) {
            for nodes in wave {
                let root = nodes[0];
                let rows = match schema.nodes[root].step {
                    DocumentStep::Element => {
                        let parent = schema.nodes[root].parent as usize;
                        self.elements_of(parent, &spaces[parent], &columns)?
                    }
                    _ => row..row + 1,
                };
                nodes.iter().for_each(|node| spaces[*node] = rows.clone());
                if !self.read_rows(&nodes, rows, &mut columns)? {
                    return Ok(None);
                }
            }
        }
        let nothing = |column| (0, column);
        let empty = || Vector::constant(DataType::Null, &Value::Null, 0);
        let column = |column: Option<(usize, Vector)>| column.unwrap_or_else(|| nothing(empty()));
        Ok(Some(Decoded(columns.into_iter().map(column).collect())))
    }

    /// Reads rows of the sub-columns of nodes that share them. `false` if the row of the column
    /// itself is null.
    fn read_rows(
        &self,
        nodes: &[usize],
        rows: Range<usize>,
        out: &mut [Option<(usize, Vector)>],
    ) -> Result<bool> {
        debug_assert!(
            nodes.iter().all(|node| self.schema().nodes[*node].rows >= rows.end),
            "nodes that do not share rows"
        );
        let of_nodes = nodes.iter().flat_map(|node| self.schema().nodes[*node].columns());
        let columns: Vec<usize> = of_nodes.map(|(_, column)| column).collect();
        if rows.len() > FEW_ROWS {
            for column in columns {
                let entry = self.entry.first + column;
                let vector = self.opened.decode_blocks(entry, rows.start, rows.end)?;
                out[column] = Some((rows.start, vector));
            }
            return Ok(true);
        }
        // The column itself says whether the document is null.
        let own = (nodes[0] == 0).then_some(self.column);
        let entries = columns.iter().map(|column| self.entry.first + column);
        let entries: Vec<Option<usize>> = own.into_iter().chain(entries).map(Some).collect();
        let mut builders: Vec<VectorBuilder> = columns
            .iter()
            .map(|at| VectorBuilder::new(self.opened.columns[self.entry.first + at].meta.data_type))
            .collect();
        for row in rows.clone() {
            let mut values = Vec::with_capacity(entries.len());
            let absent = &|_| Value::Null;
            self.opened.values_from_file(row, &entries, 0, absent, &mut values)?;
            if own.is_some() && values[0].is_null() {
                return Ok(false);
            }
            let values = &values[usize::from(own.is_some())..];
            builders.iter_mut().zip(values).for_each(|(builder, value)| builder.push(value));
        }
        for (column, builder) in columns.into_iter().zip(builders) {
            out[column] = Some((rows.start, builder.finish()));
        }
        Ok(true)
    }

    /// The elements of the arrays in rows of a node, of which the sub-columns were read.
    fn elements_of(
        &self,
        node: usize,
        rows: &Range<usize>,
        read: &[Option<(usize, Vector)>],
    ) -> Result<Range<usize>> {
        let node = &self.schema().nodes[node];
        let number = |kind: Kind, row: usize| {
            let (first, vector) = read.get(node.column(kind)?)?.as_ref()?;
            match vector.value(row.checked_sub(*first)?) {
                Value::Int(number) => usize::try_from(number).ok(),
                _ => Some(0),
            }
        };
        let (Some(last), Some(element)) = (rows.clone().next_back(), node.element) else {
            return Ok(0..0);
        };
        if node.column(Kind::Start).is_none() {
            return Ok(0..0);
        }
        let start = number(Kind::Start, rows.start);
        let end = number(Kind::Start, last).zip(number(Kind::Length, last)).map(|(a, b)| a + b);
        let count = self.schema().nodes[element as usize].rows;
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= count => Ok(start..end),
            _ => Err(self.located(Error::corrupt("elements that are not there"), 0)),
        }
    }

    #[cold]
    pub(super) fn located(&self, error: Error, row: usize) -> Error {
        match error.is_pause() {
            true => error,
            false => self.opened.locate_block(error, self.column, row / BLOCK_ROWS),
        }
    }

    /// Decodes the documents of a range of rows.
    pub fn decode(&self, start: usize, len: usize) -> Result<Vector> {
        debug_assert!(start + len <= self.opened.rows(), "documents {start}+{len}");
        debug_assert_eq!(
            self.schema().nodes[0].rows,
            self.opened.rows(),
            "rows of the root and of the segment"
        );
        let mut out = VectorBuilder::new(DataType::Json);
        let (mut at, end) = (start, start + len);
        let mut text = String::new();
        while at < end {
            // A block at a time: decoded sub-columns take several times the memory of documents.
            let stop = ((at / BLOCK_ROWS + 1) * BLOCK_ROWS).min(end);
            let present = self.opened.decode_blocks(self.column, at, stop)?;
            let decoded = self.decoded(at..stop, None)?;
            for row in at..stop {
                if present.is_null(row - at) {
                    out.push_null();
                    continue;
                }
                text.clear();
                text = assemble(self.schema(), &decoded, (0, row), text)
                    .map_err(|error| self.located(error, row))?;
                out.push_bytes(text.as_bytes());
            }
            at = stop;
        }
        Ok(out.finish())
    }

    /// The documents at ascending rows, which may repeat.
    pub fn take(&self, rows: &[u32]) -> Result<Vector> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let mut out = VectorBuilder::new(DataType::Json);
        let block_of = |row: &u32| *row as usize / BLOCK_ROWS;
        for run in rows.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let start = block_of(&run[0]) * BLOCK_ROWS;
            let len = self.opened.block_rows(start / BLOCK_ROWS);
            if run.len() * DOCUMENT_ONE_IN > len {
                let first = run[0] as usize;
                let last = run[run.len() - 1] as usize;
                let decoded = self.decode(first, last + 1 - first)?;
                for row in run {
                    match decoded.bytes(*row as usize - first) {
                        Some(text) => out.push_bytes(text),
                        None => out.push_null(),
                    }
                }
                continue;
            }
            for row in run {
                match self.text(*row as usize, String::new())? {
                    Some(text) => out.push_bytes(text.as_bytes()),
                    None => out.push_null(),
                }
            }
        }
        Ok(out.finish())
    }

    /// Appends where the sub-columns have a block of the rows of the segment.
    pub fn put_places(&self, block: usize, out: &mut Vec<BlockAddress>) {
        debug_assert!(block < self.opened.blocks(), "block {block} of documents");
        let schema = self.schema();
        let waves = waves(schema);
        for (at, node) in schema.nodes.iter().enumerate().filter(|(at, _)| waves[*at] == 0) {
            debug_assert!(node.rows == self.opened.rows(), "rows of node {at}");
            for (_, column) in node.columns() {
                self.opened.put_places(self.entry.first + column, block, out);
            }
        }
    }

    /// Loads all blocks that the documents of a range of rows take.
    pub fn load(&self, rows: Range<usize>) -> Result<()> {
        self.spaces(rows, None).map(drop)
    }

    /// The rows of every node that the documents of a range of rows take; none of nodes that are
    /// not `within`. Loads their blocks: first those of the segment's rows, then those of elements,
    /// of the elements of these, and so on, with one read each.
    fn spaces(&self, rows: Range<usize>, within: Option<&[bool]>) -> Result<Vec<Range<usize>>> {
        debug_assert!(rows.end <= self.opened.rows(), "documents {rows:?}");
        let schema = self.schema();
        let waves = waves(schema);
        let last = waves.iter().max().copied().unwrap_or(0);
        let mut spaces = vec![0..0; schema.nodes.len()];
        spaces[0] = rows;
        let is_within = |at: usize| within.is_none_or(|within| within[at]);
        for wave in 0..=last {
            let mut places = Vec::new();
            for (at, node) in schema.nodes.iter().enumerate().filter(|(at, _)| waves[*at] == wave) {
                if at > 0 {
                    let parent = node.parent as usize;
                    spaces[at] = match node.step {
                        DocumentStep::Element if is_within(at) => {
                            self.elements(parent, &spaces[parent])?
                        }
                        DocumentStep::Element => 0..0,
                        _ => spaces[parent].clone(),
                    };
                }
                // The row after the range says where its elements end.
                let end = (spaces[at].end + 1).min(node.rows);
                let is_read = is_within(at) && !spaces[at].is_empty();
                for (_, column) in node.columns().filter(|_| is_read) {
                    for block in spaces[at].start / BLOCK_ROWS..end.div_ceil(BLOCK_ROWS) {
                        self.opened.put_places(self.entry.first + column, block, &mut places);
                    }
                }
            }
            self.opened.load_uncached(places)?;
        }
        Ok(spaces)
    }

    /// The elements of the arrays in a range of rows of a node.
    fn elements(&self, node: usize, rows: &Range<usize>) -> Result<Range<usize>> {
        let node = &self.schema().nodes[node];
        let (Some(starts), Some(element)) = (node.column(Kind::Start), node.element) else {
            return Ok(0..0);
        };
        if rows.is_empty() {
            return Ok(0..0);
        }
        let count = self.schema().nodes[element as usize].rows;
        let source = Loaded { opened: self.opened, first: self.entry.first };
        let at = |row: usize| match row == node.rows {
            true => Ok(count),
            false => match source.get(starts, row)? {
                Scalar::I64(start) if (0..=count as i64).contains(&start) => Ok(start as usize),
                _ => Err(self.located(Error::corrupt("elements that are not there"), 0)),
            },
        };
        let found = at(rows.start)?..at(rows.end)?;
        match found.start <= found.end {
            true => Ok(found),
            false => Err(self.located(Error::corrupt("starts of arrays out of order"), 0)),
        }
    }

    /// Decodes what the documents of a range of rows take, of nodes that are `within`.
    pub(super) fn decoded(&self, rows: Range<usize>, within: Option<&[bool]>) -> Result<Decoded> {
        let spaces = self.spaces(rows, within)?;
        let mut columns = Vec::with_capacity(self.schema().columns());
        for (at, (node, mut space)) in self.schema().nodes.iter().zip(spaces).enumerate() {
            if within.is_some_and(|within| !within[at]) {
                space.end = space.start;
            }
            for (_, column) in node.columns() {
                debug_assert_eq!(column, columns.len(), "sub-columns in order");
                let column = self.entry.first + column;
                let vector = self.opened.decode_blocks(column, space.start, space.end)?;
                columns.push((space.start, vector));
            }
        }
        Ok(Decoded(columns))
    }
}

/// In how many arrays the rows of each node are.
fn waves(schema: &Schema) -> Vec<usize> {
    let mut waves = vec![0; schema.nodes.len()];
    for (at, node) in schema.nodes.iter().enumerate().skip(1) {
        waves[at] = waves[node.parent as usize] + usize::from(node.step == DocumentStep::Element);
    }
    waves
}

/// The nodes by the number of arrays that they are in, and then by the rows that they share. The
/// first one of those that share rows is the root or has elements.
fn of_waves(schema: &Schema) -> Vec<Vec<Vec<usize>>> {
    let waves = waves(schema);
    let mut of_waves: Vec<Vec<Vec<usize>>> = Vec::new();
    // The place of those that share the rows of each node.
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (at, node) in schema.nodes.iter().enumerate() {
        let wave = waves[at];
        of_waves.resize_with(of_waves.len().max(wave + 1), Vec::new);
        let place = match node.step {
            DocumentStep::Key(_) => places[node.parent as usize],
            DocumentStep::Root | DocumentStep::Element => {
                of_waves[wave].push(Vec::new());
                (wave, of_waves[wave].len() - 1)
            }
        };
        of_waves[place.0][place.1].push(at);
        places.push(place);
    }
    of_waves
}
