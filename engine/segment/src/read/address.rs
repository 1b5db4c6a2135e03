//! Where blocks lie in a file, and which of them are read together.

use nacre_format::footer::ALIGNMENT;

/// Maximum length of a range of neighbouring blocks read at once, in bytes.
const RUN_BYTES: u64 = 8 << 20;

/// Location and checksum of a block or dictionary.
#[derive(Clone, Copy)]
pub(crate) struct BlockAddress {
    pub column: usize,
    /// Block number; the number of blocks for the dictionary, one more for the outline.
    pub index: usize,
    pub offset: u64,
    pub length: usize,
    pub checksum: u64,
}

/// Neighbouring blocks: their offset, a buffer for their bytes, and the blocks.
type Run<'a> = (u64, Vec<u8>, &'a [BlockAddress]);

/// Groups blocks in ascending order of their offsets into runs with less than an alignment between
/// two blocks.
pub(crate) fn coalesced(addresses: &[BlockAddress]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut rest = addresses;
    while let Some(first) = rest.first() {
        let mut end = first.offset + first.length as u64;
        let mut count = 1;
        while let Some(next) = rest.get(count) {
            debug_assert!(first.offset <= next.offset, "offsets to load ascend");
            let next_end = next.offset + next.length as u64;
            let near = next.offset >= end && next.offset - end < ALIGNMENT as u64;
            if !near || next_end - first.offset > RUN_BYTES {
                break;
            }
            end = next_end;
            count += 1;
        }
        let (run, after) = rest.split_at(count);
        runs.push((first.offset, vec![0; (end - first.offset) as usize], run));
        rest = after;
    }
    runs
}
