//! The encoding of a snapshot: the catalog, the segment metadata and the rowstores at one
//! timestamp.

use crate::record::description::{Description, put_description, read_description};
use crate::record::fields::{put_bitmap, put_place, read_bitmap, read_place, read_table};
use crate::record::hashes::{NewTable, put_hash_table, read_hash_table};
use crate::record::indexes::{Indexes, NewPart, put_indexes, put_part, read_indexes, read_part};
use crate::record::operation::Place;
use crate::record::rules::{Rules, put_rules, read_rules};
use crate::record::schema::{put_schema, put_view, read_schema, read_view};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Result, TableId, TableSchema, Timestamp, ViewSchema, invariant};
use roaring::RoaringBitmap;

/// The next free ids, and the last commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextIds {
    /// The last commit timestamp given out.
    pub commit: Timestamp,
    pub segment: u64,
    pub table: TableId,
}

/// A table in a snapshot.
pub(crate) struct TableImage {
    pub schema: TableSchema,
    /// Indexed by partition number; complete.
    pub partitions: Vec<PartitionImage>,
}

/// A partition in a snapshot.
pub(crate) struct PartitionImage {
    pub next_row_number: u64,
    /// Segment ids and their deleted rows.
    pub segments: Vec<(u64, RoaringBitmap)>,
    pub rows: Vec<RowImage>,
}

/// A row of a rowstore in a snapshot.
pub(crate) struct RowImage {
    pub key: Vec<u8>,
    pub commit: Timestamp,
    pub row: Vec<u8>,
}

/// A whole snapshot.
pub(crate) struct Image {
    pub next: NextIds,
    pub tables: Vec<TableImage>,
    pub views: Vec<ViewSchema>,
    pub indexes: Vec<(TableId, Indexes)>,
    pub parts: Vec<(Place, NewPart)>,
    pub hashes: Vec<(Place, NewTable)>,
    /// Descriptions of segments, index parts and hash tables.
    pub files: Vec<(Place, Description)>,
    pub rules: Vec<(TableId, Rules)>,
}

/// Writes a snapshot piece by piece, in order: each table with its partitions, then all views,
/// indexes, index parts, hash tables, descriptions of files, and rules. The caller takes the bytes away as
/// they come.
pub(crate) struct ImageWriter {
    out: Vec<u8>,
    /// Bytes that were taken away; kept to read the snapshot back.
    #[cfg(debug_assertions)]
    taken: Vec<u8>,
    /// Announced tables not begun yet.
    tables_left: usize,
    /// Partitions of the current table not yet written.
    partitions_left: usize,
    /// Segments of the partition not yet written.
    segments_left: usize,
    /// Whether rows of a partition are being written.
    in_rows: bool,
}

impl ImageWriter {
    /// Starts a snapshot of this many tables.
    pub fn new(next: NextIds, tables: usize) -> ImageWriter {
        let mut out = Vec::new();
        out.put_u64(next.commit);
        out.put_u64(next.segment);
        out.put_varint(next.table as u64);
        out.put_varint(tables as u64);
        ImageWriter {
            out,
            #[cfg(debug_assertions)]
            taken: Vec::new(),
            tables_left: tables,
            partitions_left: 0,
            segments_left: 0,
            in_rows: false,
        }
    }

    /// Number of bytes to take.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Takes the bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        #[cfg(debug_assertions)]
        self.taken.extend_from_slice(&self.out);
        std::mem::take(&mut self.out)
    }

    /// Starts the next table.
    pub fn begin_table(&mut self, schema: &TableSchema, partitions: usize) -> Result<()> {
        invariant!(
            self.tables_left > 0 && self.partitions_left == 0,
            "table {} is one too many in a snapshot, or begins before {} partitions of the last",
            schema.name,
            self.partitions_left
        );
        invariant!(!self.in_rows, "table {} begins among the rows of another", schema.name);
        invariant!(partitions > 0, "table {} has no partitions in a snapshot", schema.name);
        self.tables_left -= 1;
        self.partitions_left = partitions;
        put_schema(&mut self.out, schema)?;
        self.out.put_varint(partitions as u64);
        Ok(())
    }

    /// Starts the next partition of the table, with this many segments.
    pub fn begin_partition(&mut self, next_row_number: u64, segments: usize) {
        invariant!(self.partitions_left > 0, "a snapshot has one partition too many");
        invariant!(!self.in_rows, "a partition begins among the rows of another");
        debug_assert!(next_row_number > 0, "rows of a partition are numbered from 0");
        invariant!(
            self.segments_left == 0,
            "a partition begins before {} segments of the last",
            self.segments_left
        );
        self.partitions_left -= 1;
        self.segments_left = segments;
        self.in_rows = true;
        self.out.put_u64(next_row_number);
        self.out.put_varint(segments as u64);
    }

    /// Writes a segment of the partition: its id and deleted rows.
    pub fn segment(&mut self, id: u64, deleted: Option<&RoaringBitmap>) -> Result<()> {
        invariant!(self.segments_left > 0, "segment {id} is one too many in a snapshot");
        debug_assert!(self.in_rows, "segment {id} is outside a partition");
        self.segments_left -= 1;
        self.out.put_u64(id);
        let none = RoaringBitmap::new();
        put_bitmap(&mut self.out, deleted.unwrap_or(&none))
    }

    /// Writes a row of the partition's rowstore.
    pub fn row(&mut self, key: &[u8], commit: Timestamp, row: &[u8]) {
        debug_assert!(self.in_rows, "a row outside a partition");
        debug_assert!(self.segments_left == 0, "a row before {} segments", self.segments_left);
        debug_assert!(!key.is_empty() && !row.is_empty(), "a row or its key is empty");
        self.out.put_u8(1);
        self.out.put_bytes(key);
        self.out.put_u64(commit);
        self.out.put_bytes(row);
    }

    /// Ends the partition's rows.
    pub fn end_rows(&mut self) {
        invariant!(self.in_rows, "rows end that did not begin");
        invariant!(self.segments_left == 0, "rows end before {} segments", self.segments_left);
        self.in_rows = false;
        self.out.put_u8(0);
    }

    /// Writes everything after the tables.
    pub fn finish<'a>(
        &mut self,
        views: impl ExactSizeIterator<Item = &'a ViewSchema>,
        indexes: &[(TableId, Indexes)],
        parts: &[(Place, NewPart)],
        hashes: &[(Place, NewTable)],
        files: &[(Place, Description)],
        rules: &[(TableId, Rules)],
    ) {
        invariant!(
            self.tables_left == 0 && self.partitions_left == 0 && !self.in_rows,
            "a snapshot ends before {} tables and {} partitions",
            self.tables_left,
            self.partitions_left
        );
        let out = &mut self.out;
        out.put_varint(views.len() as u64);
        views.for_each(|view| put_view(out, view));
        out.put_varint(indexes.len() as u64);
        for (table, indexes) in indexes {
            out.put_varint(*table as u64);
            put_indexes(out, indexes);
        }
        out.put_varint(parts.len() as u64);
        for (place, part) in parts {
            put_place(out, *place);
            put_part(out, *part);
        }
        out.put_varint(hashes.len() as u64);
        for (place, hashes) in hashes {
            put_place(out, *place);
            put_hash_table(out, hashes);
        }
        out.put_varint(files.len() as u64);
        for (place, file) in files {
            put_place(out, *place);
            put_description(out, file);
        }
        out.put_varint(rules.len() as u64);
        for (table, rules) in rules {
            out.put_varint(*table as u64);
            put_rules(out, rules);
        }
        #[cfg(debug_assertions)]
        invariant!(
            Image::decode(&[&self.taken[..], &self.out].concat()).is_ok(),
            "a snapshot does not read back"
        );
    }
}

impl Image {
    /// Decodes a snapshot.
    pub fn decode(payload: &[u8]) -> Result<Image> {
        let mut reader = Reader::new(payload, "snapshot");
        let commit = reader.u64()?;
        let segment = reader.u64()?;
        let table = TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id"))?;
        let count = reader.count(reader.remaining())?;
        let mut tables = Vec::new();
        for _ in 0..count {
            let schema = read_schema(&mut reader)?;
            let partition_count = reader.count(reader.remaining())?;
            let partitions =
                (0..partition_count).map(|_| read_partition(&mut reader)).collect::<Result<_>>()?;
            tables.push(TableImage { schema, partitions });
        }
        let view_count = reader.count(reader.remaining())?;
        let views = (0..view_count).map(|_| read_view(&mut reader)).collect::<Result<_>>()?;
        let (mut indexes, mut parts) = (Vec::new(), Vec::new());
        // Snapshots written before indexes existed end here.
        if reader.remaining() > 0 {
            for _ in 0..reader.count(tables.len())? {
                indexes.push((read_table(&mut reader)?, read_indexes(&mut reader)?));
            }
            for _ in 0..reader.count(reader.remaining())? {
                parts.push((read_place(&mut reader)?, read_part(&mut reader)?));
            }
        }
        let mut hashes = Vec::new();
        // Snapshots written before hash tables existed end here.
        if reader.remaining() > 0 {
            for _ in 0..reader.count(reader.remaining())? {
                hashes.push((read_place(&mut reader)?, read_hash_table(&mut reader)?));
            }
        }
        let mut files = Vec::new();
        // Snapshots written before files were described end here.
        if reader.remaining() > 0 {
            for _ in 0..reader.count(reader.remaining())? {
                files.push((read_place(&mut reader)?, read_description(&mut reader)?));
            }
        }
        let mut rules = Vec::new();
        // Snapshots written before tables had rules end here.
        if reader.remaining() > 0 {
            for _ in 0..reader.count(tables.len())? {
                rules.push((read_table(&mut reader)?, read_rules(&mut reader)?));
            }
        }
        reader.finish()?;
        let next = NextIds { commit, segment, table };
        Ok(Image { next, tables, views, indexes, parts, hashes, files, rules })
    }
}

fn read_partition(reader: &mut Reader<'_>) -> Result<PartitionImage> {
    let next_row_number = reader.u64()?;
    let segment_count = reader.count(reader.remaining())?;
    let mut segments = Vec::new();
    for _ in 0..segment_count {
        segments.push((reader.u64()?, read_bitmap(reader)?));
    }
    let mut rows = Vec::new();
    loop {
        match reader.u8()? {
            0 => break,
            1 => rows.push(RowImage {
                key: reader.bytes()?.to_vec(),
                commit: reader.u64()?,
                row: reader.bytes()?.to_vec(),
            }),
            _ => return Err(reader.corrupt("bad row tag")),
        }
    }
    Ok(PartitionImage { next_row_number, segments, rows })
}
