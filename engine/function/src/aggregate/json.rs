//! Aggregates that build JSON of the rows of a group.

use crate::entry::aggregate::Accumulation::Collected;
use crate::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateFunction, Collection, aggregate,
};
use crate::entry::coerce;
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::json::convert::to_json;
use crate::vector::room::check_length;
use nacre_types::json::{Writer, normal};
use nacre_types::{DataType, Result, Value};

static JSON_AGG: AggregateFunction = aggregate(
    &["json_agg", "jsonb_agg", "json_arrayagg", "json_group_array"],
    Doc::new(
        "json_agg(x [order by …]), jsonb_agg, json_arrayagg, json_group_array",
        "An array of all values, with null for nulls.",
        "json_agg(s order by x desc) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "[\"b\",\"b\",\"a\",null]",
    ),
    |binding, mut arguments| {
        arguments.refuse_intervals(binding)?;
        let [value] = arguments.take()?;
        let value = coerce::json_value(binding, value)?;
        // Rows count by the last argument, which is never null.
        let counts = binding.constant(Value::Boolean(true), DataType::Boolean);
        let arguments = arguments.with(vec![value, counts]);
        Ok(binding.aggregate(&JSON_AGG, arguments, DataType::Json))
    },
    Collected { deciding: 1, compute: array },
);

static JSON_OBJECT_AGG: AggregateFunction = aggregate(
    &["json_object_agg", "jsonb_object_agg", "json_objectagg", "json_group_object"],
    Doc::new(
        "json_object_agg(key, value [order by …]), jsonb_object_agg, json_objectagg, \
         json_group_object",
        "An object; of equal keys the last value counts, and null keys are left out.",
        "json_object_agg(s, x order by x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "{\"a\":1,\"b\":4}",
    ),
    pairs,
    Collected { deciding: 0, compute: object },
);

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[&JSON_AGG, &JSON_OBJECT_AGG];

fn pairs(
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let [key, value] = arguments.take()?;
    let key = coerce::text(binding, key)?;
    let value = coerce::json_value(binding, value)?;
    let arguments = arguments.with(vec![key, value]);
    Ok(binding.aggregate(&JSON_OBJECT_AGG, arguments, DataType::Json))
}

fn array(rows: &Collection<'_>) -> Result<Value> {
    let mut writer = Writer::default();
    writer.array_start();
    for value in rows.values() {
        writer.value(&to_json(&value)?);
        check_length(writer.len())?;
    }
    writer.array_end();
    Ok(Value::Json(writer.finish()))
}

fn object(rows: &Collection<'_>) -> Result<Value> {
    let mut writer = Writer::default();
    writer.object_start();
    for row in rows.order {
        writer.key(&rows.argument(0, *row).to_string());
        writer.value(&to_json(&rows.argument(1, *row))?);
        check_length(writer.len())?;
    }
    writer.object_end();
    Ok(Value::Json(normal(&writer.finish())?.into_owned()))
}
