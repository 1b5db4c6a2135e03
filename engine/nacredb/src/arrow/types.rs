//! Data types and their Arrow types.

use arrow_schema::{DataType as ArrowType, Field as ArrowField, TimeUnit};
use nacre_sql::Field;
use nacre_types::{DataType, Error, Result};

/// Metadata of a field that marks text as JSON.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const JSON_EXTENSION: &str = "arrow.json";

/// The Arrow type of a data type.
///
/// ```
/// use nacredb::DataType;
/// use nacredb::arrow::type_to_arrow;
///
/// assert_eq!(type_to_arrow(DataType::Int64).to_string(), "Int64");
/// assert_eq!(type_to_arrow(DataType::TEXT).to_string(), "Utf8");
/// ```
pub fn type_to_arrow(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Null => ArrowType::Null,
        DataType::Boolean => ArrowType::Boolean,
        DataType::Int8 => ArrowType::Int8,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 => ArrowType::Int64,
        DataType::UInt8 => ArrowType::UInt8,
        DataType::UInt16 => ArrowType::UInt16,
        DataType::UInt32 => ArrowType::UInt32,
        DataType::UInt64 => ArrowType::UInt64,
        DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
        DataType::Text { .. } | DataType::Json | DataType::Uuid => ArrowType::Utf8,
        DataType::Binary { .. } => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Interval => ArrowType::Interval(arrow_schema::IntervalUnit::MonthDayNano),
    }
}

/// The data type of an Arrow field. A dictionary has the type of its values.
///
/// Errors: `unsupported` for nested types, half-precision floats and 256-bit decimals.
///
/// ```
/// use arrow_schema::{DataType as ArrowType, Field};
/// use nacredb::DataType;
/// use nacredb::arrow::type_from_arrow;
///
/// let name = Field::new("name", ArrowType::LargeUtf8, true);
/// assert_eq!(type_from_arrow(&name)?, DataType::TEXT);
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn type_from_arrow(field: &ArrowField) -> Result<DataType> {
    Ok(match field.data_type() {
        ArrowType::Null => DataType::TEXT,
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Int8,
        ArrowType::Int16 => DataType::Int16,
        ArrowType::Int32 => DataType::Int32,
        ArrowType::Int64 => DataType::Int64,
        ArrowType::UInt8 => DataType::UInt8,
        ArrowType::UInt16 => DataType::UInt16,
        ArrowType::UInt32 => DataType::UInt32,
        ArrowType::UInt64 => DataType::UInt64,
        ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Decimal128(precision, scale) if *scale >= 0 => {
            DataType::Decimal { precision: *precision, scale: *scale as u8 }
        }
        ArrowType::Utf8
            if field.metadata().get(EXTENSION_NAME).is_some_and(|n| n == JSON_EXTENSION) =>
        {
            DataType::Json
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::TEXT,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => DataType::BLOB,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Dictionary(_, value) => {
            return type_from_arrow(&field.clone().with_data_type((**value).clone()));
        }
        other => {
            return Err(Error::unsupported(format!(
                "Arrow type {other} of column {}",
                field.name()
            )));
        }
    })
}

/// The Arrow field of a result column.
///
/// ```
/// use nacredb::arrow::field_to_arrow;
/// use nacredb::{DataType, Field};
///
/// let column = Field { name: "id".into(), data_type: DataType::Int64, nullable: false };
/// let field = field_to_arrow(&column);
/// assert_eq!((field.name().as_str(), field.is_nullable()), ("id", false));
/// ```
pub fn field_to_arrow(field: &Field) -> ArrowField {
    let arrow = ArrowField::new(&field.name, type_to_arrow(field.data_type), field.nullable);
    if field.data_type == DataType::Json {
        return arrow.with_metadata([(EXTENSION_NAME, JSON_EXTENSION)]);
    }
    arrow
}
