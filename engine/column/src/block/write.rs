//! Writing a block: header, validity, and the body of one of the encodings.
//!
//! The validity bitmap has one bit per row, 1 = not null, in 64-bit little-endian words.

use crate::encoding::header::{self, ALL_NULL, HAS_VALIDITY, HEADER_BYTES};
use crate::encoding::{Encoding, Input, Shared, plain};
use nacre_types::bytes::Write;
use nacre_types::invariant;

/// Encodes a block; `None` if the encoding cannot hold it, or needs other `shared` data
/// ([`Encoding::shares`]).
pub fn encode(encoding: Encoding, input: Input<'_>, shared: Shared<'_>) -> Option<Vec<u8>> {
    let nulls = input.null_count();
    if nulls == input.len() && nulls > 0 {
        let all_null = || header::write(encoding as u8, ALL_NULL, input.len());
        return (encoding == Encoding::Constant).then(all_null);
    }
    let (mut out, input) = head(encoding, input, nulls);
    (encoding.entry().encode)(input, shared, &mut out).then_some(out)
}

/// Encodes a block with the plain encoding, which holds every block except one with only nulls.
pub(super) fn encode_plain(input: Input<'_>) -> Vec<u8> {
    let nulls = input.null_count();
    invariant!(nulls < input.len() || nulls == 0, "a plain block of {nulls} nulls and no value");
    let (mut out, input) = head(Encoding::Plain, input, nulls);
    plain::encode(input, &mut out);
    out
}

/// Starts a block with its header and validity. Returns it with the input of the body.
fn head<'a>(encoding: Encoding, input: Input<'a>, nulls: usize) -> (Vec<u8>, Input<'a>) {
    if nulls == 0 {
        return (header::write(encoding as u8, 0, input.len()), input.without_validity());
    }
    let mut out = header::write(encoding as u8, HAS_VALIDITY, input.len());
    for at in (0..input.len()).step_by(64) {
        let rows = at..input.len().min(at + 64);
        out.put_u64(rows.fold(0, |word, row| word | (input.is_valid(row) as u64) << (row - at)));
    }
    debug_assert_eq!(
        out.len(),
        HEADER_BYTES + input.len().div_ceil(64) * 8,
        "where the body starts after the validity of {} rows",
        input.len()
    );
    (out, input)
}
