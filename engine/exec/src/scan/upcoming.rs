//! Reads ahead of a scan whose bytes are absent, so that the store fetches the next blocks while the scan
//! computes, with few large requests.
//!
//! Nothing is read ahead before something was missed, nor by what begins again after a miss: it has no second
//! one. Each miss makes the window wider, in bytes: the scan has waited. Blocks are asked for in the order in
//! which the scan will read them, each once. How many requests are in progress is for the store to decide, and
//! how much room there is.

use nacre_table::{Ahead, SegmentView};
use nacre_types::Result;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are read ahead after the first miss.
const FIRST_BYTES: u64 = 256 << 10;
/// Each miss makes the window this many times as wide, by its logarithm.
const RAMP_BITS: u32 = 2;
/// The most bytes that are read ahead: eight requests of 4 MiB.
const MOST_BYTES: u64 = 32 << 20;
/// After this many misses the window is as wide as it gets.
const MOST_MISSES: u32 = 5;

/// The blocks of the file that a block of a scan takes, as (column, block); whether rows are expected to pass.
pub(in crate::scan) type BlocksOf<'a> =
    &'a dyn Fn(&SegmentView, usize, bool) -> Result<Vec<(usize, usize)>>;

/// What a scan reads ahead, shared by its threads.
#[derive(Default)]
pub(in crate::scan) struct Upcoming {
    misses: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Segments that are being read and the next ones, in the order of the scan.
    lines: VecDeque<Line>,
    /// Bytes that were asked for, of blocks that have not begun.
    outstanding: u64,
    /// Blocks that have begun, and those of which rows have passed.
    begun: usize,
    passed: usize,
}

/// The blocks of a segment that a scan reads.
struct Line {
    view: SegmentView,
    /// In the order of reading, and whether they were asked for or have begun.
    blocks: Vec<(usize, bool)>,
    chunks: Vec<Chunk>,
}

/// What asking for blocks of a segment has come to.
enum Asked {
    /// Bytes of blocks that are on their way.
    Bytes(u64),
    /// It is not known yet where the blocks are: the read that comes next fetches that.
    Unknown,
    /// The store takes no more.
    NoRoom,
}

/// Blocks that were asked for together.
struct Chunk {
    /// Those that have not begun.
    left: Vec<usize>,
    /// Bytes of a block, on average.
    bytes: u64,
    /// Keeps the requests going, and their blocks resident.
    _guard: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Upcoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upcoming").field("misses", &self.misses).finish_non_exhaustive()
    }
}

impl Upcoming {
    /// Notes that a read of the scan has missed bytes.
    pub fn note_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether anything was missed.
    pub fn is_active(&self) -> bool {
        self.misses.load(Ordering::Relaxed) > 0
    }

    /// Bytes to have on their way.
    fn window(&self) -> u64 {
        match self.misses.load(Ordering::Relaxed).min(MOST_MISSES) {
            0 => 0,
            misses => (FIRST_BYTES << (RAMP_BITS * (misses - 1))).min(MOST_BYTES),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the blocks that the scan will read of its next segment, in the order of reading.
    pub fn add(&self, view: &SegmentView, blocks: &[usize]) {
        if !blocks.is_empty() {
            self.state().lines.push_back(Line::new(view, blocks.iter()));
        }
    }

    /// Adds the blocks of a segment that may have been added before.
    pub fn add_unknown(&self, view: &SegmentView, blocks: &[usize]) {
        let is_known = |first| self.state().lines.iter().any(|line| line.is_of(view, first));
        if blocks.first().is_some_and(|first| !is_known(*first)) {
            self.add(view, blocks);
        }
    }

    /// Whether there is room for more than is planned.
    pub fn is_short(&self) -> bool {
        if !self.is_active() {
            return false;
        }
        let state = self.state();
        state.outstanding <= self.window() / 2 && state.lines.iter().all(Line::is_asked)
    }

    /// Called before the last one of `blocks` is read: asks for it and what comes after it, if that is not on its
    /// way. `has_passed` is whether rows of the block before have passed; `None` if it was said already.
    pub fn begin(
        &self,
        view: &SegmentView,
        blocks: &[usize],
        has_passed: Option<bool>,
        blocks_of: BlocksOf<'_>,
    ) {
        let Some(block) = blocks.last().copied() else { return };
        let window = self.window();
        let mut state = self.state();
        let state = &mut *state;
        state.begun += usize::from(has_passed.is_some());
        state.passed += usize::from(has_passed == Some(true));
        let rows_pass = state.passed * 2 >= state.begun;
        let own = match state.lines.iter().position(|line| line.is_of(view, block)) {
            Some(at) => at,
            None => {
                state.lines.push_front(Line::new(view, blocks.iter().rev()));
                0
            }
        };
        let line = &mut state.lines[own];
        state.outstanding -= line.begin(block).min(state.outstanding);
        if state.outstanding <= window / 2 {
            let from = line.blocks.iter().position(|(known, _)| *known == block).unwrap_or(0);
            state.ask((own, from), window, blocks_of, rows_pass);
        }
        // Threads do not begin blocks in their order.
        let begun = state.lines[own].blocks.iter_mut().find(|(known, _)| *known == block);
        begun.into_iter().for_each(|(_, has_begun)| *has_begun = true);
        // Those that were read.
        let has_more = |line: &Line| {
            !line.is_asked() || line.chunks.iter().any(|chunk| !chunk.left.is_empty())
        };
        let mut at = 0;
        state.lines.retain(|line| {
            at += 1;
            at == own + 1 || has_more(line)
        });
        debug_assert!(window <= MOST_BYTES, "{window} bytes are read ahead");
    }
}

impl State {
    /// Asks for blocks, from one of a line on, until a number of bytes is outstanding.
    fn ask(
        &mut self,
        (own, first): (usize, usize),
        window: u64,
        blocks_of: BlocksOf<'_>,
        rows_pass: bool,
    ) {
        for (at, line) in self.lines.iter_mut().enumerate().skip(own) {
            if self.outstanding >= window {
                break;
            }
            let from = if at == own { first } else { 0 };
            match line.ask(from, window - self.outstanding, blocks_of, rows_pass) {
                Asked::Bytes(bytes) => self.outstanding += bytes,
                Asked::Unknown => {}
                Asked::NoRoom => break,
            }
        }
    }
}

impl Line {
    /// Blocks that were not asked for.
    fn new<'a>(view: &SegmentView, blocks: impl Iterator<Item = &'a usize>) -> Line {
        let blocks = blocks.map(|block| (*block, false)).collect();
        Line { view: view.clone(), blocks, chunks: Vec::new() }
    }

    fn is_of(&self, view: &SegmentView, block: usize) -> bool {
        self.view.segment.id() == view.segment.id()
            && self.blocks.iter().any(|(known, _)| *known == block)
    }

    /// Whether all blocks were asked for.
    fn is_asked(&self) -> bool {
        self.blocks.iter().all(|(_, is_asked)| *is_asked)
    }

    /// Notes that a block is being read. Returns the bytes that are no longer outstanding.
    fn begin(&mut self, block: usize) -> u64 {
        // What keeps the last block of a chunk goes only now: it was still to be read when it began.
        self.chunks.retain(|chunk| !chunk.left.is_empty());
        let mut bytes = 0;
        for chunk in &mut self.chunks {
            if let Some(at) = chunk.left.iter().position(|left| *left == block) {
                chunk.left.swap_remove(at);
                bytes += chunk.bytes;
            }
        }
        bytes
    }

    /// Asks for blocks from a place on, about as many bytes as there is room for.
    fn ask(&mut self, from: usize, room: u64, blocks_of: BlocksOf<'_>, rows_pass: bool) -> Asked {
        let (mut stored, mut blocks, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut is_known = true;
        for (block, is_asked) in self.blocks[from..].iter_mut().filter(|(_, is_asked)| !is_asked) {
            if bytes >= room {
                break;
            }
            let of_block = match blocks_of(&self.view, *block, rows_pass) {
                Err(error) if error.missing().is_some() => {
                    is_known = false;
                    break;
                }
                // Whatever is wrong is found when the block is read.
                other => other.unwrap_or_default(),
            };
            *is_asked = true;
            bytes +=
                of_block.iter().map(|(column, _)| block_bytes(&self.view, *column)).sum::<u64>();
            if !of_block.is_empty() {
                blocks.push(*block);
                stored.extend(of_block);
            }
        }
        let nothing = if is_known { Asked::Bytes(0) } else { Asked::Unknown };
        if blocks.is_empty() {
            return nothing;
        }
        let refused = match self.view.segment.read_ahead(&stored) {
            Ok((bytes, Ahead::Fetching(guard))) => {
                let each = bytes / blocks.len() as u64;
                let asked = each * blocks.len() as u64;
                self.chunks.push(Chunk { left: blocks, bytes: each, _guard: Box::new(guard) });
                return Asked::Bytes(asked);
            }
            Ok((_, Ahead::Nothing)) => return nothing,
            Ok((_, Ahead::NoRoom)) => Asked::NoRoom,
            Err(_) => Asked::Unknown,
        };
        for (block, is_asked) in &mut self.blocks[from..] {
            *is_asked &= !blocks.contains(block);
        }
        refused
    }
}

/// Bytes of a block of a column of the file, on average.
fn block_bytes(view: &SegmentView, column: usize) -> u64 {
    let bytes = view.segment.column_bytes(column).unwrap_or(0);
    bytes / view.segment.blocks().max(1) as u64
}
