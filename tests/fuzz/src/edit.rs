//! Damages bytes as the input decides.

use crate::input::Input;

/// Changes some bytes. Returns the first offset that differs, if any.
pub fn damage(bytes: &mut Vec<u8>, input: &mut Input<'_>) -> Option<usize> {
    let before = bytes.clone();
    let edits = 1 + input.below(6);
    for _ in 0..edits {
        if bytes.is_empty() {
            break;
        }
        // Headers and footers are the most sensitive.
        let at = match input.below(4) {
            0 => input.below(bytes.len().min(256)),
            1 => bytes.len() - 1 - input.below(bytes.len().min(256)),
            _ => input.below(bytes.len()),
        };
        match input.below(9) {
            0 | 1 => bytes[at] = input.byte(),
            2 => bytes[at] ^= 1 << input.below(8),
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => bytes[at] = 0xff,
            5 => {
                // An integer at one position.
                let value = input.integer().to_le_bytes();
                let width = input.pick(&[2, 4, 8]).min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&value[..width]);
            }
            6 => bytes.truncate(at),
            7 => {
                let new: Vec<u8> = input.take(1 + at % 7).to_vec();
                bytes.splice(at..at, new);
            }
            _ => {
                let end = bytes.len().min(at + 1 + input.below(16));
                bytes.drain(at..end);
            }
        }
    }
    let differs = before.iter().zip(bytes.iter()).position(|(old, new)| old != new);
    differs.or((before.len() != bytes.len()).then_some(before.len().min(bytes.len())))
}
