//! Operators and functions of JSON become few functions, whose results have the types that
//! comparisons ask for; and where a `?` is a parameter.

use super::{check, fails, plan, typed};
use nacre_types::DataType;

#[test]
fn parts_of_documents_are_few_functions() {
    check(
        "select doc->'a.b', doc #> '{a,0}', json_extract_json(doc, 'a', -1) from t",
        "
        Scan t [json_extract(doc, 'a.b'), json_extract(doc, '{a,0}'), json_extract(doc, '$.\"a\"[-1]')]
        ",
    );
    check(
        "select doc->>a from t",
        "
        Project [json_extract_string(doc, '$[' || cast(a as TEXT) || ']') as json_extract_string(doc, '$[' || a || ']')]
          Scan t [a, doc]
        ",
    );
    check(
        "select doc->>name from t",
        "
        Project [json_extract_string(doc, json_path(name))]
          Scan t [name, doc]
        ",
    );
    typed("doc->'a'", "JSON");
    typed("doc->>'a'", "TEXT");
    typed("json_value(doc, 'a' returning decimal(5, 2))", "DECIMAL(5,2)");
    typed("doc - 'a'", "JSON");
}

#[test]
fn scans_compute_parts_of_documents() {
    // A cast that may fail has its numbers, and the text of everything else.
    check(
        "select sum((doc->>'n')::int), count(*) from t where doc->>'s' like 'a%'",
        "
        Aggregate by [] compute [sum(coalesce(cast(json_number(doc, 'n') as INT), cast(json_no_integer(doc, 'n') as INT))), count(*)]
          Scan t [json_extract_string(doc, 's'), json_number(doc, 'n'), json_no_integer(doc, 'n')] where json_extract_string(doc, 's') like 'a%'
        ",
    );
    // Sorts and joins pass them on, and paths into parts are one path.
    check(
        "select doc->'a'->>'b' from t order by doc->>'c' limit 3",
        "
        Project [json_extract_string(doc, '$.\"a\".\"b\"') as json_extract_string(json_extract(doc, 'a'), 'b')]
          Limit 3
            Sort [json_extract_string(doc, 'c')] limit 3
              Scan t [json_extract_string(doc, '$.\"a\".\"b\"'), json_extract_string(doc, 'c')]
        ",
    );
    check(
        "select x.doc->>'a', y.id from t x left join t y on x.doc->>'k' = y.doc->'k'->>'j'",
        "
        Project [json_extract_string(doc, 'a'), id]
          LeftJoin on json_extract_string(doc, 'k') = json_extract_string(doc, '$.\"k\".\"j\"')
            Scan t [json_extract_string(doc, 'k'), json_extract_string(doc, 'a')]
            Scan t [id, json_extract_string(doc, '$.\"k\".\"j\"')]
        ",
    );
    check(
        "select v, doc->>'s' from t, json_table(doc, '$.i[*]' columns (v int path '$.v')) j",
        "
        Project [json_value(value, '$.v') as v, json_extract_string(doc, 's')]
          JsonRows json_table(json_extract(doc, '$.\"i\"'), '$[*]') [json_value(value, '$.v')]
            Scan t [json_extract(doc, '$.\"i\"'), json_extract_string(doc, 's')]
        ",
    );
    // A row that is found by its key, and a path that may name several values, take the document.
    check(
        "select doc->>'a' from t where id = 5",
        "
        Project [json_extract_string(doc, 'a')]
          Scan t [id, doc] where id = 5
        ",
    );
    check(
        "select doc->'a[*]', doc->>'$' from t",
        "
        Project [json_extract(doc, 'a[*]'), json_extract_string(doc, '$')]
          Scan t [doc]
        ",
    );
}

#[test]
fn comparisons_type_parts_of_documents() {
    for (condition, filter) in [
        ("doc->>'n' = 5", "json_value(doc, 'n') = 5.0"),
        ("5 < doc->'n'", "json_value(doc, 'n') > 5.0"),
        ("doc = 1.5", "json_value(doc, '$') = 1.5"),
        ("doc->>'n' = 9007199254740993", "json_value(doc, 'n') = 9007199254740993.000000000"),
        ("doc->>'n' = a", "json_value(doc, 'n') = cast(a as DOUBLE)"),
        ("doc->>'n' = day", "json_value(doc, 'n') = day"),
        ("doc->>'n' = flag", "json_value(doc, 'n') = flag"),
        ("doc->>'n' = name", "json_extract_string(doc, 'n') = name"),
        ("doc->>'n' in (1, 2.5)", "json_value(doc, 'n') in (1.0, 2.5)"),
    ] {
        let (statement, _) = plan(&format!("select id from t where {condition}"), &[]).unwrap();
        let lines = crate::explain(&statement).join("\n");
        assert!(lines.ends_with(&format!("where {filter}")), "{condition}:\n{lines}");
    }
    let (_, types) = plan("select id from t where doc->>'n' = ?", &[DataType::Int64]).unwrap();
    assert_eq!(types, [DataType::Float64]);
}

#[test]
fn a_question_mark_is_an_operator_between_operands_only() {
    for (sql, parameters) in [
        ("select id from t where doc ? 'a'", 0),
        ("select id from t where doc ? ?", 1),
        ("select id from t where doc->'a' ?| '{a,b}' and doc ?& ?", 1),
        ("select ? from t where name like ? escape 'x' limit ? offset ?", 4),
        ("select id from t where name between ? and ? or name in (?, 'x')", 3),
        ("select case ? when ? then ? else ? end from t", 4),
        ("select ? as x, 'a' from t where ? = 'a'", 2),
    ] {
        let parsed = crate::parse(sql).unwrap();
        assert_eq!(parsed[0].parameter_names().len(), parameters, "{sql}");
    }
}

#[test]
fn keys_and_values_may_be_separated_by_a_colon() {
    let sql = "select json_object('a':name, 'b' : :b, 'c' value 1) from t";
    assert_eq!(crate::parse(sql).unwrap()[0].parameter_names(), [Some("b".to_string())]);
}

#[test]
fn what_is_missing_says_so() {
    for (sql, error) in [
        (
            "select doc @@ '$.a' from t",
            "0A000 unsupported: operator @@ is not supported (line 1, column 8)",
        ),
        (
            "select json_search(doc, 'one', 'a') from t",
            "0A000 unsupported: function json_search is not supported (line 1, column 8)",
        ),
        (
            "select json_value(doc, '$.a' default 0 on empty) from t",
            "0A000 unsupported: ON in a query function of JSON is not supported (line 1, column 40)",
        ),
        (
            "select json_query(doc, '$.a' with wrapper) from t",
            "0A000 unsupported: WITH in a query function of JSON is not supported (line 1, column 30)",
        ),
        (
            "select upper(name null on null) from t",
            "0A000 unsupported: NULL ON NULL in upper is not supported (line 1, column 8)",
        ),
        (
            "select * from json_table(doc, '$' columns (a int path '$.a' error on empty)) as j, t",
            "42703 not_found: no column `doc` (line 1, column 26)",
        ),
        (
            "select * from json_table('1', '$' columns (a int path '$.a' error on empty)) as j",
            "0A000 unsupported: ERROR ON EMPTY is not supported",
        ),
    ] {
        fails(sql, error);
    }
}
