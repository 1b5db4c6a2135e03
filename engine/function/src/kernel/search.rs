//! Byte string search.

/// The position of the first occurrence of `needle` in `haystack`.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let Some((&first, rest)) = needle.split_first() else { return Some(0) };
    let last_start = haystack.len().checked_sub(needle.len())?;
    let mut at = 0;
    while at <= last_start {
        at += find_byte(&haystack[at..=last_start], first)?;
        if &haystack[at + 1..at + needle.len()] == rest {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Position of a byte, testing eight at a time.
fn find_byte(haystack: &[u8], byte: u8) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let pattern = LOW.wrapping_mul(byte as u64);
    let (words, tail) = haystack.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ pattern;
        // The lowest flagged byte is exact; only bytes above a real zero can be flagged by mistake.
        let zeros = difference.wrapping_sub(LOW) & !difference & HIGH;
        if zeros != 0 {
            return Some(index * 8 + (zeros.trailing_zeros() / 8) as usize);
        }
    }
    tail.iter().position(|b| *b == byte).map(|at| words.len() * 8 + at)
}
