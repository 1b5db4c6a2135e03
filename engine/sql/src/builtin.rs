//! Scalar functions that are computed value by value: one table of names, arguments and results, and one
//! evaluator in the executor. What runs often over many rows has kernels of its own ([`crate::ScalarFunction`]).

use nacre_types::DataType;

/// One variant a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Builtin {
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Cot,
    Cbrt,
    Degrees,
    Radians,
    Pi,
    Factorial,
    Gcd,
    Lcm,
    BitCount,
    Even,
    IsNan,
    IsInfinite,
    IsFinite,
    WidthBucket,
    Ascii,
    Chr,
    /// Any number of code points.
    Char,
    InitCap,
    /// `(separator, …)`, without the nulls.
    ConcatWs,
    /// `(text, separator, n)`: from the end when `n` is negative.
    SplitPart,
    /// `(text, separator, n)`: everything before the `n`th separator, or after it from the end.
    SubstringIndex,
    /// `(text, position, length, new)`
    Insert,
    Field,
    Elt,
    FindInSet,
    StrCmp,
    Translate,
    EndsWith,
    Contains,
    Space,
    Hex,
    ToHex,
    ToBinary,
    ToOctal,
    Unhex,
    ToBase64,
    FromBase64,
    Md5,
    Crc32,
    Quote,
    Levenshtein,
    Hamming,
    Soundex,
    BitLength,
    UrlEncode,
    UrlDecode,
    /// `(text, pattern)`: `*`, `?` and `[…]`.
    Glob,
    /// `(text, pattern[, flags])`; the flags `i`, `m` and `s`, and in `RegexpReplace` also `g`.
    RegexpLike,
    /// `(text, pattern[, group[, flags]])`
    RegexpExtract,
    RegexpReplace,
    RegexpCount,
    RegexpPosition,
    DayName,
    MonthName,
    /// Monday is 0.
    Weekday,
    /// Monday is 1, Sunday 7.
    IsoDayOfWeek,
    IsoYear,
    YearWeek,
    LastDay,
    MakeDate,
    MakeTime,
    MakeTimestamp,
    ToDays,
    FromDays,
    FromUnixTime,
    UnixTimestamp,
    EpochMs,
    EpochUs,
    /// By C's letters.
    StrFTime,
    /// By MySQL's letters.
    DateFormat,
    StrPTime,
    StrToDate,
    Century,
    Decade,
    Millennium,
    JulianDay,
    /// `(part, from, to)`: boundaries of the part crossed.
    DateDiff,
    /// `(part, from, to)`: whole parts between.
    TimestampDiff,
    /// A cast that answers null where a cast fails.
    TryCast,
}

/// How a function is called.
pub(crate) struct Signature {
    /// Its names, the first one for `EXPLAIN`.
    pub names: &'static [&'static str],
    pub function: Builtin,
    /// One letter an argument: `d` double, `i` integer, `t` text, `b` text or binary, `s` timestamp, `D` date. `*`
    /// repeats the letter before it.
    pub args: &'static str,
    /// Arguments at least.
    pub min: usize,
    pub result: DataType,
}

const fn f(
    names: &'static [&'static str],
    function: Builtin,
    args: &'static str,
    min: usize,
    result: DataType,
) -> Signature {
    Signature { names, function, args, min, result }
}

const D: DataType = DataType::Float64;
const I: DataType = DataType::Int64;
const T: DataType = DataType::TEXT;
const B: DataType = DataType::Boolean;
const X: DataType = DataType::BLOB;

use Builtin::*;
/// All of them.
pub(crate) static BUILTINS: &[Signature] = &[
    f(&["sin"], Sin, "d", 1, D),
    f(&["cos"], Cos, "d", 1, D),
    f(&["tan"], Tan, "d", 1, D),
    f(&["asin"], Asin, "d", 1, D),
    f(&["acos"], Acos, "d", 1, D),
    f(&["atan"], Atan, "d", 1, D),
    f(&["atan2"], Atan2, "dd", 2, D),
    f(&["sinh"], Sinh, "d", 1, D),
    f(&["cosh"], Cosh, "d", 1, D),
    f(&["tanh"], Tanh, "d", 1, D),
    f(&["asinh"], Asinh, "d", 1, D),
    f(&["acosh"], Acosh, "d", 1, D),
    f(&["atanh"], Atanh, "d", 1, D),
    f(&["cot"], Cot, "d", 1, D),
    f(&["cbrt"], Cbrt, "d", 1, D),
    f(&["degrees"], Degrees, "d", 1, D),
    f(&["radians"], Radians, "d", 1, D),
    f(&["pi"], Pi, "", 0, D),
    f(&["factorial"], Factorial, "i", 1, DataType::Decimal { precision: 38, scale: 0 }),
    f(&["gcd", "greatest_common_divisor"], Gcd, "ii", 2, I),
    f(&["lcm", "least_common_multiple"], Lcm, "ii", 2, I),
    f(&["bit_count"], BitCount, "i", 1, I),
    f(&["even"], Even, "d", 1, D),
    f(&["isnan"], IsNan, "d", 1, B),
    f(&["isinf"], IsInfinite, "d", 1, B),
    f(&["isfinite"], IsFinite, "d", 1, B),
    f(&["width_bucket"], WidthBucket, "dddi", 4, I),
    f(&["ascii", "unicode", "ord"], Ascii, "t", 1, I),
    f(&["chr"], Chr, "i", 1, T),
    f(&["char"], Char, "i*", 1, T),
    f(&["initcap"], InitCap, "t", 1, T),
    f(&["concat_ws"], ConcatWs, "tt*", 1, T),
    f(&["split_part"], SplitPart, "tti", 3, T),
    f(&["substring_index"], SubstringIndex, "tti", 3, T),
    f(&["insert"], Insert, "tiit", 4, T),
    f(&["field"], Field, "tt*", 2, I),
    f(&["elt"], Elt, "it*", 2, T),
    f(&["find_in_set"], FindInSet, "tt", 2, I),
    f(&["strcmp"], StrCmp, "tt", 2, I),
    f(&["translate"], Translate, "ttt", 3, T),
    f(&["ends_with", "endswith", "suffix"], EndsWith, "tt", 2, B),
    f(&["contains"], Contains, "tt", 2, B),
    f(&["space"], Space, "i", 1, T),
    f(&["hex"], Hex, "b", 1, T),
    f(&["to_hex"], ToHex, "i", 1, T),
    f(&["bin", "to_binary"], ToBinary, "i", 1, T),
    f(&["oct"], ToOctal, "i", 1, T),
    f(&["unhex", "from_hex"], Unhex, "t", 1, X),
    f(&["to_base64", "base64"], ToBase64, "b", 1, T),
    f(&["from_base64"], FromBase64, "t", 1, X),
    f(&["md5"], Md5, "b", 1, T),
    f(&["crc32"], Crc32, "b", 1, I),
    f(&["quote"], Quote, "t", 1, T),
    f(&["levenshtein", "editdist3"], Levenshtein, "tt", 2, I),
    f(&["hamming", "mismatches"], Hamming, "tt", 2, I),
    f(&["soundex"], Soundex, "t", 1, T),
    f(&["bit_length"], BitLength, "b", 1, I),
    f(&["url_encode"], UrlEncode, "t", 1, T),
    f(&["url_decode"], UrlDecode, "t", 1, T),
    f(&["glob_match"], Glob, "tt", 2, B),
    f(&["regexp_like", "regexp_matches"], RegexpLike, "ttt", 2, B),
    f(&["regexp_extract", "regexp_substr"], RegexpExtract, "ttit", 2, T),
    f(&["regexp_replace"], RegexpReplace, "tttt", 3, T),
    f(&["regexp_count"], RegexpCount, "ttt", 2, I),
    f(&["regexp_instr"], RegexpPosition, "ttt", 2, I),
    f(&["dayname"], DayName, "s", 1, T),
    f(&["monthname"], MonthName, "s", 1, T),
    f(&["weekday"], Weekday, "s", 1, I),
    f(&["isodow"], IsoDayOfWeek, "s", 1, I),
    f(&["isoyear"], IsoYear, "s", 1, I),
    f(&["yearweek"], YearWeek, "s", 1, I),
    f(&["last_day"], LastDay, "D", 1, DataType::Date),
    f(&["make_date"], MakeDate, "iii", 3, DataType::Date),
    f(&["make_time", "maketime"], MakeTime, "iid", 3, DataType::Time),
    f(&["make_timestamp"], MakeTimestamp, "iiiiid", 6, DataType::Timestamp),
    f(&["to_days"], ToDays, "D", 1, I),
    f(&["from_days"], FromDays, "i", 1, DataType::Date),
    f(&["from_unixtime", "to_timestamp"], FromUnixTime, "d", 1, DataType::Timestamp),
    f(&["unix_timestamp"], UnixTimestamp, "s", 1, I),
    f(&["epoch_ms"], EpochMs, "s", 1, I),
    f(&["epoch_us"], EpochUs, "s", 1, I),
    f(&["strftime"], StrFTime, "st", 2, T),
    f(&["date_format"], DateFormat, "st", 2, T),
    f(&["strptime"], StrPTime, "tt", 2, DataType::Timestamp),
    f(&["str_to_date"], StrToDate, "tt", 2, DataType::Timestamp),
    f(&["century"], Century, "s", 1, I),
    f(&["decade"], Decade, "s", 1, I),
    f(&["millennium"], Millennium, "s", 1, I),
    f(&["julianday", "julian"], JulianDay, "s", 1, D),
    f(&["date_diff"], DateDiff, "tss", 3, I),
    f(&["timestampdiff"], TimestampDiff, "tss", 3, I),
];

impl Builtin {
    /// The name it is shown under.
    pub fn name(self) -> &'static str {
        match BUILTINS.iter().find(|s| s.function == self) {
            Some(signature) => signature.names[0],
            None => "try_cast",
        }
    }

    /// Whether it is called although an argument is null; others are null then.
    pub fn takes_nulls(self) -> bool {
        matches!(self, ConcatWs | Field | Elt | Char)
    }

    /// Whether it may be null although no argument is.
    pub fn makes_nulls(self) -> bool {
        matches!(self, Elt | RegexpExtract | TryCast)
    }
}
