//! Arrow IPC: any bytes, as a file or stream, are imported or rejected with a typed error; exported
//! data is imported unchanged.

use crate::csv::import;
use crate::edit::damage;
use crate::input::Input;
use crate::subject::{Subject, options, printed};
use nacre_server::args::FileFormat;
use nacre_server::source::TextOptions;
use nacredb::ErrorKind;
use std::sync::OnceLock;

const QUERIES: [&str; 5] = [
    "select * from t",
    "select b, s from t where b is not null",
    "select count(*) as n, sum(b) as total, avg(d) as mean from t",
    "select x, z, f from t where false",
    "select null as n, cast(a as decimal(38,4)) as m, cast(b as float) as e, y - y as days from t",
];

/// A query's result as an IPC stream, and as text.
type Exported = (Vec<u8>, Vec<Vec<String>>);

fn exported() -> &'static [Exported] {
    static EXPORTED: OnceLock<Vec<Exported>> = OnceLock::new();
    EXPORTED.get_or_init(|| {
        let mut subject = Subject::new(options());
        subject.must(
            "create table t (a bigint, b int, c smallint unsigned, e bigint unsigned, s text, x blob, d double, m decimal(12,2), y date, w time, z timestamp, f boolean, j json);
             insert into t values (1, 1, 1, 18446744073709551615, 'a', x'00', 1.5, 1.25, '2024-02-29', '12:00', '2024-02-29 01:02:03', true, '{}'),
                                  (null, null, null, null, null, null, null, null, null, null, null, null, null),
                                  (-9223372036854775808, -1, 65535, 0, 'mother of pearl, äöü', x'ff00ff', -1e300, -9999999999.99, '0001-01-01', '23:59:59.999999', '9999-12-31 23:59:59.999999', false, '[1]')",
        );
        let one = |sql: &&str| {
            let result = subject.must(sql);
            (result.to_arrow_ipc().expect("results are Arrow"), printed(&result))
        };
        QUERIES.iter().map(one).collect()
    })
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut subject = Subject::new(options());
    if input.one_in(6) {
        drop(import(&mut subject, FileFormat::Arrow, input.rest(), &TextOptions::default()));
        return;
    }
    let (bytes, rows) = &exported()[input.below(QUERIES.len())];
    let mut bytes = bytes.clone();
    let whole = input.is_empty();
    if !whole {
        damage(&mut bytes, &mut input);
    }
    match import(&mut subject, FileFormat::Arrow, &bytes, &TextOptions::default()) {
        Ok(()) => {
            let result = subject.must("select * from t");
            if whole {
                assert_eq!(printed(&result), *rows, "what was exported comes back");
            }
            result.to_arrow_ipc().unwrap_or_else(|error| panic!("out again: {error}"));
        }
        Err(error) => {
            assert!(
                !whole || error.kind() == ErrorKind::Unsupported,
                "what was exported is refused: {error}"
            );
            crate::csv::allowed(&error);
        }
    }
    subject.check();
}
