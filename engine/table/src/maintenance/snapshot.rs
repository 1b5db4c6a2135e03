//! Snapshots: the rowstore and the segment metadata at a log position, so that recovery need not read
//! the log from its beginning. Taking one blocks commits only while it notes what there is.

use crate::record::{self, Indexes, NewPart, NewTable, Place};
use crate::segments::state::SegmentState;
use crate::store::{NextIds, Store};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::Change;
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Result, TableId, TableSchema, Timestamp, ViewSchema};
use roaring::RoaringBitmap;
use std::sync::{Arc, PoisonError};

/// A table as a snapshot holds it.
pub(crate) struct TableImage {
    pub schema: TableSchema,
    /// By number, all of them.
    pub partitions: Vec<PartitionImage>,
}

/// A partition as a snapshot holds it.
pub(crate) struct PartitionImage {
    pub next_row_number: u64,
    /// Segment ids and their deleted rows.
    pub segments: Vec<(u64, RoaringBitmap)>,
    /// Key, commit timestamp, row.
    pub rows: Vec<(Vec<u8>, Timestamp, Vec<u8>)>,
}

/// A whole snapshot.
pub(crate) struct Image {
    pub next: NextIds,
    pub tables: Vec<TableImage>,
    pub views: Vec<ViewSchema>,
    pub indexes: Vec<(TableId, Indexes)>,
    pub parts: Vec<(Place, NewPart)>,
    pub hashes: Vec<(Place, NewTable)>,
}

/// The segments of each partition of a table, and its hash tables.
type TableAt = (Arc<Table>, Vec<Vec<SegmentAt>>, Vec<(Place, NewTable)>);
/// A segment and its deleted rows at the snapshot's timestamp.
type SegmentAt = (Arc<SegmentState>, Option<Arc<RoaringBitmap>>);

impl Store {
    /// Writes a snapshot; the log before it is removed.
    pub(crate) fn write_snapshot(self: &Arc<Self>) -> Result<()> {
        let state = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.last;
        // From here on, as a relaxed commit may take a row's place and be visible before it is durable.
        let guard = self.snapshot();
        let lsn = self.log.position();
        let next = NextIds { commit: at, ..self.next_ids() };
        let tables: Vec<TableAt> = self
            .tables()
            .into_iter()
            .map(|table| {
                let segments_of = |partition: &Partition| {
                    let segments = partition.segments();
                    segments
                        .iter()
                        .filter(|s| s.exists_at(at))
                        .map(|s| (s.clone(), s.deleted_at(at)))
                        .collect()
                };
                let segments = table.partitions().iter().map(segments_of).collect();
                let tables_of = |partition: &Partition| {
                    let place = table.place(partition);
                    let list = partition.segments();
                    list.tables().iter().map(|hashes| (place, hashes.name())).collect::<Vec<_>>()
                };
                let hashes = table.partitions().iter().flat_map(tables_of).collect();
                (table, segments, hashes)
            })
            .collect();
        let views = self.views();
        drop(state);
        // Everything up to the position must be durable before a snapshot may stand for it; then the
        // timestamp is visible too.
        self.log.sync(lsn)?;
        self.make_visible(at);
        let mut out = Vec::new();
        out.put_u64(next.commit);
        out.put_u64(next.segment);
        out.put_varint(next.table as u64);
        out.put_varint(tables.len() as u64);
        for (table, segments, _) in &tables {
            record::put_schema(&mut out, table.schema())?;
            out.put_varint(table.partitions().len() as u64);
            for (partition, segments) in table.partitions().iter().zip(segments) {
                out.put_u64(partition.next_row_number());
                out.put_varint(segments.len() as u64);
                for (state, deleted) in segments {
                    out.put_u64(state.segment.id());
                    record::put_bitmap(
                        &mut out,
                        deleted.as_deref().unwrap_or(&RoaringBitmap::new()),
                    )?;
                }
                put_rows(&mut out, table, partition, at)?;
            }
        }
        out.put_varint(views.len() as u64);
        views.iter().for_each(|view| record::put_view(&mut out, view));
        put_indexes(&mut out, &tables);
        let hashes: Vec<_> = tables.iter().flat_map(|(_, _, hashes)| hashes).collect();
        out.put_varint(hashes.len() as u64);
        for (place, hashes) in hashes {
            record::put_place(&mut out, *place);
            record::put_table(&mut out, hashes);
        }
        drop(guard);
        self.log.write_snapshot(lsn, &out)
    }
}

/// The indexes of the tables that have some, and the parts of them that have files of their own.
fn put_indexes(out: &mut Vec<u8>, tables: &[TableAt]) {
    let indexed: Vec<(TableId, Indexes)> = tables
        .iter()
        .filter_map(|(table, _, _)| Some((table.id(), Indexes::of(table.schema())?)))
        .collect();
    out.put_varint(indexed.len() as u64);
    for (table, indexes) in &indexed {
        out.put_varint(*table as u64);
        record::put_indexes(out, indexes);
    }
    let mut parts: Vec<(Place, NewPart)> = Vec::new();
    for (table, segments, _) in tables {
        for (partition, segments) in table.partitions().iter().zip(segments) {
            let place = table.place(partition);
            let new = segments.iter().flat_map(|(state, _)| state.new_parts());
            // Those of an index that was dropped stay for a while.
            parts.extend(
                new.filter(|part| table.index(part.index).is_ok()).map(|part| (place, part)),
            );
        }
    }
    out.put_varint(parts.len() as u64);
    for (place, part) in &parts {
        record::put_place(out, *place);
        record::put_part(out, *part);
    }
}

/// Rows of the rowstore at a timestamp, each with a leading 1, ended by a 0.
fn put_rows(out: &mut Vec<u8>, table: &Table, partition: &Partition, at: Timestamp) -> Result<()> {
    partition.try_each_node(|node| {
        if let Some(version) = node.version_at(at)
            && let Change::Put(row) = &version.change
        {
            out.put_u8(1);
            out.put_bytes(node.key());
            out.put_u64(version.commit);
            // All of one version: what a snapshot holds needs no history of the schema.
            out.put_bytes(&table.upgrade(row.clone())?);
        }
        Ok(())
    })?;
    out.put_u8(0);
    Ok(())
}

/// Decodes a snapshot.
pub(crate) fn decode(payload: &[u8]) -> Result<Image> {
    let mut reader = Reader::new(payload, "snapshot");
    let commit = reader.u64()?;
    let segment = reader.u64()?;
    let table = TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id"))?;
    let count = reader.count(reader.remaining())?;
    let mut tables = Vec::new();
    for _ in 0..count {
        let schema = record::read_schema(&mut reader)?;
        let partition_count = reader.count(reader.remaining())?;
        let partitions =
            (0..partition_count).map(|_| read_partition(&mut reader)).collect::<Result<_>>()?;
        tables.push(TableImage { schema, partitions });
    }
    let view_count = reader.count(reader.remaining())?;
    let views = (0..view_count).map(|_| record::read_view(&mut reader)).collect::<Result<_>>()?;
    let (mut indexes, mut parts) = (Vec::new(), Vec::new());
    // Snapshots from before there were indexes end here.
    if reader.remaining() > 0 {
        for _ in 0..reader.count(tables.len())? {
            indexes.push((record::read_table(&mut reader)?, record::read_indexes(&mut reader)?));
        }
        for _ in 0..reader.count(reader.remaining())? {
            parts.push((record::read_place(&mut reader)?, record::read_part(&mut reader)?));
        }
    }
    let mut hashes = Vec::new();
    // Those from before there were hash tables end here.
    if reader.remaining() > 0 {
        for _ in 0..reader.count(reader.remaining())? {
            hashes.push((record::read_place(&mut reader)?, record::read_hash_table(&mut reader)?));
        }
    }
    reader.finish()?;
    Ok(Image { next: NextIds { commit, segment, table }, tables, views, indexes, parts, hashes })
}

fn read_partition(reader: &mut Reader<'_>) -> Result<PartitionImage> {
    let next_row_number = reader.u64()?;
    let segment_count = reader.count(reader.remaining())?;
    let mut segments = Vec::new();
    for _ in 0..segment_count {
        segments.push((reader.u64()?, record::read_bitmap(reader)?));
    }
    let mut rows = Vec::new();
    loop {
        match reader.u8()? {
            0 => break,
            1 => rows.push((reader.bytes()?.to_vec(), reader.u64()?, reader.bytes()?.to_vec())),
            _ => return Err(reader.corrupt("bad row tag")),
        }
    }
    Ok(PartitionImage { next_row_number, segments, rows })
}
