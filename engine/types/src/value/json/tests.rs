//! What is JSON and what is not, and the normal form, in the manner of JSONTestSuite: `y_` must be
//! accepted, `n_` refused; what is left to the implementation (`i_`) is decided here.

use super::{Token, Tokens, Writer, check, is_normal, normal, quoted, unquoted};
use crate::ErrorKind;
use crate::limits::MAX_JSON_DEPTH;

#[test]
fn json_is_accepted() {
    for text in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "12",
        "-1.5",
        "1e3",
        "1E+3",
        "1e-3",
        "0.1e1",
        "20e1",
        "123456789012345678901234567890",
        "1e999",
        "-1e-999",
        "\"\"",
        "\" \"",
        "\"\u{7f}\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        r#""\u0000""#,
        r#""\uD834\uDD1E""#,
        r#""\ud800""#,
        r#""\uDd1e\uD834""#,
        "\"\u{10ffff}\"",
        "\"\u{feff}\"",
        "[]",
        "[ ]",
        "{}",
        "{ }",
        "[[]]",
        "[1,2]",
        "[null, 1, \"1\", {}]",
        "\t\n\r [1\n]\r\n",
        r#"{"":0}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":{"b":[{"c":null}]}}"#,
        "[1.0,1,1e0]",
        r#"["a",1]"#,
    ] {
        check(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn other_text_is_refused_at_the_byte_that_is_wrong() {
    for (text, at) in [
        ("", 0),
        (" ", 1),
        ("nul", 3),
        ("nule", 3),
        ("True", 0),
        ("NaN", 0),
        ("-", 1),
        ("+1", 0),
        ("01", 1),
        ("-01", 2),
        ("1.", 2),
        (".5", 0),
        ("1.e1", 2),
        ("1e", 2),
        ("1e+", 3),
        ("0x1", 1),
        ("Infinity", 0),
        ("1 2", 2),
        ("\"", 1),
        ("\"a", 2),
        ("'a'", 0),
        ("\"\t\"", 1),
        ("\"\\x\"", 1),
        ("\"\\u00g0\"", 1),
        ("\"\\u00\"", 1),
        ("\"\\", 1),
        ("[", 1),
        ("]", 0),
        ("[1", 2),
        ("[1,", 3),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1}", 2),
        ("[1:2]", 2),
        ("{", 1),
        ("}", 0),
        ("{1:1}", 1),
        ("{a:1}", 1),
        (r#"{"a"}"#, 4),
        (r#"{"a":}"#, 5),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":1"#, 6),
        (r#"{"a":1]"#, 6),
        (r#"{"a" 1}"#, 5),
        ("{,}", 1),
        (r#"{"a":1 "b":2}"#, 7),
        ("[]]", 2),
        ("{}}", 2),
        ("[1]x", 3),
        ("/**/1", 0),
        ("\u{feff}1", 0),
        ("\u{c}1", 0),
        ("\u{a0}1", 0),
        ("[\u{0}]", 1),
        ("1\u{0}", 1),
    ] {
        let error = check(text).expect_err(text);
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Type, "22032"), "{text}");
        assert_eq!(error.message(), format!("invalid JSON at byte {at}"), "{text}");
        assert!(normal(text).is_err() && !is_normal(text), "{text}");
    }
}

#[test]
fn depth_has_a_limit_and_takes_no_stack() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    check(&nested(MAX_JSON_DEPTH)).unwrap();
    assert_eq!(check(&nested(MAX_JSON_DEPTH + 1)).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(check(&"[".repeat(1 << 20)).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(check(&"[".repeat(100)).unwrap_err().message(), "invalid JSON at byte 100");
    let objects = r#"{"a":1,"a":"#.repeat(MAX_JSON_DEPTH) + "2" + &"}".repeat(MAX_JSON_DEPTH);
    let expected = r#"{"a":"#.repeat(MAX_JSON_DEPTH) + "2" + &"}".repeat(MAX_JSON_DEPTH);
    assert_eq!(normal(&objects).unwrap(), expected);
}

#[test]
fn normal_forms() {
    for (text, expected) in [
        (" [ 1 , 2.0 , 1E3 ] ", "[1,2.0,1E3]"),
        ("{ \"a\" : { } }", r#"{"a":{}}"#),
        (r#""\u0041\/\u00e9\u20ac""#, "\"A/é€\""),
        (r#""\u000a\u0008\u001F\u007f""#, "\"\\n\\b\\u001f\u{7f}\""),
        (r#""\uD834\uDD1E""#, "\"\u{1d11e}\""),
        (r#""\uD834\uDd1E""#, "\"\u{1d11e}\""),
        (r#""\uDEAD\uD834x""#, r#""\udead\ud834x""#),
        (r#""\uD834\uD834\uDD1E""#, "\"\\ud834\u{1d11e}\""),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"b":[1,{"x":1,"x":2}],"a":1,"\u0062":{"y":1}}"#, r#"{"b":{"y":1},"a":1}"#),
        (r#"{"":1,"a":[{"":1, "":{"":[]}}],"":2}"#, r#"{"":2,"a":[{"":{"":[]}}]}"#),
        (r#"{"\ud800":1,"\uD800":2,"\ud801":3}"#, r#"{"\ud800":2,"\ud801":3}"#),
        ("-0", "-0"),
    ] {
        let found = normal(text).unwrap();
        assert_eq!(found, expected, "{text}");
        assert!(is_normal(&found), "{found}");
        assert!(matches!(normal(&found).unwrap(), std::borrow::Cow::Borrowed(_)), "{found}");
        assert_eq!(is_normal(text), text == expected, "{text}");
    }
}

#[test]
fn many_keys_are_compared() {
    let keys = |numbers: std::ops::Range<usize>| {
        numbers.map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",")
    };
    let distinct = format!("{{{}}}", keys(0..100_000));
    assert!(is_normal(&distinct));
    let twice = format!("{{{},{}}}", keys(0..100_000), keys(50_000..100_000));
    assert_eq!(normal(&twice).unwrap(), distinct);
}

#[test]
fn tokens_have_places() {
    let text = r#" {"a\n": [1, {"b": 2}], "c" : "x" }"#;
    let mut tokens = Tokens::new(text);
    assert_eq!(tokens.next().unwrap(), Some(Token::ObjectStart));
    assert_eq!(tokens.next().unwrap(), Some(Token::Key("a\n".into())));
    assert_eq!((tokens.text(), tokens.depth()), (r#""a\n""#, 1));
    assert_eq!(tokens.next().unwrap(), Some(Token::ArrayStart));
    let start = tokens.range().start;
    tokens.finish().unwrap();
    assert_eq!(&text[start..tokens.offset()], r#"[1, {"b": 2}]"#);
    assert_eq!(tokens.value().unwrap(), Some("\"x\""));
    assert!(!tokens.is_normal());
    assert_eq!(tokens.value().unwrap(), None);
    assert_eq!(tokens.value().unwrap(), None);
    let mut elements = Tokens::new("[[1],2,{}]");
    elements.next().unwrap();
    let found: Vec<&str> = std::iter::from_fn(|| elements.value().unwrap()).collect();
    assert_eq!(found, ["[1]", "2", "{}"]);
    assert_eq!(elements.next().unwrap(), None);
    assert!(elements.is_normal());
}

#[test]
fn what_is_written_reads_back() {
    let text = r#"{"a":[1,"\u0001\"é",[],{}],"b":{"c":null,"d":true},"e":-1.50}"#;
    let (mut tokens, mut writer) = (Tokens::new(text), Writer::default());
    while let Some(token) = tokens.next().unwrap() {
        writer.token(&token);
    }
    assert_eq!(writer.finish(), text);
    for characters in ["", "a", "\"\\/\u{0}\u{8}\n\u{7f}é\u{10ffff}"] {
        assert_eq!(unquoted(&quoted(characters)), characters);
        assert!(is_normal(&quoted(characters)));
    }
    assert_eq!(unquoted(r#""\ud800a\u0000""#), "\u{fffd}a\u{0}");
}
