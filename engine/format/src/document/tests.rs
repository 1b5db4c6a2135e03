//! Documents taken apart and put together again, without a file.

use super::{Inference, Kind, MAX_LEVEL, Schema, Shredder, Source, SubColumn, assemble};
use nacre_column::Scalar;
use nacre_types::Result;
use nacre_types::bytes::Reader;
use nacre_types::hash::hash_u64;
use nacre_types::json::{is_normal, normal};
use nacre_types::limits::BLOCK_ROWS;

/// Sub-columns in memory.
struct InMemory<'a>(&'a [SubColumn]);

impl Source for InMemory<'_> {
    fn get(&self, column: usize, row: usize) -> Result<Scalar<'_>> {
        let (values, validity) = &self.0[column].blocks[row / BLOCK_ROWS];
        Ok(match validity.as_ref().is_none_or(|bits| bits.get(row % BLOCK_ROWS)) {
            true => Scalar::at(values, row % BLOCK_ROWS),
            false => Scalar::Null,
        })
    }
}

/// The nodes of documents, if they pay.
fn infer(rows: &[Option<String>]) -> Option<Schema> {
    let mut inference = Inference::begun();
    for row in rows.iter().flatten() {
        assert!(inference.add(row.as_bytes()), "{row}");
    }
    inference.finish()
}

fn shred(given: &[Option<String>], schema: Schema) -> (Schema, Vec<SubColumn>) {
    let mut shredder = Shredder::new(schema);
    given.iter().for_each(|row| shredder.add(row.as_ref().map(String::as_bytes)).unwrap());
    let (schema, columns) = shredder.finish();
    for (column, (node, kind)) in columns.iter().zip(schema.each_column()) {
        assert_eq!((column.node, column.kind), (node, kind));
        let rows: usize = column.blocks.iter().map(|(values, _)| values.len()).sum();
        assert_eq!(rows, schema.nodes[node].rows);
    }
    let mut bytes = Vec::new();
    schema.encode(&mut bytes);
    let mut reader = Reader::new(&bytes, "schema");
    assert_eq!(Schema::decode(&mut reader, given.len()).unwrap(), schema);
    reader.finish().unwrap();
    (schema, columns)
}

/// Checks that every document comes back; returns the kinds of its sub-columns by path.
fn round_trip(rows: &[Option<String>]) -> Vec<String> {
    let schema = infer(rows).expect("documents that do not pay");
    let (schema, columns) = shred(rows, schema);
    for (at, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        let found = assemble(&schema, &InMemory(&columns), (0, at), String::new()).unwrap();
        assert_eq!(found, *row, "row {at}");
    }
    let name = |(node, kind): (usize, Kind)| format!("{} {}", schema.path(node), kind.name());
    let mut names: Vec<String> = schema.each_column().map(name).collect();
    names.sort();
    names
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<Option<String>> {
    let text = |text: &&str| Some(normal(text).unwrap().into_owned());
    texts.iter().map(text).collect()
}

#[test]
fn an_order_has_columns() {
    let order = r#"{"id":1,"time":"2022-11-17 23:03:54","lineitems":[{"line_num":1,"SKU":688968,
        "description":"Apple iPhone 14 Plus","qty":1},{"line_num":2,"SKU":6514052,"description":
        "Batteries","qty":3}]}"#;
    assert_eq!(
        round_trip(&texts([order, order])),
        [
            " shape",
            ".id integer",
            ".lineitems length",
            ".lineitems start",
            ".lineitems[] shape",
            ".lineitems[].SKU integer",
            ".lineitems[].description string",
            ".lineitems[].line_num integer",
            ".lineitems[].qty integer",
            ".time string",
        ]
    );
}

#[test]
fn what_varies_comes_back() {
    round_trip(&texts([
        r#"{"a":1,"b":null}"#,
        r#"{"b":1.0,"a":"x"}"#,
        r#"{"a":1.50,"b":[]}"#,
        r#"{"a":{},"b":{}}"#,
        r#"{"a":[1,[2,[3,"\ud800"]],{"c":[]}],"b":{"a":{"b":true}}}"#,
        r#"{}"#,
        "null",
        "[]",
        "1",
        r#""x""#,
        "true",
        "[[],[[]],[[],[]]]",
        "-0",
        "-0.0",
        "1e999",
        r#"{"":{"":{"":""}}}"#,
        r#"{"\ud800":1,"a":"\u0000\"\\\/é"}"#,
        "18446744073709551616",
    ]));
}

#[test]
fn nulls_are_no_documents() {
    let mut rows = texts([r#"{"a":1}"#, r#"{"a":null}"#, "null"]);
    rows.insert(1, None);
    rows.push(None);
    round_trip(&rows);
}

#[test]
fn rare_keys_are_the_rest() {
    let mut rows: Vec<Option<String>> =
        (0..30_000).map(|n| Some(format!("{{\"a\":{n},\"b\":[{n}]}}"))).collect();
    rows[7] = Some(r#"{"x":1,"a":2,"y":{"z":[]}}"#.into());
    rows[20_000] = Some(r#"{"a":2,"y":"{}","b":[{"q":1},{"a":2,"r":3}]}"#.into());
    let columns = round_trip(&rows);
    assert!(columns.contains(&" rest".to_string()), "{columns:?}");
    assert!(columns.contains(&".b[] rest".to_string()), "{columns:?}");
    assert!(!columns.iter().any(|name| name.contains(".x") || name.contains(".y")), "{columns:?}");
}

#[test]
fn limits_lead_to_text() {
    // More levels than nodes may have.
    let deep = |levels: usize| "{\"a\":[".repeat(levels) + "1" + &"]}".repeat(levels);
    let columns = round_trip(&[Some(deep(MAX_LEVEL / 2 - 1)), Some(deep(10)), Some("{}".into())]);
    assert!(!columns.iter().any(|name| name.ends_with("rest") || name.ends_with("other")));
    let mut rows = vec![Some(deep(5)); 400];
    rows.push(Some(deep(MAX_LEVEL)));
    let columns = round_trip(&rows);
    assert!(columns.iter().any(|name| name.ends_with("rest") || name.ends_with("other")));
    // More keys than there are nodes.
    let wide = |from: usize, keys: usize| {
        let keys: Vec<String> = (from..from + keys).map(|n| format!("\"k{n}\":{n}")).collect();
        Some(format!("{{{}}}", keys.join(",")))
    };
    let mut rows = vec![wide(0, 900); 20];
    rows.extend([wide(500, 2000), wide(0, 9000)]);
    let columns = round_trip(&rows);
    assert!(columns.contains(&" rest".to_string()) && columns.contains(&" other".to_string()));
}

#[test]
fn documents_that_all_differ_stay_text() {
    let text = |n: u64| {
        let keys = (0..5).map(|k| format!("\"{:x}\":1", hash_u64(n * 5 + k)));
        Some(format!("{{{}}}", keys.collect::<Vec<_>>().join(",")))
    };
    assert!(infer(&(0..50_000).map(text).collect::<Vec<_>>()).is_none());
}

/// A generator of documents, seeded.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = hash_u64(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.0 % limit
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    fn document(&mut self, levels: u64, out: &mut String) {
        match if levels == 0 { self.below(6) } else { self.below(12) } {
            0 => out.push_str("null"),
            1 => out.push_str(self.pick(&["true", "false"])),
            2 => out.push_str(&self.below(1000).to_string()),
            3 => out.push_str(self.pick(&["1.0", "-0", "1.50", "1e3", "0.1", "-7", "1e16"])),
            4 | 5 => out.push_str(self.pick(&[
                "\"\"",
                "\"a\"",
                "\"\\n\"",
                "\"\\ud800\"",
                "\"é\"",
                "\"\\\\ud800\"",
                "\"\\u0000\"",
            ])),
            6..9 => {
                out.push('[');
                for at in 0..self.below(4) {
                    if at > 0 {
                        out.push(',');
                    }
                    self.document(levels - 1, out);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                let mut keys = vec!["a", "b", "c", "\\ud800", "\\\"", "", "é"];
                for at in 0..self.below(5) {
                    if at > 0 {
                        out.push(',');
                    }
                    let key = keys.remove(self.below(keys.len() as u64) as usize);
                    out.push_str(&format!("\"{key}\":"));
                    self.document(levels - 1, out);
                }
                out.push('}');
            }
        }
    }
}

#[test]
fn random_documents_come_back() {
    let mut tested = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let levels = random.below(6);
        let rows: Vec<Option<String>> = (0..1 + random.below(300))
            .map(|_| {
                let mut text = String::new();
                random.document(levels, &mut text);
                assert!(is_normal(&text), "{text}");
                (random.below(10) > 0).then_some(text)
            })
            .collect();
        // Some have so little text that it is as good.
        let Some(schema) = infer(&rows) else { continue };
        tested += 1;
        let (schema, columns) = shred(&rows, schema);
        for (at, row) in rows.iter().enumerate() {
            if let Some(row) = row {
                let found = assemble(&schema, &InMemory(&columns), (0, at), String::new()).unwrap();
                assert_eq!(found, *row, "seed {seed}, row {at}");
            }
        }
    }
    assert!(tested > 40, "{tested} of 60");
}
