//! Zones of a column at three levels, so that a scan tests few of them: of the whole segment, of
//! groups of blocks, and of single blocks. Those of groups are found when they are first asked for.

use super::opened::Opened;
use super::segment::Segment;
use nacre_format::column::Zone;
use nacre_format::footer::{GROUP_BLOCKS, GroupZone, group_zones};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Result, Value};
use std::ops::Range;

/// Blocks that have a zone together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// All blocks of the segment.
    Segment,
    /// The blocks of a group.
    Group(usize),
    /// One block.
    Block(usize),
}

impl Segment {
    /// Number of groups of blocks.
    pub fn groups(&self) -> usize {
        self.blocks().div_ceil(GROUP_BLOCKS)
    }

    /// The blocks of a span.
    pub fn blocks_of(&self, span: Span) -> Range<usize> {
        let blocks = match span {
            Span::Segment => 0..self.blocks(),
            Span::Group(group) => {
                group * GROUP_BLOCKS..self.blocks().min((group + 1) * GROUP_BLOCKS)
            }
            Span::Block(block) => block..block + 1,
        };
        debug_assert!(
            blocks.start <= blocks.end && blocks.end <= self.blocks(),
            "{span:?} of {} blocks",
            self.blocks()
        );
        blocks
    }

    /// Number of rows in a span.
    pub fn rows_of(&self, span: Span) -> usize {
        let blocks = self.blocks_of(span);
        self.rows().min(blocks.end * BLOCK_ROWS).saturating_sub(blocks.start * BLOCK_ROWS)
    }

    /// Bounds and null count of a column in a span. They contain those of every part of it.
    pub fn zone_of(&self, column: usize, span: Span) -> Result<Zone> {
        let zone = self.opened()?.zone_of(column, span);
        debug_assert!(
            zone.null_count as usize <= self.rows_of(span),
            "{} nulls in the {} rows of {span:?}",
            zone.null_count,
            self.rows_of(span)
        );
        Ok(zone)
    }
}

impl Opened {
    fn zone_of(&self, column: usize, span: Span) -> Zone {
        match span {
            Span::Segment => {
                let meta = &self.columns[column].meta;
                let null_count = u32::try_from(meta.null_count).unwrap_or(u32::MAX);
                Zone { min: meta.min.clone(), max: meta.max.clone(), null_count, exact: meta.exact }
            }
            Span::Group(group) => self.group_zone(column, group),
            Span::Block(block) => self.zone(column, block),
        }
    }

    fn group_zone(&self, column: usize, group: usize) -> Zone {
        let entry = &self.columns[column];
        let zones = entry.groups.get_or_init(|| {
            group_zones(&entry.nulls, &entry.bounds, |block| self.block_rows(block))
        });
        debug_assert!(
            zones.len() == self.blocks().div_ceil(GROUP_BLOCKS),
            "zones of {} groups",
            zones.len()
        );
        let GroupZone { ends, null_count } = zones[group];
        let value = |block: usize, at: fn((Value, Value)) -> Value| {
            at(entry.bounds.values(entry.meta.data_type, block))
        };
        let exact = |block: usize| entry.bounds.exact.get(block);
        match ends {
            Some((least, greatest)) => Zone {
                min: value(least, |ends| ends.0),
                max: value(greatest, |ends| ends.1),
                null_count,
                exact: exact(least) && exact(greatest),
            },
            None => Zone { min: Value::Null, max: Value::Null, null_count, exact: true },
        }
    }
}
