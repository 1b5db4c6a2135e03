//! What is brought to the local disk after opening: footers, and what lookups read.

use super::files::{IndexFile, index_files};
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_host::Warming;
use nacre_host::fetched::Misses;
use nacre_segment::Segment;
use nacre_types::{Missing, Result};
use std::sync::{Arc, Weak};

/// Files whose footers are brought at once.
const TOGETHER: usize = 16;

/// A file of which something is wanted. It may be gone by then.
struct Wanted {
    file: Weak<Segment>,
    /// These columns, and the footer; the whole file if `None`.
    columns: Option<Vec<usize>>,
}

impl Wanted {
    /// What of it is not on the local disk. Opens no file that is there.
    fn absent(&self) -> Result<Option<Missing>> {
        let Some(file) = self.file.upgrade() else { return Ok(None) };
        let whole = 0..file.bytes();
        let absent = file.absent(std::slice::from_ref(&whole))?;
        match &self.columns {
            Some(columns) if absent.is_some() => file.absent(&file.ranges(columns, None)?),
            _ => Ok(absent),
        }
    }
}

/// The footers and indexes of tables.
pub(crate) fn warming(tables: &[Arc<Table>]) -> Warming {
    let mut wanted = Vec::new();
    for table in tables {
        let mut files = Vec::new();
        for partition in table.partitions() {
            let list = partition.segments();
            index_files(table.schema(), &list, SegmentState::is_current, &mut files);
            let footers = (0..list.len()).map(|at| &list[at]).filter(|state| state.is_current());
            wanted.extend(footers.map(|state| Wanted {
                file: Arc::downgrade(&state.segment),
                columns: Some(Vec::new()),
            }));
        }
        wanted.extend(files.into_iter().map(|IndexFile { file, columns, .. }| Wanted {
            file: Arc::downgrade(&file),
            columns,
        }));
    }
    let mut wanted = wanted.into_iter();
    let mut some: Vec<Wanted> = Vec::new();
    Box::new(move || {
        loop {
            if some.is_empty() {
                some.extend(wanted.by_ref().take(TOGETHER));
            }
            if some.is_empty() {
                return Ok(None);
            }
            let mut absent = Vec::new();
            Misses::each(&some, |file| {
                absent.extend(file.absent()?);
                Ok(())
            })?;
            some.clear();
            if !absent.is_empty() {
                return Ok(Some(absent));
            }
        }
    })
}
