//! UUIDs: their text, and the integer that they are stored as.

/// The integer that a UUID is stored as: integers compare as UUIDs do.
pub fn pack(uuid: u128) -> i128 {
    (uuid ^ (1 << 127)) as i128
}

/// The UUID that [`pack`] made an integer of.
pub fn unpack(stored: i128) -> u128 {
    (stored as u128) ^ (1 << 127)
}

/// Writes a UUID in five groups of small hexadecimal digits.
pub fn format(uuid: u128) -> String {
    let digits = format!("{uuid:032x}");
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
    groups.map(|group| digits.get(group).unwrap_or_default()).join("-")
}

/// Parses 32 hexadecimal digits in any case, in braces or not; a hyphen may follow any four of them.
pub fn parse(text: &str) -> Option<u128> {
    let text = text.trim();
    let text = text.strip_prefix('{').map_or(Some(text), |inner| inner.strip_suffix('}'))?;
    let (mut uuid, mut digits) = (0u128, 0);
    let mut after_hyphen = true;
    for byte in text.bytes() {
        if byte == b'-' {
            if after_hyphen || digits % 4 != 0 {
                return None;
            }
            after_hyphen = true;
            continue;
        }
        let digit = (byte as char).to_digit(16)?;
        if digits == 32 {
            return None;
        }
        (uuid, digits, after_hyphen) = (uuid << 4 | digit as u128, digits + 1, false);
    }
    (digits == 32 && !after_hyphen).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::{format, pack, parse, unpack};

    #[test]
    fn texts_round_trip() {
        let written = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        let uuid = parse(written).unwrap();
        assert_eq!(format(uuid), written);
        for same in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
            " a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11 ",
        ] {
            assert_eq!(parse(same), Some(uuid), "{same}");
        }
        for wrong in [
            "",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "-a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11-",
            "a0eebc9-99c0b4ef8bb6d6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "g0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn stored_integers_compare_as_their_texts() {
        let uuids = [0, 1, u128::MAX / 2, u128::MAX / 2 + 1, u128::MAX];
        assert!(uuids.is_sorted_by_key(|uuid| pack(*uuid)));
        assert!(uuids.iter().all(|uuid| unpack(pack(*uuid)) == *uuid));
        assert!(uuids.is_sorted_by_key(|uuid| format(*uuid)));
    }
}
