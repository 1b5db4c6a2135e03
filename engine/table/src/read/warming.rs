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
    /// What is wanted beside the footer.
    what: What,
}

enum What {
    /// To look rows up by columns.
    Lookups(Vec<usize>),
    Columns(Vec<usize>),
    Whole,
}

impl Wanted {
    fn of(file: &Arc<Segment>, what: What) -> Wanted {
        debug_assert!(file.bytes() > 0, "{} is no segment", file.name());
        Wanted { file: Arc::downgrade(file), what }
    }

    /// What of it is not on the local disk. Opens no file that is there.
    fn absent(&self) -> Result<Option<Missing>> {
        let Some(file) = self.file.upgrade() else { return Ok(None) };
        let whole = 0..file.bytes();
        let absent = file.absent(std::slice::from_ref(&whole))?;
        match &self.what {
            _ if absent.is_none() => Ok(None),
            What::Lookups(columns) => file.absent(&file.lookup_ranges(columns)?),
            What::Columns(columns) => file.absent(&file.ranges(columns, None)?),
            What::Whole => Ok(absent),
        }
    }
}

/// The footers and indexes of tables.
pub(crate) fn warming(tables: &[Arc<Table>]) -> Warming {
    let mut wanted = Vec::new();
    for table in tables {
        let schema = table.schema();
        let key = schema.primary_key.iter().flat_map(|key| &key.columns);
        let key: Vec<_> = key.map(|at| schema.columns[*at].id).collect();
        let mut files = Vec::new();
        for partition in table.partitions() {
            let list = partition.segments();
            index_files(schema, &list, SegmentState::is_current, &mut files);
            for state in (0..list.len()).map(|at| &list[at]).filter(|state| state.is_current()) {
                let file = &state.segment;
                let of_key = key.iter().filter_map(|id| file.column_index(*id)).collect();
                wanted.push(Wanted::of(file, What::Lookups(of_key)));
            }
        }
        wanted.extend(files.into_iter().map(|IndexFile { file, columns, .. }| {
            Wanted::of(&file, columns.map_or(What::Whole, What::Columns))
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
            debug_assert!(
                absent.iter().all(|missing: &Missing| !missing.ranges.is_empty()),
                "a file is named of which nothing is absent"
            );
            some.clear();
            if !absent.is_empty() {
                return Ok(Some(absent));
            }
        }
    })
}
