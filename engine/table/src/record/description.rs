//! The encoding of a file's description in the log: what recovery expects of the file before it
//! opens it, and what the file's contents are, so that plans need not open it.

use crate::segments::names::FileKind;
use nacre_segment::{BoundsOfColumns, ColumnBounds, Known, OrderBounds, Segment};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Error, Result, invariant, limits};
use std::sync::Arc;

/// The run that a segment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPlace {
    /// Its number, from the sequence of files: that of its first file, or of none.
    pub number: u64,
    /// Its level: how often its rows were merged, counting a large run as merged before. Up to
    /// [`MAX_LEVEL`].
    pub level: u8,
}

/// The highest level of a run.
pub(crate) const MAX_LEVEL: u8 = 63;

/// What the log knows of a file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub kind: FileKind,
    /// Number of the file.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Checksum of its footer, which has the checksums of everything else.
    pub footer_checksum: u64,
    pub rows: u32,
    /// Bounds of its rows as ordered by [`TableLayout::encode_order`]; only of segments, and
    /// missing for those written before files had bounds.
    ///
    /// [`TableLayout::encode_order`]: crate::layout::table_layout::TableLayout::encode_order
    pub order_bounds: Option<Arc<OrderBounds>>,
    /// The highest hidden row number in it; only of segments of tables without a primary key.
    pub highest_row_number: Option<u64>,
    /// The run that it belongs to; only of segments, and missing for those written before segments
    /// were in runs.
    pub run: Option<RunPlace>,
    /// What is in the file; missing in logs of earlier versions, whose files are opened to know it.
    pub contents: Option<Contents>,
}

/// What the log knows of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Uncompressed size of its values, in bytes.
    pub raw_bytes: u64,
    /// Ids of its columns, in file order.
    pub columns: Arc<[u32]>,
    /// Bounds of columns, in the order of their positions; none in logs of earlier versions.
    pub bounds: Arc<BoundsOfColumns>,
}

/// Flags of a description.
const ORDER_BOUNDS: u8 = 1;
const HIGHEST_ROW_NUMBER: u8 = 2;
const RUN: u8 = 4;
const CONTENTS: u8 = 8;
const BOUNDS: u8 = 16;

/// The stored number of a kind of file. Never reused.
fn code_of(kind: FileKind) -> u8 {
    match kind {
        FileKind::Segment => 1,
        FileKind::Part => 2,
        FileKind::Hashes => 3,
        // Never logged.
        FileKind::Temporary => 0,
    }
}

impl Description {
    /// Describes a complete file.
    pub fn of(kind: FileKind, file: &Segment) -> Description {
        let known = file.known();
        debug_assert!(
            known.greatest.is_none() || kind == FileKind::Segment,
            "file {} has row numbers and is no segment",
            file.id()
        );
        Description {
            kind,
            number: file.id(),
            bytes: known.bytes,
            footer_checksum: known.footer_checksum,
            rows: known.rows as u32,
            order_bounds: known.order_bounds.clone(),
            highest_row_number: known.greatest,
            run: None,
            contents: Some(Contents {
                raw_bytes: known.raw_bytes,
                columns: known.columns.clone(),
                bounds: known.bounds.clone(),
            }),
        }
    }

    /// What readers must know of the file before they open it; `None` if the log does not say all
    /// of it.
    pub fn known(&self) -> Option<Known> {
        let Contents { raw_bytes, columns, bounds } = self.contents.clone()?;
        debug_assert!(self.rows as usize <= limits::MAX_SEGMENT_ROWS, "{} rows", self.rows);
        if self.kind == FileKind::Segment && self.order_bounds.is_none() {
            return None;
        }
        Some(Known {
            rows: self.rows as usize,
            bytes: self.bytes,
            footer_checksum: self.footer_checksum,
            raw_bytes,
            order_bounds: self.order_bounds.clone(),
            columns,
            bounds,
            greatest: self.highest_row_number,
        })
    }

    /// Describes a segment of a run.
    pub fn of_segment(segment: &Segment, run: RunPlace) -> Description {
        invariant!(run.level <= MAX_LEVEL, "run {} has level {}", run.number, run.level);
        Description { run: Some(run), ..Description::of(FileKind::Segment, segment) }
    }

    /// Whether both describe the same file, whatever run it is in: a segment may change its run.
    pub fn is_of_same_file(&self, other: &Description) -> bool {
        // Bounds follow from the file, and logs of earlier versions have none.
        let without_bounds = |file: &Description| {
            file.contents.clone().map(|contents| Contents { bounds: Arc::default(), ..contents })
        };
        let both = without_bounds(self).zip(without_bounds(other));
        let plain = |file: &Description| Description { run: None, contents: None, ..file.clone() };
        both.is_none_or(|(own, other)| own == other) && plain(self) == plain(other)
    }

    /// Checks that a file is the one described.
    ///
    /// # Errors
    /// `corrupt`, with both descriptions.
    pub fn check(&self, kind: FileKind, file: &Segment) -> Result<()> {
        let found = Description::of(kind, file);
        let same = |other: &Description| {
            (self.kind, self.number, self.bytes, self.footer_checksum, self.rows)
                == (other.kind, other.number, other.bytes, other.footer_checksum, other.rows)
        };
        match same(&found) {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "segment {}: the file is {}, the log names {}",
                file.name(),
                found.summary(),
                self.summary()
            ))),
        }
    }

    fn summary(&self) -> String {
        format!(
            "{} with {} rows, {} bytes and footer checksum {:016x}",
            self.kind.name(self.number),
            self.rows,
            self.bytes,
            self.footer_checksum
        )
    }
}

pub(super) fn put_description(out: &mut Vec<u8>, description: &Description) {
    let start = out.len();
    invariant!(
        description
            .run
            .is_none_or(|run| { description.kind == FileKind::Segment && run.level <= MAX_LEVEL }),
        "file {} is logged in run {:?}",
        description.number,
        description.run
    );
    invariant!(FileKind::LOGGED.contains(&description.kind), "a temporary file is logged");
    let mut fields = Vec::with_capacity(64);
    fields.put_u8(code_of(description.kind));
    fields.put_varint(description.number);
    fields.put_varint(description.bytes);
    fields.put_u64(description.footer_checksum);
    fields.put_varint(u64::from(description.rows));
    let bounds = if description.order_bounds.is_some() { ORDER_BOUNDS } else { 0 };
    let highest = if description.highest_row_number.is_some() { HIGHEST_ROW_NUMBER } else { 0 };
    let run = if description.run.is_some() { RUN } else { 0 };
    let contents = if description.contents.is_some() { CONTENTS } else { 0 };
    let of_columns = description.contents.as_ref().map(|contents| &*contents.bounds);
    let of_columns = of_columns.filter(|bounds| !bounds.is_empty());
    let of_columns_flag = if of_columns.is_some() { BOUNDS } else { 0 };
    fields.put_u8(bounds | highest | run | contents | of_columns_flag);
    if let Some(OrderBounds { first, last }) = description.order_bounds.as_deref() {
        fields.put_bytes(first);
        fields.put_bytes(last);
    }
    if let Some(number) = description.highest_row_number {
        fields.put_varint(number);
    }
    if let Some(RunPlace { number, level }) = description.run {
        fields.put_varint(number);
        fields.put_varint(u64::from(level));
    }
    if let Some(Contents { raw_bytes, columns, .. }) = &description.contents {
        fields.put_varint(*raw_bytes);
        fields.put_varint(columns.len() as u64);
        columns.iter().for_each(|id| fields.put_varint(u64::from(*id)));
    }
    if let Some(bounds) = of_columns {
        fields.put_varint(bounds.len() as u64);
        for ColumnBounds { column, nulls, low, high } in bounds.iter() {
            fields.put_varint(u64::from(column));
            fields.put_varint(u64::from(nulls));
            fields.put_bytes(low);
            fields.put_bytes(high);
        }
    }
    out.put_bytes(&fields);
    debug_assert!(
        read_description(&mut Reader::new(&out[start..], "description"))
            .is_ok_and(|read| read == *description),
        "the description of a file does not read back"
    );
}

pub(super) fn read_description(reader: &mut Reader<'_>) -> Result<Description> {
    let mut fields = Reader::new(reader.bytes()?, "description of a file");
    let kind = match fields.u8()? {
        1 => FileKind::Segment,
        2 => FileKind::Part,
        3 => FileKind::Hashes,
        _ => return Err(fields.corrupt("unknown kind of file")),
    };
    let (number, bytes, footer_checksum) = (fields.varint()?, fields.varint()?, fields.u64()?);
    let rows = fields.count(limits::MAX_SEGMENT_ROWS)? as u32;
    let flags = fields.u8()?;
    if flags & !(ORDER_BOUNDS | HIGHEST_ROW_NUMBER | RUN | CONTENTS | BOUNDS) != 0 {
        return Err(fields.corrupt("unknown flags"));
    }
    let order_bounds = match flags & ORDER_BOUNDS != 0 {
        true => {
            let (first, last) = (fields.bytes()?.to_vec(), fields.bytes()?.to_vec());
            Some(Arc::new(OrderBounds { first, last }))
        }
        false => None,
    };
    let highest_row_number = match flags & HIGHEST_ROW_NUMBER != 0 {
        true => Some(fields.varint()?),
        false => None,
    };
    let run = match flags & RUN != 0 {
        true => Some(RunPlace {
            number: fields.varint()?,
            level: fields.count(usize::from(MAX_LEVEL))? as u8,
        }),
        false => None,
    };
    let mut contents = match flags & CONTENTS != 0 {
        true => Some(read_contents(&mut fields)?),
        false => None,
    };
    if flags & BOUNDS != 0 {
        let bounds = read_bounds(&mut fields, rows)?;
        match &mut contents {
            Some(contents) => contents.bounds = Arc::new(bounds),
            None => return Err(fields.corrupt("bounds of unknown columns")),
        }
    }
    if run.is_some() && kind != FileKind::Segment {
        return Err(fields.corrupt("a run of something other than segments"));
    }
    fields.finish()?;
    Ok(Description {
        kind,
        number,
        bytes,
        footer_checksum,
        rows,
        order_bounds,
        highest_row_number,
        run,
        contents,
    })
}

fn read_contents(fields: &mut Reader<'_>) -> Result<Contents> {
    let raw_bytes = fields.varint()?;
    let count = fields.count(limits::MAX_SEGMENT_COLUMNS)?;
    let mut columns = Vec::with_capacity(count.min(fields.remaining()));
    for _ in 0..count {
        columns.push(fields.count(u32::MAX as usize)? as u32);
    }
    debug_assert!(columns.len() == count, "{} of {count} columns", columns.len());
    Ok(Contents { raw_bytes, columns: columns.into(), bounds: Arc::default() })
}

fn read_bounds(fields: &mut Reader<'_>, rows: u32) -> Result<BoundsOfColumns> {
    let count = fields.count(limits::MAX_SEGMENT_COLUMNS)?;
    let left = fields.remaining();
    let mut bounds = BoundsOfColumns::with_capacity(count.min(left), left);
    for _ in 0..count {
        bounds.push(ColumnBounds {
            column: fields.count(u32::MAX as usize)? as u32,
            nulls: fields.count(rows as usize)? as u32,
            low: fields.bytes()?,
            high: fields.bytes()?,
        });
    }
    if bounds.is_empty() || bounds.iter().any(|one| one.low > one.high) {
        return Err(fields.corrupt("invalid bounds of a column"));
    }
    Ok(bounds)
}
