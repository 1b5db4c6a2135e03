//! The files of a table, and which of their columns belong to which index: for warming, and for reports of what is
//! on the local disk.

use crate::layout::columns::{KEY_FILTER_COLUMN, KEY_ORDER_COLUMN};
use crate::read::view::TableView;
use crate::record::KeySet;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_segment::{ResidentBytes, Segment};
use nacre_types::hash::Set;
use nacre_types::{CachePart, IndexId, Result, TableSchema};
use std::sync::Arc;

/// A file, or a part of one, that an index has.
pub struct IndexFile {
    /// The file.
    pub file: Arc<Segment>,
    /// The index; the primary key if `None`.
    pub index: Option<IndexId>,
    /// The segment whose rows it has; `None` for a hash table, which has those of many.
    pub segment: Option<u64>,
    /// The columns of the index, if the file has others as well.
    pub columns: Option<Vec<usize>>,
}

impl IndexFile {
    /// The part of an index for a segment.
    fn of_part(state: &SegmentState, part: &Part) -> IndexFile {
        let (file, index) = (part.file().clone(), Some(part.index()));
        let columns = part.columns();
        IndexFile { file, index, segment: Some(state.id()), columns: Some(columns) }
    }

    /// What only lookups of the primary key read of a segment.
    fn of_key(state: &SegmentState) -> Option<IndexFile> {
        let file = state.segment.clone();
        let hidden = [KEY_FILTER_COLUMN, KEY_ORDER_COLUMN];
        let columns: Vec<usize> = hidden.iter().filter_map(|id| file.column_index(*id)).collect();
        let is_any = !columns.is_empty();
        let (segment, columns) = (Some(state.id()), Some(columns));
        is_any.then_some(IndexFile { file, index: None, segment, columns })
    }
}

/// The files of the indexes of some segments.
pub(super) fn index_files(
    schema: &TableSchema,
    list: &SegmentList,
    sees: impl Fn(&SegmentState) -> bool,
    out: &mut Vec<IndexFile>,
) {
    for state in (0..list.len()).map(|at| &list[at]).filter(|state| sees(state)) {
        out.extend(IndexFile::of_key(state));
        let parts = schema.indexes.iter().filter_map(|index| state.part(index.id));
        out.extend(parts.map(|part| IndexFile::of_part(state, &part)));
    }
    let keys = schema.indexes.iter().map(|index| KeySet::Index(index.id));
    for keys in keys.chain([KeySet::Primary]) {
        let index = match keys {
            KeySet::Index(id) => Some(id),
            KeySet::Primary => None,
        };
        for file in list.tables_of(keys).flat_map(|table| table.files()) {
            out.push(IndexFile { file: file.clone(), index, segment: None, columns: None });
        }
    }
}

impl TableView {
    /// The files of its indexes.
    pub fn index_files(&self) -> Vec<IndexFile> {
        let mut files = Vec::new();
        for (_, list) in self.lists() {
            let sees = |state: &SegmentState| state.exists_at(self.at());
            index_files(self.table().schema(), list, sees, &mut files);
        }
        files
    }
}

impl Table {
    /// Where the bytes of its columns and indexes are. What is in no column that is known, such as footers, and
    /// segments whose footer is not here, has neither a column nor an index. Fetches nothing.
    pub fn cache(&self) -> Result<Vec<CachePart>> {
        let schema = self.schema();
        let mut columns = vec![ResidentBytes::default(); schema.columns.len()];
        let mut indexes = vec![ResidentBytes::default(); schema.indexes.len()];
        let (mut primary, mut files) = (ResidentBytes::default(), Vec::new());
        let (mut all, mut known) = (ResidentBytes::default(), ResidentBytes::default());
        let mut seen: Set<u64> = Set::default();
        let mut note_file = |file: &Segment, all: &mut ResidentBytes| -> Result<()> {
            if seen.insert(file.id()) {
                *all += file.whole_resident()?;
            }
            Ok(())
        };
        for partition in self.partitions() {
            let list = partition.segments();
            index_files(schema, &list, SegmentState::is_current, &mut files);
            for state in (0..list.len()).map(|at| &list[at]).filter(|state| state.is_current()) {
                note_file(&state.segment, &mut all)?;
                for (column, sum) in schema.columns.iter().zip(&mut columns) {
                    let Some(at) = state.segment.column_index(column.id) else { continue };
                    let Some(of_one) = state.segment.resident(&[at])? else { break };
                    *sum += of_one;
                    known += of_one;
                }
            }
        }
        for IndexFile { file, index, columns, .. } in &files {
            note_file(file, &mut all)?;
            let of_one = match columns {
                Some(columns) => file.resident(columns)?,
                None => Some(file.whole_resident()?),
            };
            let Some(of_one) = of_one else { continue };
            let at = schema.indexes.iter().position(|known| Some(known.id) == *index);
            *at.map_or(&mut primary, |at| &mut indexes[at]) += of_one;
            known += of_one;
        }
        let part =
            |column: Option<&String>, index: Option<&String>, of: &ResidentBytes| CachePart {
                table: schema.name.clone(),
                column: column.cloned(),
                index: index.cloned(),
                bytes: of.bytes,
                local_bytes: of.local,
                memory_bytes: of.memory,
            };
        let of_columns = schema.columns.iter().zip(&columns);
        let mut parts: Vec<CachePart> =
            of_columns.map(|(column, of)| part(Some(&column.name), None, of)).collect();
        if let Some(key) = &schema.primary_key {
            parts.push(part(None, Some(&key.name), &primary));
        }
        for (index, of) in schema.indexes.iter().zip(&indexes) {
            parts.push(part(None, Some(&index.name), of));
        }
        let rest = ResidentBytes {
            bytes: all.bytes.saturating_sub(known.bytes),
            local: all.local.saturating_sub(known.local),
            memory: 0,
        };
        parts.push(part(None, None, &rest));
        Ok(parts)
    }
}
