//! The names of types, and what may follow them: for the parser, which tells a literal of a type from a name, and for
//! the binder.

use nacre_types::{DECIMAL_MAX_PRECISION, DataType};

/// What the name of a type means.
#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    /// This type; no number may follow.
    Plain(DataType),
    /// An integer. MySQL's display width may follow, and changes nothing.
    Integer(DataType),
    /// A floating-point type. The number of binary digits may follow.
    Float(DataType),
    /// A decimal; its precision and its scale may follow.
    Decimal,
    /// A text; its greatest length may follow, and is this without one.
    Text(Option<u32>),
    /// Bytes; their greatest number may follow, and is this without one.
    Binary(Option<u32>),
    /// A time; the digits of its seconds' fraction may follow.
    Temporal(DataType),
    /// A time of day with a time zone.
    Zoned,
    /// A type of other databases.
    Foreign,
}

use DataType::{Boolean, Date, Int8, Int16, Int32, Int64, Interval, Json, Time, Timestamp};
use DataType::{Float32, Float64, TimestampTz, UInt8, UInt16, UInt32, UInt64, Uuid};
use Meaning::{Binary, Decimal, Float, Foreign, Integer, Plain, Temporal, Text, Zoned};

const LONGEST_INTEGER: DataType = DataType::Decimal { precision: DECIMAL_MAX_PRECISION, scale: 0 };

const NAMES: &[(&str, Meaning)] = &[
    ("boolean", Plain(Boolean)),
    ("bool", Plain(Boolean)),
    ("logical", Plain(Boolean)),
    ("tinyint", Integer(Int8)),
    ("int1", Integer(Int8)),
    ("smallint", Integer(Int16)),
    ("int2", Integer(Int16)),
    ("int16", Integer(Int16)),
    ("short", Integer(Int16)),
    ("int", Integer(Int32)),
    ("integer", Integer(Int32)),
    ("int4", Integer(Int32)),
    ("int32", Integer(Int32)),
    ("mediumint", Integer(Int32)),
    ("bigint", Integer(Int64)),
    ("int8", Integer(Int64)),
    ("int64", Integer(Int64)),
    ("long", Integer(Int64)),
    ("signed", Plain(Int64)),
    ("signed integer", Plain(Int64)),
    ("tinyint unsigned", Integer(UInt8)),
    ("utinyint", Integer(UInt8)),
    ("uint8", Integer(UInt8)),
    ("smallint unsigned", Integer(UInt16)),
    ("int2 unsigned", Integer(UInt16)),
    ("usmallint", Integer(UInt16)),
    ("uint16", Integer(UInt16)),
    ("int unsigned", Integer(UInt32)),
    ("integer unsigned", Integer(UInt32)),
    ("int4 unsigned", Integer(UInt32)),
    ("mediumint unsigned", Integer(UInt32)),
    ("uint32", Integer(UInt32)),
    ("uinteger", Integer(UInt32)),
    ("uint", Integer(UInt32)),
    ("bigint unsigned", Integer(UInt64)),
    ("int8 unsigned", Integer(UInt64)),
    ("ubigint", Integer(UInt64)),
    ("uint64", Integer(UInt64)),
    ("unsigned", Plain(UInt64)),
    ("unsigned integer", Plain(UInt64)),
    ("hugeint", Plain(LONGEST_INTEGER)),
    ("float", Float(Float32)),
    ("float4", Plain(Float32)),
    ("float32", Plain(Float32)),
    ("real", Plain(Float32)),
    ("double", Float(Float64)),
    ("double precision", Plain(Float64)),
    ("float8", Plain(Float64)),
    ("float64", Plain(Float64)),
    ("decimal", Decimal),
    ("numeric", Decimal),
    ("dec", Decimal),
    ("char", Text(Some(1))),
    ("character", Text(Some(1))),
    ("varchar", Text(None)),
    ("nvarchar", Text(None)),
    ("char varying", Text(None)),
    ("character varying", Text(None)),
    ("string", Text(None)),
    ("clob", Text(None)),
    ("bpchar", Text(None)),
    ("text", Plain(DataType::TEXT)),
    ("tinytext", Plain(DataType::TEXT)),
    ("mediumtext", Plain(DataType::TEXT)),
    ("longtext", Plain(DataType::TEXT)),
    ("binary", Binary(Some(1))),
    ("varbinary", Binary(None)),
    ("blob", Binary(None)),
    ("bytes", Binary(None)),
    ("tinyblob", Plain(DataType::BLOB)),
    ("mediumblob", Plain(DataType::BLOB)),
    ("longblob", Plain(DataType::BLOB)),
    ("bytea", Plain(DataType::BLOB)),
    ("date", Plain(Date)),
    ("date32", Plain(Date)),
    ("time", Temporal(Time)),
    ("time without time zone", Temporal(Time)),
    ("datetime", Temporal(Timestamp)),
    ("datetime64", Temporal(Timestamp)),
    ("timestamp", Temporal(Timestamp)),
    ("timestamp without time zone", Temporal(Timestamp)),
    ("timestamp_ntz", Temporal(Timestamp)),
    ("timestamp_s", Plain(Timestamp)),
    ("timestamp_ms", Plain(Timestamp)),
    ("timestamp_us", Plain(Timestamp)),
    ("timestamp_ns", Plain(Timestamp)),
    ("time with time zone", Zoned),
    ("timetz", Zoned),
    ("timestamp with time zone", Temporal(TimestampTz)),
    ("timestamptz", Temporal(TimestampTz)),
    ("uuid", Plain(Uuid)),
    ("interval", Plain(Interval)),
    ("json", Plain(Json)),
    ("jsonb", Plain(Json)),
    ("array", Foreign),
    ("bit", Foreign),
    ("enum", Foreign),
    ("map", Foreign),
    ("set", Foreign),
    ("struct", Foreign),
    ("uhugeint", Foreign),
];

/// The meaning of a name, whose words are separated by single blanks, in any case.
pub(crate) fn meaning(name: &str) -> Option<Meaning> {
    let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, meaning)| *meaning)
}
