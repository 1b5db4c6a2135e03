//! Queries whose results imply each other. A condition is true, false or null, so its three
//! partitions add up to the whole (ternary logic partitioning); counts match the rows found; and a
//! query has the same result wherever its rows are stored: in memory, in segments, in partitions,
//! on one thread or two, beside deleted rows, with indexes or without.

use crate::differential;
use crate::input::Input;
use crate::query::Maker;
use crate::subject::{Subject, options, printed};
use nacredb::{ErrorKind, Options};

const TYPES: &str = "k bigint primary key, a bigint, b bigint, s text, d double, m decimal(12,2), y date, f boolean";

/// The same rows stored in four ways.
fn databases(input: &mut Input<'_>) -> Vec<(&'static str, Subject)> {
    let mut statements = differential::rows(input);
    statements.push(
        "update t set m = cast(k as decimal(12,2)) * 0.25, y = from_days(739281 + k), f = a > b"
            .into(),
    );
    let small = Options { segment_rows: 4, partitions: 3, morsel_rows: 1, ..options() };
    let kinds = [
        ("memory", "", options()),
        ("segments", ", sort key (a)", small.clone()),
        ("partitions, two threads", ", shard key (k)", Options { threads: 2, ..small.clone() }),
        ("indexes, half in segments", "", Options { threads: 2, ..small }),
    ];
    let mut out = Vec::new();
    for (name, keys, settings) in kinds {
        let mut subject = Subject::new(settings);
        subject.must(&format!("create table t ({TYPES}{keys})"));
        subject.must("create table u (k bigint primary key, a bigint, s text)");
        if name.starts_with("indexes") {
            indexes(&mut subject);
        }
        // Deleted rows leave bits in delete bitmaps.
        subject.must("insert into t (k, a, s) values (1000, 1, 'gone'), (1001, null, 'gone'), (1002, 2, null)");
        if name != "memory" {
            subject.must("optimize table t flush");
        }
        for (number, sql) in statements.iter().enumerate() {
            subject.must(sql);
            if name == "segments"
                || name.starts_with("partitions")
                || name.starts_with("indexes") && number == 0
            {
                subject.must("optimize table t flush");
                subject.must("optimize table u flush");
            }
        }
        subject.must("delete from t where k >= 1000");
        out.push((name, subject));
    }
    out
}

fn indexes(subject: &mut Subject) {
    for sql in [
        "create index by_a on t (a)",
        "create index by_s on t (s, b)",
        "create index by_d on t (d)",
        "create index by_m on t (m, a)",
        "create index by_y on t (y)",
        "create index by_f on t (f, a, k)",
        "create unique index by_k on t (s, k)",
        "create index by_u on u (a)",
        "create unique index by_us on u (s, k)",
    ] {
        subject.must(sql);
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut databases = databases(&mut input);
    while !input.is_empty() {
        if input.one_in(2) {
            let (sql, _) = Maker::new(&mut input, false).query();
            everywhere(&mut databases, &sql);
            continue;
        }
        let at = input.below(databases.len());
        let mut maker = Maker::new(&mut input, false);
        let from = maker.from();
        let test = maker.boolean(3);
        let columns: Vec<String> = maker.scope.iter().map(|(name, _)| name.clone()).collect();
        let (name, subject) = &mut databases[at];
        partition(subject, &columns.join(", "), &from, &test)
            .unwrap_or_else(|what| panic!("{name}: {what}"));
    }
    databases.iter().for_each(|(_, subject)| subject.check());
}

fn sorted(subject: &mut Subject, sql: &str) -> Option<Vec<Vec<String>>> {
    match subject.run(sql) {
        Ok(result) => {
            let mut rows = printed(&result);
            rows.sort();
            Some(rows)
        }
        // Which row fails first, and whether one fails at all, depends on the plan.
        Err(error) => {
            let kinds =
                [ErrorKind::Unsupported, ErrorKind::Limit, ErrorKind::Type, ErrorKind::Cancelled];
            assert!(kinds.contains(&error.kind()), "{sql}\n{}: {error}", error.kind().name());
            None
        }
    }
}

fn everywhere(databases: &mut [(&'static str, Subject)], sql: &str) {
    let mut first: Option<(&str, Vec<Vec<String>>)> = None;
    for (name, subject) in databases {
        let Some(rows) = sorted(subject, sql) else { continue };
        match &first {
            None => first = Some((name, rows)),
            Some((other, expected)) => {
                assert_eq!(&rows, expected, "{sql}\nin {name} (left) and in {other} (right)")
            }
        }
    }
}

/// Checks that the three partitions of a condition add up to the whole.
fn partition(subject: &mut Subject, columns: &str, from: &str, test: &str) -> Result<(), String> {
    let whole = format!("select {columns} from {from}");
    let Some(expected) = sorted(subject, &whole) else { return Ok(()) };
    let parts = [test.to_string(), format!("not {test}"), format!("({test}) is null")];
    let mut found = Vec::new();
    let mut counts = Vec::new();
    for part in &parts {
        let Some(rows) = sorted(subject, &format!("{whole} where {part}")) else { return Ok(()) };
        counts.push(rows.len());
        found.extend(rows);
    }
    found.sort();
    if found != expected {
        return Err(format!("{whole}\nby {test}\nparts {found:?}\nwhole {expected:?}"));
    }
    let counted = format!(
        "select coalesce(sum(case when {test} then 1 else 0 end), 0), coalesce(sum(case when {} then 1 else 0 end), 0), count(*) from {from}",
        parts[1]
    );
    let Some(rows) = sorted(subject, &counted) else { return Ok(()) };
    let sums = [counts[0].to_string(), counts[1].to_string(), expected.len().to_string()];
    if rows[0] != sums {
        return Err(format!("{counted}\ncounts {:?}, finds {sums:?}", rows[0]));
    }
    let union = format!(
        "select count(*) from ({whole} where {test} union all {whole} where not {test}) as parts"
    );
    // A union may have duplicate column names, but not as a derived table.
    match sorted(subject, &union) {
        Some(rows) if rows[0][0] != (counts[0] + counts[1]).to_string() => {
            Err(format!("{union}\ncounts {:?}", rows[0]))
        }
        _ => Ok(()),
    }
}
