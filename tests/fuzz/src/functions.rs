//! Calls of functions, operators and casts with extreme arguments: each returns a value or a typed error,
//! in bounded memory and time, and the session works afterwards.

use crate::input::Input;
use crate::subject::{Subject, options, printed};
use nacre_builtin::registry;
use nacredb::{ErrorKind, Options};

/// Calls in one input.
const CALLS: usize = 60;

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut subject = Subject::new(Options { segment_rows: 4, ..options() });
    subject.must("create table t (k bigint primary key, a bigint, s text)");
    subject
        .must("insert into t values (1, 9223372036854775807, 'a'), (2, null, ''), (3, -1, 'ä€')");
    for _ in 0..CALLS {
        if input.is_empty() {
            break;
        }
        let sql = call(&mut input);
        if let Ok(result) = subject.run(&sql) {
            // A value of 64 bits may not fit Arrow's type.
            let kind = result.to_arrow_ipc().err().map(|error| error.kind());
            assert!(matches!(kind, None | Some(ErrorKind::Type)), "{sql}: as Arrow: {kind:?}");
        }
        assert_eq!(printed(&subject.must("select 1")), [["1"]], "{sql}");
    }
    subject.check();
}

/// A statement with one call.
fn call(input: &mut Input<'_>) -> String {
    let scalars: Vec<&str> = registry::scalar_names().collect();
    let aggregates: Vec<&str> = registry::aggregate_names().collect();
    let windows: Vec<&str> = registry::window_names().collect();
    match input.below(16) {
        0 => format!("select {} {} {}", value(input), input.pick(OPERATORS), value(input)),
        1 => format!("select cast({} as {})", value(input), input.pick(TYPES)),
        2 => format!("select {}({}) from t", input.pick(&aggregates), arguments(input, 3)),
        3 => {
            let (name, order) = (input.pick(&windows), input.pick(&["k", "a desc", "s, k"]));
            format!("select {name}({}) over (order by {order}) from t", arguments(input, 3))
        }
        4 => format!("select count(*) from (select {} limit 3) x", rows_of(input)),
        5 => format!("select {}", postfix(input)),
        _ => {
            let name = input.pick(&scalars);
            let takes_part = registry::scalar(name).is_some_and(|entry| entry.takes_part(3));
            let part = match takes_part || input.one_in(24) {
                true => format!("{}, ", input.pick(PARTS)),
                false => String::new(),
            };
            format!("select {name}({part}{})", arguments(input, 4))
        }
    }
}

/// A function that returns rows.
fn rows_of(input: &mut Input<'_>) -> String {
    let name = input.pick(&["generate_series", "range", "json_each", "json_tree", "unnest"]);
    format!("* from {name}({})", arguments(input, 3))
}

fn postfix(input: &mut Input<'_>) -> String {
    let first = value(input);
    match input.below(6) {
        0 => format!("{first} between {} and {}", value(input), value(input)),
        1 => format!("{first} in ({}, {})", value(input), value(input)),
        2 => format!("-({first})"),
        3 => format!("~({first})"),
        4 => format!("extract({} from {first})", input.pick(PARTS)),
        _ => format!("{first} like {} escape {}", value(input), value(input)),
    }
}

fn arguments(input: &mut Input<'_>, most: usize) -> String {
    let count = input.below(most + 1);
    (0..count).map(|_| value(input)).collect::<Vec<_>>().join(", ")
}

fn value(input: &mut Input<'_>) -> &'static str {
    input.pick(VALUES)
}

const VALUES: &[&str] = &[
    "null",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "-128",
    "65536",
    "2147483647",
    "-2147483648",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "100000000000000000",
    "99999999999999999999999999999999999999",
    "0.5",
    "-1.5",
    "0.000000000000000000000000000001",
    "1e0",
    "1e308",
    "-1e308",
    "5e-324",
    "1e300 * 1e300",
    "''",
    "'a'",
    "'ä€😀'",
    "'%'",
    "'%_a'",
    "'[a-'",
    "'(a*)*b'",
    "'%s %d %.999999999f %999999999d'",
    "'0'",
    "'1.5'",
    "'1e400'",
    "'9223372036854775808'",
    "'2024-02-29'",
    "'0001-01-01'",
    "'9999-12-31 23:59:59.999999'",
    "'12:00'",
    "'838:59:59'",
    "'1 month'",
    "'178956970 years'",
    "'[1, {\"a\": [null, 1e999, \"\"]}]'",
    "'{\"a\": {\"b\": 1}}'",
    "'$.a[0]'",
    "'$[9223372036854775807]'",
    "'$..*'",
    "'a.b[4294967296]'",
    "'day'",
    "'UTC'",
    "repeat('ab', 40000)",
    "repeat('[', 5000)",
    "x''",
    "x'00ff'",
    "repeat(x'00', 70000)",
    "true",
    "false",
    "date '0001-01-01'",
    "date '9999-12-31'",
    "timestamp '0001-01-01'",
    "timestamp '9999-12-31 23:59:59.999999'",
    "time '23:59:59.999999'",
    "interval '1' month",
    "interval '100000' year",
    "interval '9223372036854775807' microsecond",
    "cast('{\"a\": [1, 2.5, null, {\"b\": \"c\"}]}' as json)",
    "cast('null' as json)",
];

const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "div",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "=",
    "<",
    "<=>",
    "like",
    "regexp",
    "glob",
    "->",
    "->>",
    "#>",
    "#>>",
    "@>",
    "<@",
    "is distinct from",
    "and",
    "or",
];

const TYPES: &[&str] = &[
    "tinyint",
    "smallint unsigned",
    "int",
    "bigint",
    "bigint unsigned",
    "float",
    "double",
    "decimal(38, 10)",
    "decimal(1, 0)",
    "decimal(38, 38)",
    "varchar(1)",
    "char(3)",
    "text",
    "varbinary(2)",
    "blob",
    "date",
    "time",
    "timestamp",
    "timestamp(0)",
    "boolean",
    "json",
    "uuid",
];

const PARTS: &[&str] = &[
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "microsecond",
    "week",
    "quarter",
    "epoch",
    "dow",
    "isoyear",
    "century",
    "day_microsecond",
    "'day'",
    "nonsense",
];
