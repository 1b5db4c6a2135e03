//! Reading what is at one path of the documents of a column, without the documents: only
//! sub-columns on the way to it and below it.
//!
//! A path goes from node to node as far as there are nodes. What its values are is in the
//! sub-columns of the last one, of which at most one has a value in a row. Where values of the way
//! are text, or the next key has no node, the text is returned instead, with the number of steps
//! that lead to it: the caller evaluates the others. So every row has a value in at most one of the
//! parts that a read returns.

use super::cache::Purpose;
use super::document_source::Loaded;
use super::documents::Documents;
use super::opened::Opened;
use super::segment::Segment;
use nacre_column::{Scalar, Values, Vector, VectorBuilder};
use nacre_format::document::{DocumentNode, DocumentStep, Kind, Schema, Source, assemble};
use nacre_types::json::quoted;
use nacre_types::{DataType, Error, Result, Value};
use std::ops::Range;

/// A step of a path that names one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The member of an object with this key.
    Key(String),
    /// The element of an array with this index: from 0 on, or from the end, of which -1 is the
    /// last.
    Index(i64),
    /// A member of an object or, if the text is an index, an element of an array.
    Either(String, i64),
}

/// How values at a path are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// Numbers that are written as 64-bit integers are.
    Integer,
    /// Numbers that are written as doubles are.
    Double,
    /// The characters of strings.
    String,
    /// `true` and `false`.
    Boolean,
    /// Values of any kind, as JSON.
    Json,
}

/// Which values at a path are read, and how.
#[derive(Clone, Copy, Debug)]
pub struct PathNeed {
    /// Forms that are read by themselves.
    pub forms: &'static [PathForm],
    /// Whether scalars of other forms are read, as JSON.
    pub scalars: bool,
    /// Whether objects and arrays are read, as JSON.
    pub containers: bool,
    /// Whether nulls are read, as JSON; otherwise they are as if nothing was there.
    pub nulls: bool,
}

/// Rows of a segment.
#[derive(Clone, Debug)]
pub enum PathRows<'a> {
    /// A range inside one block.
    Range(Range<usize>),
    /// Single rows, ascending.
    Single(&'a [u32]),
}

/// Values of one form: one for each row, and null where there is none.
#[derive(Debug)]
pub struct PathPart {
    /// Their form.
    pub form: PathForm,
    /// How many steps of the path lead to them.
    pub steps: usize,
    /// The values.
    pub values: Vector,
}

/// Where a segment has what is at a path.
#[derive(Debug)]
pub struct PathPlace {
    column: usize,
    /// The nodes that steps lead to, from the root on; with the index of an element.
    way: Vec<(usize, Option<i64>)>,
    end: End,
    /// The sub-columns of the last node that have one form each.
    forms: Vec<(PathForm, usize)>,
    /// Whether all values are in the last node, in rows of the segment, and none of them is text.
    is_plain: bool,
    has_containers: bool,
    /// The sub-columns of the way that have the rows of the segment.
    columns: Vec<usize>,
    bytes: u64,
}

/// Why a way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All steps are made.
    Found,
    /// The next step leads to no node.
    Rest,
    /// The next step may mean two things: the values of the last node are read as text.
    Text,
}

impl PathPlace {
    /// The columns that have all values at the path, in rows of the segment, for reading them
    /// without containers or with them; `None` if some are elsewhere.
    pub fn columns(&self, with_containers: bool) -> Option<&[(PathForm, usize)]> {
        let is_whole = self.is_plain && !(with_containers && self.has_containers);
        is_whole.then_some(&self.forms[..])
    }

    /// The columns with the rows of the segment of which most reads take blocks.
    pub fn block_columns(&self) -> &[usize] {
        &self.columns
    }

    /// About how many bytes of the file have its values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Segment {
    /// Where the values at a path of a column of JSON are; `None` if it is stored as text.
    pub fn find_path(&self, column: usize, steps: &[PathStep]) -> Result<Option<PathPlace>> {
        debug_assert!(!steps.is_empty(), "a path without steps");
        Ok(self.opened()?.documents(column).map(|documents| documents.find_path(0, steps)))
    }

    /// Where the values at a path in the elements of arrays are, which are at a place: in rows of
    /// elements. `None` if no arrays are there.
    pub fn find_in_elements(
        &self,
        arrays: &PathPlace,
        steps: &[PathStep],
    ) -> Result<Option<PathPlace>> {
        let opened = self.opened()?;
        let Some(documents) = opened.documents(arrays.column) else { return Ok(None) };
        let element = documents.element_of(arrays);
        Ok(element.map(|element| documents.find_path(element, steps)))
    }

    /// The rows of the elements of the arrays at a place, for the `selected` ones of some rows;
    /// `None` for a value that is no array. `None` for all if the place has none, or if some of
    /// them may be in text.
    pub fn arrays(
        &self,
        place: &PathPlace,
        rows: &PathRows<'_>,
        selected: &[u32],
    ) -> Result<Option<Vec<Option<Range<u32>>>>> {
        let opened = self.opened()?;
        match opened.documents(place.column) {
            Some(documents) => documents.arrays(place, rows, selected),
            None => Ok(None),
        }
    }

    /// A column whose nulls are the documents that are null.
    pub fn read_presence(&self, place: &PathPlace, rows: &PathRows<'_>) -> Result<Vector> {
        self.opened()?.documents_present(place.column, rows)
    }

    /// Reads what is at a path in some rows, as far as it is needed.
    pub fn read_path(
        &self,
        place: &PathPlace,
        need: PathNeed,
        rows: &PathRows<'_>,
    ) -> Result<Vec<PathPart>> {
        let opened = self.opened()?;
        match opened.documents(place.column) {
            Some(documents) => documents.read_path(place, need, rows),
            None => Err(Error::corrupt("documents that are not there")),
        }
    }
}

/// The form of a kind of values that has one.
fn form_of(kind: Kind) -> Option<PathForm> {
    Some(match kind {
        Kind::Integer => PathForm::Integer,
        Kind::Double => PathForm::Double,
        Kind::String => PathForm::String,
        Kind::Boolean => PathForm::Boolean,
        _ => return None,
    })
}

/// Rows of the nodes that share them.
enum Places<'a> {
    Range(Range<usize>),
    Single(&'a [u32]),
    /// Rows, and the positions that each has in the result.
    Some(Vec<u32>, Vec<u32>),
}

impl<'a> Places<'a> {
    fn of(rows: &PathRows<'a>) -> Places<'a> {
        match rows {
            PathRows::Range(range) => Places::Range(range.clone()),
            PathRows::Single(rows) => Places::Single(rows),
        }
    }

    fn len(&self) -> usize {
        match self {
            Places::Range(range) => range.len(),
            Places::Single(rows) => rows.len(),
            Places::Some(rows, _) => rows.len(),
        }
    }

    fn row(&self, at: usize) -> usize {
        match self {
            Places::Range(range) => range.start + at,
            Places::Single(rows) => rows[at] as usize,
            Places::Some(rows, _) => rows[at] as usize,
        }
    }

    /// The position of a row in the result.
    fn position(&self, at: usize) -> u32 {
        match self {
            Places::Some(_, positions) => positions[at],
            _ => at as u32,
        }
    }

    /// A value for each row of the result.
    fn spread(&self, values: Vector, count: usize) -> Vector {
        let Places::Some(_, positions) = self else { return values };
        let (data_type, none) = (values.data_type(), values.len() as u32);
        debug_assert_eq!(values.len(), positions.len(), "a position for each value");
        let mut from = vec![none; count];
        positions.iter().zip(0..).for_each(|(position, at)| from[*position as usize] = at);
        let null = Vector::constant(data_type, &Value::Null, 1);
        Vector::concat(data_type, vec![values, null]).take(&from)
    }
}

/// The node of a key of the objects at a node.
fn member(schema: &Schema, parent: usize, key: &str) -> Option<usize> {
    let key = quoted(key);
    let is_it = |(at, node): (usize, &DocumentNode)| {
        at > 0
            && node.parent as usize == parent
            && matches!(&node.step, DocumentStep::Key(own) if **own == *key)
    };
    schema.nodes.iter().enumerate().position(is_it)
}

impl Documents<'_> {
    fn find_path(&self, root: usize, steps: &[PathStep]) -> PathPlace {
        let schema = self.schema();
        debug_assert!(root < schema.nodes.len(), "a path from node {root}");
        let (mut way, mut end) = (vec![(root, None)], End::Found);
        let mut at = root;
        for step in steps {
            let node = &schema.nodes[at];
            let (has_objects, has_arrays) =
                (node.column(Kind::Shape).is_some(), node.column(Kind::Length).is_some());
            let (key, index) = match step {
                PathStep::Key(key) => (Some(key), None),
                PathStep::Index(index) => (None, Some(*index)),
                PathStep::Either(key, index) => (Some(key), Some(*index)),
            };
            let next = match (key.filter(|_| has_objects), index.filter(|_| has_arrays)) {
                (Some(_), Some(_)) => {
                    end = End::Text;
                    break;
                }
                (Some(key), None) => member(schema, at, key).map(|node| (node, None)),
                (None, index) => node.element.zip(index).map(|(e, i)| (e as usize, Some(i))),
            };
            let Some(next) = next else {
                end = End::Rest;
                break;
            };
            at = next.0;
            way.push(next);
        }
        debug_assert_eq!(end == End::Found, way.len() == steps.len() + 1, "a node for each step");
        let (mut forms, mut has_containers) = (Vec::new(), false);
        let mut is_plain =
            root == 0 && end != End::Text && way.iter().all(|(_, index)| index.is_none());
        let last = way.len() - 1;
        let (mut bytes, mut below) = (0, vec![false; schema.nodes.len()]);
        let (mut columns, mut is_inside) = (Vec::new(), root != 0);
        for (step, (node, index)) in way.iter().enumerate() {
            is_inside |= index.is_some();
            let is_found = step == last && end == End::Found;
            for (kind, column) in schema.nodes[*node].columns() {
                let entry = self.entry.first + column;
                let is_read = match kind {
                    Kind::Other => true,
                    Kind::Rest => step == last && end == End::Rest,
                    Kind::Length | Kind::Start => {
                        is_found || way.get(step + 1).is_some_and(|(_, index)| index.is_some())
                    }
                    Kind::Shape => is_found,
                    _ => step == last && end != End::Rest,
                };
                if !is_read {
                    continue;
                }
                bytes += self.opened.columns[entry].meta.bytes;
                let is_container = matches!(kind, Kind::Shape | Kind::Length | Kind::Start);
                if !(is_inside || is_found && is_container) {
                    columns.push(entry);
                }
                is_plain &= !matches!(kind, Kind::Other | Kind::Rest);
                has_containers |= is_found && matches!(kind, Kind::Shape | Kind::Length);
                forms.extend(form_of(kind).filter(|_| is_found).map(|form| (form, entry)));
            }
        }
        below[at] = end != End::Rest;
        for (child, node) in schema.nodes.iter().enumerate().skip(at + 1) {
            below[child] = below[node.parent as usize];
            if below[child] {
                let columns = node.columns().map(|(_, column)| self.entry.first + column);
                bytes += columns.map(|at| self.opened.columns[at].meta.bytes).sum::<u64>();
            }
        }
        let column = self.column;
        PathPlace { column, way, end, forms, is_plain, has_containers, columns, bytes }
    }

    /// The node of the elements of the arrays at a place whose rows are those of the segment.
    fn element_of(&self, place: &PathPlace) -> Option<usize> {
        let is_direct = place.end == End::Found && place.way.iter().all(|(_, at)| at.is_none());
        let (node, _) = place.way.last().filter(|_| is_direct && place.way[0].0 == 0)?;
        let node = &self.schema().nodes[*node];
        node.element.filter(|_| node.column(Kind::Start).is_some()).map(|element| element as usize)
    }

    fn arrays(
        &self,
        place: &PathPlace,
        rows: &PathRows<'_>,
        selected: &[u32],
    ) -> Result<Option<Vec<Option<Range<u32>>>>> {
        let schema = self.schema();
        let Some(element) = self.element_of(place) else { return Ok(None) };
        let at = Places::of(rows);
        debug_assert!(selected.is_sorted(), "arrays of selected rows in their order");
        for (node, _) in &place.way {
            if let Some(other) = schema.nodes[*node].column(Kind::Other) {
                let texts = self.values_at(other, &at)?;
                if selected.iter().any(|row| !texts.is_null(*row as usize)) {
                    return Ok(None);
                }
            }
        }
        let node = &schema.nodes[place.way[place.way.len() - 1].0];
        let missing = || self.located(Error::corrupt("elements that are not there"), 0);
        let columns = node.column(Kind::Start).zip(node.column(Kind::Length));
        let (start, length) = columns.ok_or_else(missing)?;
        let (starts, lengths) = (self.values_at(start, &at)?, self.values_at(length, &at)?);
        let count = schema.nodes[element].rows;
        let (of_starts, of_lengths) = (starts.flat(), lengths.flat());
        let (Values::I64(of_starts), Values::I64(of_lengths)) = (&*of_starts, &*of_lengths) else {
            return Err(missing());
        };
        let array = |row: &u32| {
            let row = *row as usize;
            if lengths.is_null(row) {
                return Ok(None);
            }
            let (start, length) = (of_starts[row], of_lengths[row]);
            let end = start.checked_add(length).filter(|_| start >= 0 && length >= 0);
            let end = end.filter(|end| *end as u64 <= count as u64).ok_or_else(missing)?;
            Ok(Some(start as u32..end as u32))
        };
        selected.iter().map(array).collect::<Result<Vec<_>>>().map(Some)
    }

    fn read_path(
        &self,
        place: &PathPlace,
        need: PathNeed,
        rows: &PathRows<'_>,
    ) -> Result<Vec<PathPart>> {
        let schema = self.schema();
        debug_assert!(
            place.way.iter().all(|(node, _)| *node < schema.nodes.len()),
            "a place of another segment"
        );
        let mut at = Places::of(rows);
        let (count, last) = (at.len(), place.way.len() - 1);
        let mut parts = Vec::new();
        let mut add = |form, steps, at: &Places<'_>, values| {
            parts.push(PathPart { form, steps, values: at.spread(values, count) });
        };
        for (steps, (node, index)) in place.way.iter().enumerate() {
            if let Some(index) = index {
                at = self.element_places(place.way[steps - 1].0, *index, &at)?;
            }
            let node = &schema.nodes[*node];
            if (steps < last || place.end == End::Rest)
                && let Some(other) = node.column(Kind::Other)
            {
                add(PathForm::Json, steps, &at, self.values_at(other, &at)?);
            }
        }
        let (node, index) = place.way[last];
        let of_node = &schema.nodes[node];
        if place.end == End::Rest {
            if let Some(rest) = of_node.column(Kind::Rest) {
                add(PathForm::Json, last, &at, self.values_at(rest, &at)?);
            }
            return Ok(parts);
        }
        // Kinds that are read as JSON.
        let mut kinds: Vec<Kind> = Vec::new();
        for (kind, column) in of_node.columns() {
            match (form_of(kind), place.end) {
                (Some(form), End::Found) if need.forms.contains(&form) => {
                    add(form, last, &at, self.values_at(column, &at)?);
                }
                (Some(_), End::Found) if !need.scalars => {}
                (None, End::Found) if !need.containers && kind != Kind::Other => {}
                _ if matches!(kind, Kind::Start | Kind::Rest) => {}
                _ => kinds.push(kind),
            }
        }
        let nulls = need.nulls && place.end == End::Found;
        if let ([Kind::Other], false, Some(other)) =
            (&kinds[..], nulls, of_node.column(Kind::Other))
        {
            add(PathForm::Json, last, &at, self.values_at(other, &at)?);
        } else if nulls || !kinds.is_empty() {
            let present = match (nulls, index) {
                (false, _) => None,
                (true, index) if index.is_some() || last == 0 => Some(vec![true; at.len()]),
                (true, _) => Some(self.present(node, &at)?),
            };
            add(PathForm::Json, last, &at, self.texts(node, &kinds, present, &at)?);
        }
        Ok(parts)
    }

    /// Values of a sub-column.
    fn values_at(&self, column: usize, at: &Places<'_>) -> Result<Vector> {
        let entry = self.entry.first + column;
        debug_assert!(
            at.len() == 0 || at.row(at.len() - 1) < self.opened.columns[entry].rows,
            "rows of a sub-column of {}",
            self.opened.columns[entry].rows
        );
        match at {
            Places::Range(range) => self.opened.decode_blocks(entry, range.start, range.end),
            Places::Single(rows) => self.opened.take_in_scan(entry, rows),
            Places::Some(rows, _) => self.opened.take_in_scan(entry, rows),
        }
    }

    /// The elements with an index of the arrays at a node.
    fn element_places(&self, node: usize, index: i64, at: &Places<'_>) -> Result<Places<'static>> {
        let node = &self.schema().nodes[node];
        let missing = || self.located(Error::corrupt("elements that are not there"), 0);
        let columns = node.column(Kind::Start).zip(node.column(Kind::Length));
        let ((start, length), element) = columns.zip(node.element).ok_or_else(missing)?;
        let (starts, lengths) = (self.values_at(start, at)?, self.values_at(length, at)?);
        let (mut rows, mut positions) = (Vec::new(), Vec::new());
        for row in 0..at.len() {
            let (Value::Int(start), Value::Int(length)) = (starts.value(row), lengths.value(row))
            else {
                continue;
            };
            let inside = if index < 0 { index + length } else { index };
            if !(0..length).contains(&inside) {
                continue;
            }
            let row_of = usize::try_from(start + inside).map_err(|_| missing())?;
            if row_of >= self.schema().nodes[element as usize].rows {
                return Err(missing());
            }
            rows.push(row_of as u32);
            positions.push(at.position(row));
        }
        debug_assert!(positions.is_sorted(), "arrays in the order of their rows");
        match rows.is_sorted() {
            true => Ok(Places::Some(rows, positions)),
            false => Err(self.located(Error::corrupt("starts of arrays out of order"), 0)),
        }
    }

    /// In which rows the objects above a node have its key.
    fn present(&self, node: usize, at: &Places<'_>) -> Result<Vec<bool>> {
        let schema = self.schema();
        debug_assert!(matches!(schema.nodes[node].step, DocumentStep::Key(_)), "{node}: no key");
        let Some(column) = schema.nodes[schema.nodes[node].parent as usize].column(Kind::Shape)
        else {
            return Ok(vec![false; at.len()]);
        };
        let with_key: Vec<bool> =
            schema.shapes.iter().map(|shape| shape.contains(&(node as u32))).collect();
        let shapes = self.values_at(column, at)?;
        let is_with_key = |shape: Value| match shape {
            Value::Int(shape) => with_key.get(shape as usize).is_some_and(|with| *with),
            _ => false,
        };
        Ok((0..at.len()).map(|row| is_with_key(shapes.value(row))).collect())
    }

    /// The values of a node of some kinds as JSON; nulls too where `present` says that there is a
    /// value.
    fn texts(
        &self,
        node: usize,
        kinds: &[Kind],
        present: Option<Vec<bool>>,
        at: &Places<'_>,
    ) -> Result<Vector> {
        let schema = self.schema();
        debug_assert!(
            present.as_ref().is_none_or(|present| present.len() == at.len()),
            "whether each row has a value"
        );
        // Rows of the segment are decoded; those of elements are read one by one.
        let mut above = node;
        while above != 0 && schema.nodes[above].step != DocumentStep::Element {
            above = schema.nodes[above].parent as usize;
        }
        let range = match at {
            Places::Range(range) if above == 0 => Some(range),
            _ => None,
        };
        let Some(range) = range else {
            let source = Loaded { opened: self.opened, first: self.entry.first };
            return self.texts_of(&source, node, kinds, present, at);
        };
        let mut within = vec![false; schema.nodes.len()];
        within[node] = true;
        if kinds.iter().any(|kind| matches!(kind, Kind::Shape | Kind::Length)) {
            for (child, node) in schema.nodes.iter().enumerate().skip(node + 1) {
                within[child] = within[node.parent as usize];
            }
        }
        let source = self.decoded(range.clone(), Some(&within))?;
        self.texts_of(&source, node, kinds, present, at)
    }

    fn texts_of(
        &self,
        source: &impl Source,
        node: usize,
        kinds: &[Kind],
        present: Option<Vec<bool>>,
        at: &Places<'_>,
    ) -> Result<Vector> {
        let columns: Vec<(Kind, usize)> = self.schema().nodes[node]
            .columns()
            .filter(|(kind, _)| !matches!(kind, Kind::Start | Kind::Rest))
            .collect();
        let mut out = VectorBuilder::new(DataType::Json);
        let mut text = String::new();
        for place in 0..at.len() {
            let row = at.row(place);
            let mut found = None;
            for (kind, column) in &columns {
                if !matches!(source.get(*column, row)?, Scalar::Null) {
                    found = Some(*kind);
                    break;
                }
            }
            match (found, &present) {
                (Some(kind), _) if kinds.contains(&kind) => {
                    text.clear();
                    text = assemble(self.schema(), source, (node, row), text)
                        .map_err(|error| self.located(error, 0))?;
                    out.push_bytes(text.as_bytes());
                }
                (None, Some(present)) if present[place] => out.push_bytes(b"null"),
                _ => out.push_null(),
            }
        }
        debug_assert_eq!(out.len(), at.len(), "a text or null for each row");
        Ok(out.finish())
    }
}

impl Opened {
    /// The documents that are null, as nulls of a column.
    pub(super) fn documents_present(&self, column: usize, rows: &PathRows<'_>) -> Result<Vector> {
        debug_assert!(self.columns[column].document.is_some(), "documents of column {column}");
        match rows {
            PathRows::Range(range) => self.decode_blocks(column, range.start, range.end),
            PathRows::Single(rows) => self.take_blocks(Purpose::Scan, column, rows),
        }
    }
}
