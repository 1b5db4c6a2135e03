//! The encoding of fields that several operations and the snapshot share: table ids, partitions,
//! delete bitmaps, segments.

use crate::record::operation::{NewSegment, Place};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Error, Result, TableId, limits};
use roaring::RoaringBitmap;

pub(crate) fn read_table(reader: &mut Reader<'_>) -> Result<TableId> {
    TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id"))
}

pub(crate) fn put_place(out: &mut Vec<u8>, place: Place) {
    debug_assert!(
        (place.partition as usize) < limits::MAX_PARTITIONS,
        "partition {} is logged",
        place.partition
    );
    let start = out.len();
    out.put_varint(place.table as u64);
    out.put_varint(place.partition as u64);
    debug_assert!(
        read_place(&mut Reader::new(&out[start..], "place")).is_ok_and(|read| read == place),
        "partition {} of table {} does not read back",
        place.partition,
        place.table
    );
}

pub(crate) fn read_place(reader: &mut Reader<'_>) -> Result<Place> {
    let table = read_table(reader)?;
    let partition = u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("partition"))?;
    Ok(Place { table, partition })
}

pub(super) fn put_segments(out: &mut Vec<u8>, segments: &[NewSegment]) -> Result<()> {
    out.put_varint(segments.len() as u64);
    debug_assert!(
        (1..segments.len()).all(|at| segments[..at].iter().all(|s| s.id != segments[at].id)),
        "a record names a segment twice"
    );
    for segment in segments {
        out.put_varint(segment.id);
        put_bitmap(out, &segment.deleted)?;
    }
    Ok(())
}

pub(super) fn read_segments(reader: &mut Reader<'_>) -> Result<Vec<NewSegment>> {
    let count = reader.count(reader.remaining())?;
    (0..count)
        .map(|_| Ok(NewSegment { id: reader.varint()?, deleted: read_bitmap(reader)? }))
        .collect()
}

/// Length-prefixed, in Roaring's portable format.
pub(crate) fn put_bitmap(out: &mut Vec<u8>, bitmap: &RoaringBitmap) -> Result<()> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).map_err(|e| Error::limit(format!("delete bitmap: {e}")))?;
    debug_assert!(
        RoaringBitmap::deserialize_from(&bytes[..]).is_ok_and(|read| read == *bitmap),
        "a delete bitmap of {} rows does not read back",
        bitmap.len()
    );
    out.put_bytes(&bytes);
    Ok(())
}

pub(crate) fn read_bitmap(reader: &mut Reader<'_>) -> Result<RoaringBitmap> {
    let bytes = reader.bytes()?;
    RoaringBitmap::deserialize_from(bytes).map_err(|_| reader.corrupt("bad bitmap"))
}
