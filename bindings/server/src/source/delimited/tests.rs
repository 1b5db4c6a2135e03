//! Tests of the CSV, TSV and TBL reader with well-formed and malformed files.

use super::super::tests::{rows, schema, temp};
use super::super::{Input, TextOptions, open};
use super::*;
use crate::args::FileFormat;
use nacredb::{ErrorKind, Value};
use std::io::Read;

fn records(text: &str) -> Result<Vec<Vec<String>>> {
    // Supplies one byte at a time, so that the buffer is refilled in every state.
    struct Trickle<'a>(&'a [u8]);
    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(1);
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let read_all = |mut reader: Reader<Box<dyn Read + '_>>| {
        let mut out = Vec::new();
        let mut record = Record::default();
        while reader.read(&mut record)? {
            out.push(
                record
                    .texts()?
                    .map(|(t, q)| if q { format!("<{t}>") } else { t.to_owned() })
                    .collect(),
            );
        }
        Ok(out)
    };
    let whole = read_all(Reader::new(Box::new(text.as_bytes()), b',', true));
    let trickled = read_all(Reader::new(Box::new(Trickle(text.as_bytes())), b',', true));
    assert_eq!(whole.as_ref().ok(), trickled.as_ref().ok(), "{text:?}");
    whole
}

#[test]
fn records_and_quotes() {
    for (text, expected) in [
        ("", vec![]),
        ("a,b\n", vec![vec!["a", "b"]]),
        ("a,b", vec![vec!["a", "b"]]),
        ("a,b\r\nc,d\r\n", vec![vec!["a", "b"], vec!["c", "d"]]),
        ("a,\n", vec![vec!["a", ""]]),
        ("a,", vec![vec!["a", ""]]),
        (",\n", vec![vec!["", ""]]),
        ("\n\n", vec![vec![""], vec![""]]),
        ("\"\",\"a\"\"b\"\n", vec![vec!["<>", "<a\"b>"]]),
        ("\"x\ny\",z\r\n", vec![vec!["<x\ny>", "z"]]),
        ("\"x\"\r\n\"y\"", vec![vec!["<x>"], vec!["<y>"]]),
        ("a\"b,c\n", vec![vec!["a\"b", "c"]]),
        ("日,本\n", vec![vec!["日", "本"]]),
    ] {
        assert_eq!(records(text).unwrap(), expected, "{text:?}");
    }
    assert_eq!(records("\"a").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(records("\"a\"b\n").unwrap_err().kind(), ErrorKind::Corrupt);
}

fn load(format: FileFormat, text: &[u8], table: &[(&str, DataType)]) -> Result<Vec<Vec<Value>>> {
    let file = temp(".txt", text);
    let mut source = open(&Input::open(&file.0)?, format, &TextOptions::default())?;
    source.bind(&schema(table))?;
    rows(&mut *source)
}

#[test]
fn columns_are_matched_by_name() {
    let table = [("id", DataType::Int64), ("name", DataType::TEXT), ("extra", DataType::Int32)];
    let text = b"\xef\xbb\xbfNAME,id\nx,1\n\"\",2\n,3\n\n";
    let rows = load(FileFormat::Csv, text, &table).unwrap();
    let expected = [
        [Value::Int(1), Value::Text("x".into()), Value::Null],
        [Value::Int(2), Value::Text("".into()), Value::Null],
        [Value::Int(3), Value::Null, Value::Null],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn tbl_lines_may_end_with_a_pipe() {
    let table = [("id", DataType::Int64), ("t!", DataType::TEXT)];
    let expected =
        [[Value::Int(1), Value::Text("a\"b".into())], [Value::Int(2), Value::Text("".into())]];
    assert_eq!(load(FileFormat::Tbl, b"1|a\"b|\n2||\n", &table).unwrap(), expected);
    assert_eq!(load(FileFormat::Tbl, b"1|a\"b\n2|\n", &table).unwrap(), expected);
}

#[test]
fn errors_name_file_line_and_column() {
    let table = [("id!", DataType::Int64), ("day", DataType::Date)];
    for (text, kind, part) in [
        (
            &b"id,day\n1,2026-01-01\n2,tomorrow\n"[..],
            ErrorKind::Type,
            "line 3: column day: \"tomorrow\"",
        ),
        (b"id,day\n\"1\",\n\n\n,\n", ErrorKind::Constraint, "line 5: column id must not be null"),
        (b"id,day\n1,2026-01-01,x\n", ErrorKind::Corrupt, "line 2: 3 fields where line 1 has 2"),
        (b"id,day\n1,\"2026\n", ErrorKind::Corrupt, "line 2: unterminated quoted field"),
        (b"id,day\n1,\xff\n", ErrorKind::Corrupt, "line 2: not UTF-8"),
        (b"id,month\n", ErrorKind::NotFound, "no column \"month\""),
        (b"id,ID\n", ErrorKind::AlreadyExists, "duplicate column"),
        (b"day\n", ErrorKind::Constraint, "no column id"),
        (b"", ErrorKind::Corrupt, "line 1"),
    ] {
        let error = load(FileFormat::Csv, text, &table).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part) && error.message().contains(".txt: "), "{error}");
    }
}

#[test]
fn types_are_inferred_from_every_row() {
    let mut text = String::from("id,price,day,zip,note,\n");
    (0..20_000).for_each(|i| text.push_str(&format!("{i},{i}.50,2026-01-01,00501,,x\n")));
    text.push_str("20000,1,2026-01-02 10:00:00,,last,\n");
    let file = temp(".csv", text.as_bytes());
    let mut source =
        open(&Input::open(&file.0).unwrap(), FileFormat::Csv, &TextOptions::default()).unwrap();
    let columns = source.describe(&|_, _| ()).unwrap();
    let described: Vec<(&str, DataType)> =
        columns.iter().map(|c| (c.name.as_str(), c.data_type)).collect();
    let expected = [
        ("id", DataType::Int64),
        ("price", DataType::Decimal { precision: 18, scale: 2 }),
        ("day", DataType::Timestamp),
        ("zip", DataType::TEXT),
        ("note", DataType::TEXT),
        ("column6", DataType::TEXT),
    ];
    assert_eq!(described, expected);
    source.bind(&schema(&described)).unwrap();
    assert_eq!(rows(&mut *source).unwrap().len(), 20_001);
}

/// Reads back what the `csv` crate writes, in each style of quotes and line ends.
#[test]
fn reads_output_of_the_csv_crate() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    const PIECES: [&str; 9] = ["a", "", ",", "\"", "\n", "\r\n", "é", "\"\"", " "];
    for _ in 0..500 {
        let width = random(4) as usize + 1;
        let mut rows: Vec<Vec<String>> = Vec::new();
        for _ in 0..random(6) {
            let mut field =
                || (0..random(5)).map(|_| PIECES[random(9) as usize]).collect::<String>();
            rows.push((0..width).map(|_| field()).collect());
        }
        let style = [csv::QuoteStyle::Necessary, csv::QuoteStyle::Always][random(2) as usize];
        let terminator = [csv::Terminator::Any(b'\n'), csv::Terminator::CRLF][random(2) as usize];
        let mut writer = csv::WriterBuilder::new()
            .quote_style(style)
            .terminator(terminator)
            .from_writer(Vec::new());
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        let mut reader = Reader::new(text.as_bytes(), b',', true);
        let mut record = Record::default();
        let mut read = Vec::new();
        while reader.read(&mut record).unwrap() {
            read.push(record.texts().unwrap().map(|(text, _)| text.to_owned()).collect::<Vec<_>>());
        }
        assert_eq!(read, rows, "{text:?}");
    }
}
