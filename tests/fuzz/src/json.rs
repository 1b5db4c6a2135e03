//! JSON: arbitrary text is refused or has a normal form that is stable; documents of a generated
//! form are taken apart into the sub-columns of a segment and come back byte by byte. The segment is
//! then damaged like any other, see [`crate::segment`].

use crate::input::Input;
use crate::segment;
use nacre_segment::ColumnSpec;
use nacre_types::json::{Token, Tokens, Writer, check, is_normal, normal};
use nacredb::host::memory::MemoryStore;
use nacredb::{DataType, Value};

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    if input.one_in(3) {
        text(&String::from_utf8_lossy(input.rest()));
        return;
    }
    let rows = match input.byte() {
        0..=229 => 40 + input.below(200),
        _ => 4_000 + input.below(3_000),
    };
    let nulls = input.pick(&[0u64, 0, 10, 60]);
    let form = Form::of(&mut input, 4);
    let mut random = Random(input.integer() as u64);
    let document = |_| match random.below(100) < nulls {
        true => Value::Null,
        false => {
            let mut document = String::new();
            form.write(&mut random, &mut document);
            text(&document);
            Value::Json(normal(&document).expect("what was generated is JSON").into_owned())
        }
    };
    let documents: Vec<Value> = (0..rows).map(document).collect();
    let specs = [ColumnSpec { id: 1, data_type: DataType::Json, nullable: true }];
    segment::one(&MemoryStore::new(), &mut input, &specs, &[documents], None);
}

/// Checks what holds for any text.
fn text(text: &str) {
    let Ok(form) = normal(text) else {
        assert!(check(text).is_err() && !is_normal(text), "a text is refused by all");
        return;
    };
    assert!(check(text).is_ok() && is_normal(&form), "a normal form is normal");
    assert_eq!(normal(&form).expect("a normal form is JSON"), form, "and its own normal form");
    assert_eq!(is_normal(text), text == form, "only a normal form is normal");
    // Tokens say the same as the text, but for lone surrogates.
    if !form.contains("\\ud") {
        let (mut tokens, mut writer) = (Tokens::new(&form), Writer::default());
        while let Some(token) = tokens.next().expect("a normal form is JSON") {
            writer.token(&token);
        }
        assert_eq!(writer.finish(), form, "what is written reads back");
    }
    let mut tokens = Tokens::new(text);
    assert_ne!(tokens.next().expect("JSON"), None::<Token<'_>>, "JSON has a token");
    tokens.finish().expect("JSON ends");
    assert_eq!(tokens.next().expect("JSON"), None, "and one value");
}

/// What documents look like.
enum Form {
    Integer(u64),
    One(&'static [&'static str]),
    Text,
    Array(Box<Form>, u64),
    /// Keys, the `n` of a key that one of `n` documents has, and values; whether their order varies.
    Object(Vec<(&'static str, u64, Form)>, bool),
    Either(Vec<Form>),
    /// A key of its own in each document.
    Odd,
}

const SCALARS: &[&[&str]] = &[
    &["null"],
    &["true", "false"],
    &["1.5", "0.25", "1e300", "-0.0"],
    &["1", "1.0", "1e0", "-0", "12.50", "18446744073709551616"],
    &[
        r#""""#,
        r#""a""#,
        r#""\n\"""#,
        r#""\ud800""#,
        r#""\u0041""#,
        "\"é\u{1f600}\"",
        r#""\\ud800""#,
    ],
    &["{}", "[]", "[[]]", "[{}]", "null"],
];
const KEYS: &[&str] =
    &["\"a\"", "\"b\"", "\"long key\"", "\"\"", "\"\\ud800\"", "\"\\u0062\"", "\"é\"", "\"a\""];

impl Form {
    fn of(input: &mut Input<'_>, levels: usize) -> Form {
        let below = |input: &mut Input<'_>| Form::of(input, levels - 1);
        match input.below(if levels == 0 { 6 } else { 16 }) {
            0 | 1 => Form::Integer(input.integer() as u64),
            2..=4 => Form::One(input.pick(SCALARS)),
            5 => Form::Text,
            6..=8 => Form::Array(Box::new(below(input)), input.pick(&[1, 2, 3, 9])),
            9 => Form::Either((0..2 + input.below(3)).map(|_| below(input)).collect()),
            10 => Form::Odd,
            _ => {
                let key = |input: &mut Input<'_>| {
                    (input.pick(KEYS), input.pick(&[1, 1, 2, 40]), below(input))
                };
                let keys = (0..input.below(7)).map(|_| key(input)).collect();
                Form::Object(keys, input.one_in(4))
            }
        }
    }

    fn write(&self, random: &mut Random, out: &mut String) {
        match self {
            Form::Integer(most) => out.push_str(&(random.below((*most).max(1)) as i64).to_string()),
            Form::One(of) => out.push_str(of[random.below(of.len() as u64) as usize]),
            Form::Text => out.push_str(&format!("\"text {:x}\"", random.below(1 << 30))),
            Form::Odd => out.push_str(&format!("{{\"k{:x}\": [1]}}", random.below(1 << 40))),
            Form::Either(of) => of[random.below(of.len() as u64) as usize].write(random, out),
            Form::Array(element, most) => {
                out.push('[');
                for at in 0..random.below(most + 1) {
                    out.push_str(if at > 0 { ", " } else { "" });
                    element.write(random, out);
                }
                out.push(']');
            }
            Form::Object(keys, turned) => {
                let mut keys: Vec<_> =
                    keys.iter().filter(|(_, one_in, _)| random.below(*one_in) == 0).collect();
                if *turned && random.below(2) == 0 {
                    keys.reverse();
                }
                out.push('{');
                for (at, (key, _, form)) in keys.into_iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(key);
                    out.push(':');
                    form.write(random, out);
                }
                out.push('}');
            }
        }
    }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x14057b7ef767814f);
        (self.0 >> 20) % limit
    }
}
