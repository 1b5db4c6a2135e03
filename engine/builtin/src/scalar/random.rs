//! Functions of chance. A call for many rows takes 128 random bits from the host, and stretches them
//! (Steele et al., *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014): enough to tell
//! rows apart, not for secrets.

use nacre_column::{Values, Vector};
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Call, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{function, takes};
use nacre_types::{DataType, Error, Result, uuid};

/// A number for each row; `TABLESAMPLE` refers to it.
pub static RANDOM: ScalarFunction = function(
    &["random", "rand"],
    Doc::new(
        "random(), rand()",
        "A random number from 0 up to 1, another for each row.",
        "random() < 1",
        "true",
    ),
    Declared(takes(&[]), DataType::Float64),
    Vectors(|call| {
        let [seed, _] = seeds(call)?;
        let numbers = (0..call.rows.len).map(|row| fraction(mixed(seed, row)));
        Ok(Vector::new(DataType::Float64, Values::F64(numbers.collect()), None))
    }),
)
.volatile();

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &RANDOM,
    &function(
        &["uuid", "gen_random_uuid"],
        Doc::new(
            "uuid(), gen_random_uuid()",
            "A random UUID (version 4), another for each row.",
            "length(uuid())",
            "36",
        ),
        Declared(takes(&[]), DataType::Uuid),
        Vectors(|call| {
            let [high, low] = seeds(call)?;
            let uuids = (0..call.rows.len)
                .map(|row| uuid::pack(version_4(mixed(high, row), mixed(low, row))));
            Ok(Vector::new(DataType::Uuid, Values::I128(uuids.collect()), None))
        }),
    )
    .volatile(),
];

fn seeds(call: &Call<'_>) -> Result<[u64; 2]> {
    let name = call.function.name();
    call.surroundings.random.ok_or_else(|| {
        Error::unsupported(format!("{name}() as the value of a column that many rows get at once"))
    })
}

/// The number of a row in the sequence of a seed (SplitMix64).
fn mixed(seed: u64, row: usize) -> u64 {
    let mut v = seed.wrapping_add((row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

/// The upper 53 bits as a number from 0 up to 1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A UUID of version 4 and variant 1 (RFC 9562) from random bits.
fn version_4(high: u64, low: u64) -> u128 {
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    (high as u128) << 64 | low as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_range_and_differ() {
        let numbers: Vec<f64> = (0..1000).map(|row| fraction(mixed(7, row))).collect();
        assert!(numbers.iter().all(|v| (0.0..1.0).contains(v)));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!((fraction(0), fraction(u64::MAX) < 1.0), (0.0, true));
    }

    #[test]
    fn uuids_have_their_version() {
        let text = |high, low| uuid::format(version_4(high, low));
        assert_eq!(text(0, 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(text(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
