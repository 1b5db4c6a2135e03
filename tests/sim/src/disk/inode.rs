//! One file of the simulated disk: its bytes, which of them are durable, and how a power cut or a
//! failed sync affects the rest.

use nacre_testing::Random;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write(usize, Vec<u8>),
    /// A run of zeros: logs are filled with them far ahead of their records.
    Zeroes(usize, usize),
    Length(usize),
}

impl Change {
    pub(super) fn write(offset: usize, bytes: &[u8]) -> Change {
        if bytes.len() > ZEROES && bytes.iter().all(|byte| *byte == 0) {
            return Change::Zeroes(offset, bytes.len());
        }
        Change::Write(offset, bytes.to_vec())
    }

    /// Applies the whole change.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, written) => apply(bytes, *offset, written),
            Change::Zeroes(offset, len) => clear(bytes, *offset, *len),
            Change::Length(len) => bytes.resize(*len, 0),
        }
    }
}

/// Longer runs of zeros reach the medium in pieces of this many bytes instead of sectors.
const ZEROES: usize = 4 << 10;

/// The bytes of one file, under any name.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) current: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Changes since the last sync.
    pub(super) changes: Vec<Change>,
    /// Whether its name is durable.
    pub(super) named: bool,
    pub(super) removed: bool,
}

fn apply(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}

fn clear(bytes: &mut Vec<u8>, offset: usize, len: usize) {
    let there = bytes.len().clamp(offset, offset + len);
    if there > offset {
        bytes[offset..there].fill(0);
    }
    if bytes.len() < offset + len {
        bytes.resize(offset + len, 0);
    }
}

impl Inode {
    /// Makes some of the changes durable.
    pub(super) fn settle(&mut self, random: &mut Random, sector: usize) {
        // Occasionally everything or nothing, otherwise any subset.
        let all = match random.below(4) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Write(offset, written) => {
                    let mut at = 0;
                    while at < written.len() {
                        let end =
                            written.len().min((offset + at) / sector * sector + sector - offset);
                        if all.unwrap_or_else(|| random.percent(50)) {
                            apply(&mut self.durable, offset + at, &written[at..end]);
                        }
                        at = end;
                    }
                }
                Change::Zeroes(offset, len) => {
                    for at in (0..len).step_by(ZEROES) {
                        if all.unwrap_or_else(|| random.percent(50)) {
                            clear(&mut self.durable, offset + at, ZEROES.min(len - at));
                        }
                    }
                }
                Change::Length(len) => {
                    if all.unwrap_or_else(|| random.percent(50)) {
                        self.durable.resize(len, 0);
                    }
                }
            }
        }
        if all.is_none() && self.durable.len() < self.current.len() && random.percent(30) {
            self.durable.resize(self.current.len(), 0);
        }
    }

    /// A sync fails: some changes become durable, and the bytes of the others are forgotten.
    /// Changes of length are kept.
    pub(super) fn forget(&mut self, random: &mut Random, sector: usize) {
        let lengths =
            self.changes.iter().filter(|c| matches!(c, Change::Length(_))).cloned().collect();
        self.settle(random, sector);
        self.changes = lengths;
    }
}
